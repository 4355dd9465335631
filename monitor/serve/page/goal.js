// Show the goal of a board: whether it is met, and what was run and saved for it.

import { h } from "./dom.js";
import { count, money, plural } from "./format.js";
import { glyph } from "./glyph.js";
import { name, sentence } from "./parts.js";

const MOST_RUNS = 100; // rows of the models that ran

/** Show the goal: whether it is met, and what was run for it. */
export function goal({ goal: g, words }, names) {
  if (!g) return null;
  return h("div", { class: "line" }, h("dt", {}, glyph("decided", g.state === "met" ? "yes" : "no"), " Goal"), h("dd", {}, sentence(words.goal_note, names), runs(g)));
}

const priced = (g) => g.by_model.some((run) => run.cost_run !== null);

/** Show what each model ran for the goal, on request. */
function runs(g) {
  const costs = priced(g);
  const titles = ["Run", "Of a full run", "Saved, %", ...(costs ? ["Cost", "Cost saved"] : [])];
  const amount = (value) => h("td", { class: "number" }, value === null ? "-" : money(value));
  const row = (run) => h("tr", { "data-key": run.model },
    h("th", { scope: "row" }, name(run.model)),
    h("td", { class: "number" }, count(run.items_run)),
    h("td", { class: "number" }, run.items_full === null ? "-" : count(run.items_full)),
    h("td", { class: "number" }, run.saved_ratio === null ? "-" : (100 * run.saved_ratio).toFixed(1)),
    costs && [amount(run.cost_run), amount(run.cost_saved)],
    h("td", {}, run.left ? "no" : "yes"));
  const more = g.by_model.length - MOST_RUNS;
  return h("details", { class: "legend", "data-key": "goal-runs" }, h("summary", {}, "Scores by model"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores by model" },
      h("table", { class: "data small" },
        h("caption", { class: "sr" }, "Scores that each model ran for the goal"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Model"), titles.map((t) => h("th", { scope: "col", class: "number" }, t)), h("th", { scope: "col" }, "Can change the answer"))),
        h("tbody", {}, g.by_model.slice(0, MOST_RUNS).map(row)))),
    more > 0 && h("p", { class: "about" }, `${plural(more, "more model")}: see the report as JSON.`));
}
