// The keys of the page. Every one of them does what a control on the page does too.

import { choose } from "./options.js";
import { link } from "./parts.js";

const FILTERS = ["q", "tie", "full", "m", "pick", "to", "sort", "show", "cluster", "from", "at"];

const typing = (node) => node.matches("input:not([type=checkbox]), select, textarea, [role=application]");

const rowLink = (row) => row?.querySelector("th a, td a");

/** Move the focus to the link of the next or the previous row. */
function move(down) {
  const current = document.activeElement.closest("main tr");
  const rows = [...(current?.closest("table") ?? document.querySelector("main table"))?.querySelectorAll("tbody tr") ?? []].filter(rowLink);
  const target = current ? rows[rows.indexOf(current) + (down ? 1 : -1)] : rows[0];
  rowLink(target)?.focus();
  return Boolean(target);
}

/** Drop the choices of a view; without any, go back to the board, and from the board to the list. */
function back(route) {
  if (FILTERS.some((name) => route.options?.has(name))) choose(Object.fromEntries(FILTERS.map((name) => [name, null])));
  else if (route.benchmark && route.key !== "") location.hash = link.benchmark(route.benchmark);
}

/** Show the keys, and the legend of the board again. */
export function help() {
  document.documentElement.classList.remove("learned");
  document.querySelector("#keys").showModal();
}

/** Act on a key. */
export function pressed(event, route) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !route?.view) return;
  const { key, target } = event;
  const model = document.activeElement.closest("tr[data-rank]")?.dataset.key;
  const find = document.querySelector("#find");
  let done = true;
  if (key === "Escape") {
    if (target === find) target.blur();
    back(route);
  } else if (target === find && key === "ArrowDown") done = move(true);
  else if (typing(target)) done = false;
  else if (key === "/" && find) find.focus();
  else if (key === "?") help();
  else if ((key === "ArrowDown" || key === "ArrowUp") && document.activeElement.closest("main tr")) done = move(key === "ArrowDown");
  else if (key === "b" && model) choose({ to: route.options.get("to") === model ? null : model });
  else if (key === "x" && model) {
    const chosen = route.options.getAll("m");
    choose({ m: chosen.includes(model) ? chosen.filter((m) => m !== model) : [...chosen, model], pick: "1" });
  } else if (key === "x" && route.options?.has("a") && route.options.has("b")) choose({ a: route.options.get("b"), b: route.options.get("a"), from: null });
  else if (key === "x" && route.a) location.hash = location.hash.replace(/[^/]+\/[^/?]+(?=\?|$)/, `${encodeURIComponent(route.b)}/${encodeURIComponent(route.a)}`);
  else done = false;
  if (done) event.preventDefault();
}
