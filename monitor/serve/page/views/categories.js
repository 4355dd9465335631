// Show the categories: every model against one in each of them, or the scores of all.

import { allPairs, get } from "../api.js";
import { h } from "../dom.js";
import { downloads } from "../downloads.js";
import { count, fixed, isolated, percent, plural, points } from "../format.js";
import { answerLine } from "../glyph.js";
import { choose } from "../options.js";
import { crumb, link, name } from "../parts.js";
import { WORDS, phrase } from "../words.js";
import { onTheseItems, seenFrom } from "./model.js";

export const title = ({ benchmark }) => `Categories, ${benchmark}`;

const NONE = "scores";

export async function load({ benchmark, options }, signal) {
  const to = options.get("to");
  let page = await get("/categories", { benchmark, baseline: to === NONE ? null : to }, signal);
  if (to === null && page.total && page.models.length) page = await get("/categories", { benchmark, baseline: page.models[0] }, signal); // without a choice the leader
  return { page, pairs: page.baseline && page.models.length > 1 ? await allPairs(benchmark, page.baseline.model, signal) : [] };
}

const TONES = {
  1: ["better", "▲", phrase("cell_better")],
  "-1": ["worse", "▼", phrase("cell_worse")],
  0: ["open", "", WORDS.answers.decided.no],
};

export function render({ page, pairs }, route) {
  const { baseline: v } = page;
  const head = [crumb(page, "categories"), h("h1", { tabindex: "-1" }, "Categories")];
  if (!page.total) return [...head, h("p", { class: "about" }, "No item of this benchmark carries a category. The field ", h("code", {}, "cluster"), " of an event names it.")];
  const shown = displayed(page, route.options);
  return [
    ...head,
    h("p", { class: "about" }, v ? ["Gap of every model to ", name(v.model), `, in points, in ${plural(page.total, "category", "categories")}`] : `Score of every model, in percent, in ${plural(page.total, "category", "categories")}`,
      page.total > page.categories.length && `; the ${count(page.categories.length)} largest are on display`, v ? ". Its own row has its scores, in percent." : ".",
      h("span", { class: "sideways" }, " The table scrolls sideways.")),
    v && verdicts(page, pairs),
    tools(page, route, shown),
    shown.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores by category" }, grid(page, shown)) : h("p", { class: "about" }, "No model matches."),
    h("p", { class: "about assumes" }, v?.side
      ? phrase("cells_about", { n: v.comparisons, level: percent(page.alpha, 0) })
      : phrase("profile", { reading: v ? ", gaps in points" : "; the stronger the grey, the higher the score" })),
  ];
}

/** Answer the three questions for the baseline: on all items, in each category, and whether there are enough items. */
function verdicts(page, pairs) {
  const { baseline: v, models, alpha } = page;
  if (!v.side) return h("p", { class: "notice" }, phrase("no_cells", { why: v.why }));
  const cells = v.side.flatMap((row, k) => (models[k] === v.model ? [] : row));
  const of = (side) => cells.filter((cell) => cell === side).length;
  const yes = (n) => (n > 0 ? "yes" : "no");
  const tally = (n, all, words) => h("dd", { class: "tally" }, h("b", {}, count(n)), ` of ${plural(all, words)}`);
  const place = onTheseItems(pairs.map((p) => seenFrom(v.model, p)));
  const resolved = pairs.filter((p) => p.resolved.fixed_n).length;
  const decided = cells.length - of(0);
  return [
    h("dl", { class: "result" },
      answerLine("settled", yes(place.closed), [place.words, extremes(page)], tally(place.closed, pairs.length, "other")),
      answerLine("decided", yes(decided), [h("b", {}, phrase("cells_decided", { some: decided, n: cells.length })), phrase("cells_level", { level: percent(alpha, 0) })], tally(decided, cells.length, "cell")),
      answerLine("resolved", yes(resolved), [phrase("cells_enough", { enough: h("b", {}, phrase("enough", { unit: "item", some: resolved, n: pairs.length })) }), sizes(page)], tally(resolved, pairs.length, "other"))),
    h("ul", { class: "key" }, Object.entries(TONES).map(([side, [tone, sign, words]]) => h("li", {}, h("span", { class: `cell ${tone}`, "aria-hidden": "true" }, sign || "±"), ` ${words} `, h("b", {}, count(of(Number(side))))))),
  ];
}

/** Return in which categories the baseline has its best and its worst rank. */
function extremes({ baseline: v, models, categories, means }) {
  const own = models.indexOf(v.model);
  const ranks = categories.map((_, j) => (means[own][j] === null ? null : 1 + means.filter((row) => row[j] > means[own][j]).length));
  const scored = ranks.filter((rank) => rank !== null);
  if (scored.length < 2) return null;
  const at = (rank) => {
    const here = categories.filter((_, j) => ranks[j] === rank).map((c) => c.name);
    return `${count(rank)} (${here.length > 2 ? plural(here.length, "category", "categories") : here.map(isolated).join(", ")})`;
  };
  const [best, worst] = [Math.min(...scored), Math.max(...scored)];
  return best === worst ? ` Its rank is ${count(best)} in every category.` : ` Its rank by score in a category runs from ${at(best)} to ${at(worst)}.`;
}

function sizes({ categories }) {
  const items = categories.map((c) => c.items);
  const [least, most] = [Math.min(...items), Math.max(...items)];
  return least === most ? `A category has ${plural(least, "item")}.` : `A category has ${count(least)} to ${plural(most, "item")}.`;
}

/** Return the places of the models that the search leaves. */
function displayed(page, options) {
  const text = (options.get("q") ?? "").toLowerCase();
  return [...page.models.keys()].filter((k) => page.models[k].toLowerCase().includes(text));
}

function tools(page, { benchmark, options }, shown) {
  const now = page.baseline?.model ?? NONE;
  const columns = page.categories.map((c) => c.name);
  const values = page.baseline ? page.baseline.gap : page.means;
  const what = page.baseline ? `Gap to ${page.baseline.model} in points` : "Score, % of the items";
  return h("div", { class: "tools", role: "group", "aria-label": "Choose what to compare" },
    h("label", {}, "Baseline ", h("select", { "aria-label": "Baseline", onchange: (event) => choose({ to: event.target.value }), paint: (node) => { node.value = now; } },
      h("option", { value: NONE }, "none: scores"), page.models.map((m) => h("option", { value: m, "data-key": m }, isolated(m))))),
    h("input", { type: "search", id: "find", placeholder: "Find a model", "aria-label": "Find a model", "aria-keyshortcuts": "/", spellcheck: "false", oninput: (event) => choose({ q: event.target.value }),
      paint: (field) => { if (field !== document.activeElement) field.value = options.get("q") ?? ""; } }),
    h("span", { class: "spacer" }),
    downloads({
      name: [benchmark, "categories"], rows: () => [["rank", "model", ...columns], ...shown.map((k) => [k + 1, page.models[k], ...values[k]])], json: () => page,
      figure: shown.length ? ".categories" : null, heading: `Categories, ${benchmark}`, caption: `${what}${phrase("cells_caption", { level: percent(page.alpha, 0) })}`,
    }));
}

const LEVELS = 5;

/** Return what gives a score its level of grey, from the lowest score on the page to the highest. */
function heatOf(means) {
  const values = means.flat().filter((value) => value !== null);
  const [least, most] = [values.reduce((x, y) => Math.min(x, y), 1), values.reduce((x, y) => Math.max(x, y), 0)];
  return (value) => (value === null || most <= least ? "" : `heat-${Math.round((LEVELS * (value - least)) / (most - least))}`);
}

function grid(page, shown) {
  const { baseline: v, categories, models } = page;
  const column = (c) => h("th", { scope: "col", class: "number", title: c.name }, h("span", { class: "who" }, c.name), h("span", { class: "aside" }, count(c.items)));
  const score = (k, j, level) => h("td", { class: level === undefined ? "number own" : "number" }, h("span", { class: `cell ${level ?? ""}` }, percent(page.means[k][j], 0)));
  const heat = v ? null : heatOf(page.means);
  const cell = (k, j) => {
    if (!v) return score(k, j, heat(page.means[k][j]));
    const gap = v.gap[k][j];
    if (gap === null) return h("td", { class: "number" }, "–");
    const [tone, sign, words] = TONES[v.side?.[k][j] ?? 0];
    const href = `${link.items(page.benchmark, models[k], v.model)}&cluster=${encodeURIComponent(categories[j].name)}`;
    return h("td", { class: "number" }, h("a", { class: `cell ${tone}`, href, title: `${models[k]}, ${categories[j].name}: ${points(gap, 1)} points on ${plural(v.n[k][j], "shared item")}, ${v.side ? words : phrase("cell_none")}` },
      sign && h("span", { "aria-hidden": "true" }, sign), points(gap, 0), v.side && h("span", { class: "sr" }, ` ${words}`)));
  };
  const row = (k) => h("tr", { "data-key": models[k], "data-rank": k + 1, class: v?.model === models[k] && "own" },
    h("td", { class: "number rank" }, count(k + 1)),
    h("th", { scope: "row" }, h("span", { class: "who" }, h("a", { href: link.model(page.benchmark, models[k]), title: models[k] }, name(models[k])))),
    h("td", { class: "number" }, page.mean[k] === null ? "–" : fixed(100 * page.mean[k], 2)),
    categories.map((_, j) => (v?.model === models[k] ? score(k, j) : cell(k, j))));
  const upright = categories.length > 6 && categories.some((c) => c.name.length > 8);
  return h("table", { class: upright ? "categories upright" : "categories" },
    h("caption", { class: "sr" }, v ? `Gap of every model to ${v.model} in each category, points` : "Score of every model in each category, percent"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Rank"), h("th", { scope: "col" }, "Model"), h("th", { scope: "col", class: "number" }, "Score"), categories.map(column))),
    h("tbody", {}, shown.map(row)));
}
