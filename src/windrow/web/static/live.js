// Keeps a page true: when something happens it is asked for again, and the parts that changed are put in.
// A part is an element with an id and `data-live`. Without this script a page is what it was when it was loaded.
// All windows that are seen share one stream, and hidden ones need none: a browser opens six connections to a server, and
// a page that finds none free would wait for ever.
import { morph } from "./morph.js";

const parts = () => [...document.querySelectorAll("[data-live][id]")];
const away = document.querySelector(".away");
const ended = document.querySelector(".ended");
const PAUSE = 1000;
const RETRY = 3000;
let asked = false;
let due = false;
let hasAsked = false; // since it was loaded

async function refresh() {
  if (document.hidden) return; // it is asked for when it is seen again
  if (asked) { due = true; return; }
  asked = hasAsked = true;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, redirect: "manual" });
    ended.hidden = answer.type !== "opaqueredirect"; // to the page to log in
    away.hidden = answer.status < 500;
    if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { away.hidden = false; }
  setTimeout(() => { asked = false; if (due) { due = false; refresh(); } }, PAUSE);
}

function put(page) {
  const focused = document.activeElement;
  for (const old of parts()) {
    const fresh = page.getElementById(old.id);
    if (fresh) morph(old, fresh);
  }
  // A row that has moved takes its focus along.
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

const heard = {
  change: refresh, // the server says so when it begins to listen, too
  error: refresh, // whose answer says why
};

const windows = new BroadcastChannel("windrow");
windows.addEventListener("message", ({ data }) => heard[data]());

// Ends when the signal says so.
function listen(signal) {
  const stream = new EventSource("/ui/events");
  for (const what of Object.keys(heard)) stream.addEventListener(what, () => { heard[what](); windows.postMessage(what); });
  // A server that answers with an error, as a proxy does for one that is away, is not asked again by the browser.
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { if (!signal.aborted) listen(signal); }, RETRY);
  });
  signal.addEventListener("abort", () => stream.close());
}

// The window that has the lock listens for all. There are no locks where a page comes over plain HTTP from another
// machine: there each window that is seen listens for itself.
function follow(signal) {
  if (!navigator.locks) { listen(signal); return; }
  const ended = new Promise((end) => signal.addEventListener("abort", end));
  navigator.locks
    .request("windrow", { signal }, () => { listen(signal); return ended; })
    .catch((error) => { if (error.name !== "AbortError") throw error; });
}

if (parts().length) {
  let seen = new AbortController();
  if (!document.hidden) follow(seen.signal);
  document.addEventListener("visibilitychange", () => {
    seen.abort();
    if (document.hidden) return;
    seen = new AbortController();
    follow(seen.signal);
    refresh();
  });
  // Where another window listens already, nothing is said at the beginning.
  setTimeout(() => { if (!hasAsked) refresh(); }, PAUSE);
  setInterval(refresh, 10000);
}

// On a phone the navigation is a line that may be longer than the screen. Not by `scrollIntoView`: the next Tab would go on
// from there, past the link to the content.
const current = document.querySelector("nav [aria-current]");
if (current) {
  const line = current.closest("nav");
  line.scrollLeft = current.offsetLeft - (line.clientWidth - current.offsetWidth) / 2;
}

// Buttons that cannot be undone ask once more.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.ask ?? event.target.dataset.ask;
  if (question && !confirm(question)) event.preventDefault();
});
