// Elements from data, and data again onto the elements that stand: views are plain functions of what the API says, and an update changes
// only what differs, so that focus, selection, open details and the scroll position survive it.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onchange", "oninput", "onkeydown", "onpointermove", "onpointerleave", "onsubmit", "onfocus", "onblur"];

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (HANDLERS.includes(name) || name === "paint") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  if (node.paint) node.dataset.paint = "";
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== "") node.append(child);
  }
  return node;
}

/** Make an HTML element. Text is always text: nothing from outside is parsed as markup. */
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

/** Make an SVG element. */
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

const sameKind = (from, to) =>
  from.nodeType === to.nodeType && from.nodeName === to.nodeName && from.dataset?.key === to.dataset?.key;

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // Whether details are open is the reader's choice.
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && name !== "open") from.setAttribute(name, value);
  }
  for (const name of HANDLERS) if (from[name] !== to[name]) from[name] = to[name] ?? null;
  from.paint = to.paint;
}

function morphNode(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  // What carries data-keep shows what the reader points at, not the data.
  if (from.hasAttribute("data-keep")) return;
  morphAttributes(from, to);
  morphChildren(from, to);
}

function firstLike(next, at) {
  while (at && !sameKind(at, next)) at = at.nextSibling;
  return at;
}

function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let at = from.firstChild;
  for (const next of [...to.childNodes]) {
    const key = next.dataset?.key;
    const kept = key ? keyed.get(key) : firstLike(next, at);
    if (kept && sameKind(kept, next)) {
      if (kept === at) at = at.nextSibling;
      else from.insertBefore(kept, at);
      morphNode(kept, next);
    } else {
      from.insertBefore(next, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

/** Moving an element takes its focus away, and a row that changes its group is made anew: its link is then found by its address. */
function restoreFocus(root, active) {
  if (active === document.activeElement || active === document.body) return;
  const href = active.getAttribute("href");
  const again = active.isConnected ? active : href && root.querySelector(`a[href="${CSS.escape(href)}"]`);
  again?.focus?.({ preventScroll: true });
}

/** Make the children of `root` look like `nodes`, keeping every element that can be kept. */
export function morph(root, ...nodes) {
  const target = document.createElement(root.tagName);
  target.append(...nodes);
  const active = document.activeElement;
  morphChildren(root, target);
  restoreFocus(root, active);
  for (const painted of root.querySelectorAll("[data-paint]")) painted.paint(painted);
}
