// Build elements, and update the elements on the page. Views are plain functions of API data. An update changes only what differs, so focus,
// selection, open details and the scroll position survive.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onchange", "oninput", "onkeydown", "onpointermove", "onpointerleave", "onpointerover", "onsubmit", "onfocus", "onblur"];

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (HANDLERS.includes(name) || name === "paint" || name === "once") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  if (node.paint) node.dataset.paint = "";
  if (node.once) node.dataset.once = "";
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== "") node.append(child);
  }
  return node;
}

/** Make an HTML element. Strings become text nodes; nothing is parsed as markup. */
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

/** Make an SVG element. */
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

const sameKind = (from, to) =>
  from.nodeType === to.nodeType && from.nodeName === to.nodeName && from.dataset?.key === to.dataset?.key;

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // The reader opens and closes details.
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && name !== "open") from.setAttribute(name, value);
  }
  for (const name of HANDLERS) if (from[name] !== to[name]) from[name] = to[name] ?? null;
  from.paint = to.paint;
  from.once = to.once;
}

function morphNode(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  // An element with data-keep shows what the reader points at.
  if (from.hasAttribute("data-keep")) return;
  morphAttributes(from, to);
  if (to.once) return;
  from.filled = null;
  morphChildren(from, to);
}

/** Make the children of an element with `once: {key, make}`, unless it has those of that key: the many that most updates leave unchanged. */
function fill(node) {
  if (node.filled === node.once.key) return;
  node.replaceChildren(...node.once.make());
  node.filled = node.once.key;
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

/** Restore the focus that a moved element lost. A row that changes its group is rebuilt; its link has the same address. */
function restoreFocus(root, active) {
  if (active === document.activeElement || active === document.body) return;
  const href = active.getAttribute("href");
  const target = active.isConnected ? active : href && root.querySelector(`a[href="${CSS.escape(href)}"]`);
  target?.focus?.({ preventScroll: true });
}

/** Make the children of `root` equal to `nodes`, and reuse the existing elements. */
export function morph(root, ...nodes) {
  const target = document.createElement(root.tagName);
  target.append(...nodes);
  const active = document.activeElement;
  morphChildren(root, target);
  restoreFocus(root, active);
  for (const lasting of root.querySelectorAll("[data-once]")) fill(lasting);
  for (const painted of root.querySelectorAll("[data-paint]")) painted.paint(painted);
}
