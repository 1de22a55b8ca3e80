// Keeps a page true: when something happens it is asked for again, and the parts that changed are put in.
// A part is an element with an id and `data-live`. Without this script a page is what it was when it was loaded.
const parts = () => [...document.querySelectorAll("[data-live][id]")];
const PAUSE = 1000;
let asked = false;
let due = false;

async function refresh() {
  if (asked) { due = true; return; }
  asked = true;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, redirect: "manual" });
    if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the server is away: the connection below says when it is back */ }
  setTimeout(() => { asked = false; if (due) { due = false; refresh(); } }, PAUSE);
}

function put(page) {
  for (const old of parts()) {
    const fresh = page.getElementById(old.id);
    if (!fresh || fresh.innerHTML === old.innerHTML) continue;
    // What somebody is typing in, or has open, stays.
    if (old.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) continue;
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((one) => one.id));
    const focused = document.activeElement?.id;
    old.replaceChildren(...fresh.childNodes);
    for (const id of open) old.querySelector(`details[id="${CSS.escape(id)}"]`)?.setAttribute("open", "");
    if (focused && old.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
  }
}

if (parts().length) {
  const events = new EventSource("/ui/events");
  events.addEventListener("change", refresh);
  const away = document.querySelector(".away");
  // What happened in between was told to nobody.
  events.addEventListener("open", () => { if (!away.hidden) refresh(); away.hidden = true; });
  events.addEventListener("error", () => { away.hidden = false; });
  setInterval(() => { if (!document.hidden) refresh(); }, 10000);
}

// Buttons that cannot be undone ask once more.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.ask ?? event.target.dataset.ask;
  if (question && !confirm(question)) event.preventDefault();
});
