// `morph` makes one element like another, and keeps every node that can stay. So the focus, a selection, what was typed,
// what is open, and how far something is scrolled stay as they were.

// Belongs to whoever looks, once the page is there.
const OWN = new Set(["open"]);

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) { old.nodeValue = fresh.nodeValue; return; }
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !OWN.has(name)) old.setAttribute(name, value);
}

function morphChildren(old, fresh) {
  const kept = pair(old.childNodes, fresh.childNodes);
  const staying = new Set(kept.values());
  for (const one of [...old.childNodes]) if (!staying.has(one) && !isInUse(one)) one.remove();
  let at = old.firstChild;
  for (const one of [...fresh.childNodes]) {
    while (at && !staying.has(at)) at = at.nextSibling; // in use, though it is not wanted any more
    const own = kept.get(one);
    if (own && own === at) at = at.nextSibling;
    else old.insertBefore(own ?? one, at);
    if (own) morph(own, one);
  }
}

// Which old node each fresh one is.
function pair(olds, freshes) {
  const free = new Map();
  for (const one of olds) {
    const name = nameOf(one);
    if (free.has(name)) free.get(name).push(one);
    else free.set(name, [one]);
  }
  const pairs = new Map();
  for (const one of freshes) {
    const own = free.get(nameOf(one))?.shift();
    if (own) pairs.set(one, own);
  }
  return pairs;
}

// Two nodes of one name are the same thing at two times. A button that does something else is another: whoever is about
// to press it must not find that out afterwards.
function nameOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
  return [node.nodeName, node.getAttribute("class"), keyOf(node)].join(" ");
}

function keyOf(node) {
  if (node.id) return node.id;
  if (node.matches("button")) return node.value || node.textContent;
  if (node.matches("form")) return [...node.querySelectorAll("button")].map(keyOf).join();
  if (node.matches("input, select, textarea")) return node.name;
  if (!node.matches("tr, li, article")) return "";
  return node.querySelector(":scope > [id]")?.id ?? node.querySelector("a")?.getAttribute("href") ?? node.querySelector("th")?.textContent ?? "";
}

// Something was typed in it, or is about to be.
function isInUse(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return false;
  const fields = [...node.querySelectorAll("textarea, input:not([type=hidden])")];
  return fields.some((field) => field.value !== field.defaultValue || field === document.activeElement);
}
