// Show the items: where two models differ, the hardest, the most informative, and those to check.

import { get } from "../api.js";
import { h, s } from "../dom.js";
import { downloads } from "../downloads.js";
import { count, fixed, isolated, percent, plural, points } from "../format.js";
import { choose } from "../options.js";
import { STEP_SIGNS, crumb, link, name, sentence, table } from "../parts.js";

export const title = ({ benchmark }) => `Items, ${benchmark}`;

const PAGE = 50;
const MOST = 1_000; // items of one answer
const FEW = 0.1; // of the other models

export async function load({ benchmark, options }, signal) {
  const page = await get("/items", { ...asked(benchmark, options), limit: PAGE, cursor: options.get("from") }, signal);
  if (!page.two) return { page };
  const { model_a, model_b } = page.two;
  const found = await get("/pairs", { benchmark, model: model_a, other: model_b, limit: 1 }, signal);
  const path = found.pairs[0]?.n > 0 ? await get("/path", { benchmark, model_a, model_b, points: 2 }, signal) : null;
  return { page, words: path?.words };
}

/** Return what the choices in the address ask for. */
function asked(benchmark, options) {
  const [a, b] = [options.get("a"), options.get("b")];
  const two = a && b && a !== b;
  const show = options.get("show") ?? (two ? "differ" : "all");
  return {
    benchmark, model_a: two ? a : null, model_b: two ? b : null, show: two || !TWO[show] ? show : "all", sort: options.get("sort") ?? "suspicious",
    cluster: options.get("cluster"), find: options.get("q"),
  };
}

/** Read every item that is asked for, answer by answer. */
async function every(benchmark, options) {
  const items = [];
  let cursor = null;
  do {
    const page = await get("/items", { ...asked(benchmark, options), limit: MOST, cursor });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
}

/** Offer every item that is asked for, with the score of every model. */
function files(page, { benchmark, options }) {
  const line = (item) => [item.item_id, item.cluster, item.scored, item.right, item.mean, item.correlation, item.suspicious, ...item.scores];
  return downloads({
    name: [benchmark, "items"], rows: async () => [["item_id", "cluster", "scored", "right", "mean", "correlation", "check_the_key", ...page.models], ...(await every(benchmark, options)).map(line)],
    json: async () => ({ ...page, items: await every(benchmark, options), next_cursor: null }),
    figure: page.items.length ? "table.items" : null, heading: `Items, ${benchmark}`, caption: `${plural(page.items.length, "item")} of ${count(page.total)}; each bar is a model, the best rank at the left`,
  });
}

const ANY = { all: "All", suspicious: "To check", all_wrong: "All wrong", all_right: "All right" };
const TWO = { differ: "Differ", both_right: "Both right", both_wrong: "Both wrong" };
const SORTS = { suspicious: "To check first", informative: "Most informative", hardest: "Hardest", easiest: "Easiest", item: "Arrival" };

export function render({ page, words }, route) {
  const { options } = route;
  const from = Number(options.get("from") ?? 0);
  const move = (place, label, on) => h("button", { type: "button", disabled: !on, onclick: () => choose({ from: place || null }) }, label);
  return [
    crumb(page, "items"),
    h("h1", { tabindex: "-1" }, page.two ? [name(page.two.model_a), " and ", name(page.two.model_b)] : "Items"),
    models(page, options),
    words && result(words, [page.two.model_a, page.two.model_b]),
    page.two && differences(page),
    filters(page, options),
    page.items.length ? rows(page) : h("p", { class: "about" }, page.counts.all ? "No item matches." : "No item has a score: a benchmark of battles has prompts and votes."),
    h("p", { class: "actions pager" }, move(from - PAGE, "‹ Previous", from > 0), move(from + PAGE, "Next ›", page.next_cursor !== null), files(page, route),
      h("span", { class: "about", role: "status" }, page.total ? `${count(from + 1)} to ${count(from + page.items.length)} of ${plural(page.total, "item")}` : "0 items")),
    h("p", { class: "about assumes" }, "Each bar is a model, the best rank at the left; its height is the score, and a gap is a missing score. ", page.two && ["Coloured are ", swatch("only-a"), " ", name(page.two.model_a), " and ", swatch("own-b"), " ", name(page.two.model_b), ". "], "r is the correlation, over the models, between the score of the item and the mean score. ",
      "An item is marked “check the key” if r is below −0.3, or if only the best model fails it. With many items some are marked by chance: this is a reason to look at the item, not a correction."),
  ];
}

function models(page, options) {
  const now = (key) => options.get(key) ?? "";
  const select = (key, label, after) => h("label", {}, `${label} `, h("select", { "aria-label": label, onchange: (event) => choose({ [key]: event.target.value, from: null, show: null }), paint: (node) => { node.value = now(key); } },
    h("option", { value: "" }, "choose a model"), page.models.map((m) => h("option", { value: m, "data-key": m }, isolated(m)))), after);
  const { two } = page;
  return h("div", { class: "tools two", role: "group", "aria-label": "Two models" }, select("a", "Where do"), select("b", "and", " differ?"),
    two && h("button", { type: "button", onclick: () => choose({ a: two.model_b, b: two.model_a, from: null }) }, "Swap"),
    two && h("a", { class: "button", href: link.pair(page.benchmark, two.model_a, two.model_b) }, "Evidence"));
}

const swatch = (kind) => s("svg", { width: 12, height: 12, class: "four", "aria-hidden": "true" }, s("rect", { class: kind, width: 12, height: 12 }));

// --- two models --------------------------------------------------------------------------------------------------------------------

/** Show the verdict on two models, as their page has it. */
function result(words, names) {
  const size = words.rows.find((row) => row.key === "size");
  return h("div", { class: "result" },
    h("p", { class: "headline" }, h("span", { class: `sign ${STEP_SIGNS[words.step][1]}`, "aria-hidden": "true" }, STEP_SIGNS[words.step][0]), " ", sentence(words.headline, names)),
    words.turned_note && h("p", { class: "facts" }, sentence(words.turned_note, names)),
    size && h("p", { class: "facts" }, h("b", {}, size.answer), " · ", sentence(size.detail, names)));
}

function differences({ two }) {
  const n = two.both_right + two.only_a + two.only_b + two.both_wrong + two.equal;
  if (!n) return h("p", { class: "about" }, "The two models share no item.");
  const parts = [["both right", two.both_right, "same"], [["only ", name(two.model_a)], two.only_a, "only-a"], [["only ", name(two.model_b)], two.only_b, "only-b"], ["neither", two.both_wrong, "same"], ["the same score", two.equal, "same"]].filter(([, value]) => value > 0);
  let x = 0;
  const bar = s("svg", { class: "four", height: 34, "aria-hidden": "true" }, parts.map(([, value, kind]) => {
    const rect = s("rect", { class: kind, x: `${(100 * x) / n}%`, y: 0, width: `${(100 * value) / n}%`, height: 34 });
    x += value;
    return rect;
  }));
  return [
    h("h2", {}, `They differ on ${count(two.only_a + two.only_b)} of ${plural(n, "shared item")}`),
    bar,
    h("ul", { class: "key" }, parts.map(([words, value, kind]) => h("li", {}, swatch(kind), " ", words, " ", h("b", {}, count(value)), ` (${percent(value / n, 0)} %)`))),
    h("div", { class: "columns" },
      h("section", {}, h("h2", {}, "Easy or hard"), h("p", { class: "about" }, "Items on which they differ, by how many of the other models get them right."), groups(two, two.by_right, "Others right", n)),
      two.by_cluster.length > 0 && h("section", {}, h("h2", {}, "By category"), h("p", { class: "about" }, "Net difference in points of the category's items. A profile: no verdict."), groups(two, two.by_cluster, "Category", n))),
  ];
}

/** Show two bars a group: what only the one and only the other gets right. */
function groups(two, list, head, n) {
  const most = Math.max(...list.flatMap((g) => [g.only_a, g.only_b]), 1);
  const half = (value) => (46 * value) / most;
  const only = (model, kind) => ({ title: `only ${model}`, class: "number", mark: [swatch(kind), " only", h("span", { class: "sr" }, " ", name(model))] });
  const columns = [
    { title: head, head: true }, only(two.model_a, "only-a"),
    { title: "Drawn", mark: h("span", { class: "sr" }, "Drawn"), class: "plot" }, only(two.model_b, "only-b"), { title: "Net, points", class: "number" },
  ];
  const rows_ = list.filter((g) => g.items).map((g) => ({
    key: g.name,
    cells: [head === "Category" ? g.name : g.name.replace("-", "–"), count(g.only_a), s("svg", { class: "four", height: 14, width: "100%", "aria-hidden": "true" },
      s("rect", { class: "only-a", x: `${50 - half(g.only_a)}%`, width: `${half(g.only_a)}%`, y: 1, height: 12 }), s("rect", { class: "only-b", x: "50%", width: `${half(g.only_b)}%`, y: 1, height: 12 })),
    count(g.only_b), points((g.only_a - g.only_b) / g.items, 1)],
  }));
  return table(`${head}: items that only one of two models gets right`, columns, [{ rows: rows_ }], { class: "groups" });
}

// --- every item --------------------------------------------------------------------------------------------------------------------

function filters(page, options) {
  const show = options.get("show") ?? (page.two ? "differ" : "all");
  const button = ([key, label]) => h("button", { type: "button", class: "chip-button", "aria-pressed": String(key === show), onclick: () => choose({ show: key, from: null }) }, `${label} ${count(page.counts[key])}`);
  const select = (key, label, first, entries) => h("select", { "aria-label": label, onchange: (event) => choose({ [key]: event.target.value, from: null }), paint: (node) => { node.value = options.get(key) ?? first; } }, entries);
  return h("div", { class: "tools", role: "group", "aria-label": "Choose which items to list" },
    h("input", { type: "search", id: "find", placeholder: "Find an item", "aria-label": "Find an item or category", "aria-keyshortcuts": "/", spellcheck: "false", oninput: (event) => choose({ q: event.target.value, from: null }),
      paint: (field) => { if (field !== document.activeElement) field.value = options.get("q") ?? ""; } }),
    page.two && [Object.entries(TWO).map(button), h("span", { class: "break" })],
    Object.entries(ANY).map(button),
    page.clusters.length > 0 && select("cluster", "Category", "", [h("option", { value: "" }, "All categories"), page.clusters.map((c) => h("option", { value: c, "data-key": c }, isolated(c)))]),
    h("label", {}, "Sort ", select("sort", "Sort", "suspicious", Object.entries(SORTS).map(([key, label]) => h("option", { value: key }, label)))));
}

function rows(page) {
  const place = new Map(page.models.map((m, k) => [m, k]));
  const [a, b] = page.two ? [place.get(page.two.model_a), place.get(page.two.model_b)] : [];
  const better = (item) => (item.scores[a] > item.scores[b] ? page.two.model_a : item.scores[b] > item.scores[a] ? page.two.model_b : null);
  const columns = [
    { title: "Item", head: true, class: "item" },
    page.clusters.length > 0 && { title: "Category", class: "category" },
    page.two && { title: "Better", class: "category better-one" },
    { title: "Right", class: "number" },
    { title: `Scores, rank 1 to ${page.models.length}`, class: "bars" },
    { title: "r", class: "number" },
    { title: "Note", class: "why" },
  ].filter(Boolean);
  const list = page.items.map((item) => ({
    key: item.item_id,
    cells: [
      h("span", { class: "who", title: item.item_id }, name(item.item_id)),
      ...(page.clusters.length ? [h("span", { class: "who", title: item.cluster }, item.cluster ?? "–")] : []),
      ...(page.two ? [better(item) ? h("span", { class: "who" }, name(better(item))) : "–"] : []),
      `${count(item.right)} of ${count(item.scored)}`,
      bars(item, a, b),
      item.correlation === null ? "–" : fixed(item.correlation, 2),
      item.suspicious ? h("b", {}, "check the key") : note(item, page.two ? [item.scores[a], item.scores[b]] : []),
    ],
  }));
  return table("Items with the score of every model", columns, [{ rows: list }], { class: "items" });
}

/** Return what is special about an item: of the models but the two that are compared, none, few, most or all get it right. */
function note(item, compared) {
  const others = item.scored - compared.filter((score) => score !== null).length;
  const right = item.right - compared.filter((score) => score === 1).length;
  if (!others) return "";
  const who = compared.length ? "other" : "model";
  if (right === 0) return item.mean > 0 && !compared.length ? "" : `no ${who} gets it right`;
  if (right === others) return `every ${who} gets it right`;
  if (compared.length && right <= FEW * others) return "few others get it right";
  return compared.length && right >= (1 - FEW) * others ? "most others get it right" : "";
}

/** Draw one bar a model in rank order; models beyond one pixel each are averaged. */
export function bars(item, a, b) {
  const size = Math.min(item.scores.length, 200);
  const step = item.scores.length / size;
  const cell = 100 / size;
  const path = [];
  for (let k = 0; k < size; k += 1) {
    const part = item.scores.slice(Math.floor(k * step), Math.floor((k + 1) * step)).filter((v) => v !== null);
    if (!part.length) continue;
    const height = 2 + (12 * part.reduce((x, y) => x + y, 0)) / part.length;
    const own = k === Math.floor(a / step) ? "only-a" : k === Math.floor(b / step) ? "own-b" : "other";
    path.push(s("rect", { class: own, x: `${(k + 0.1) * cell}%`, width: `${0.8 * cell}%`, y: 15 - height, height }));
  }
  return s("svg", { class: "four", height: 16, width: "100%", "aria-hidden": "true" }, path);
}
