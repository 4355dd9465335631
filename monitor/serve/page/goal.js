// Show the goal of a board: whether it is met, and what was run and saved for it.

import { h } from "./dom.js";
import { count, fixed, money, plural } from "./format.js";
import { glyph } from "./glyph.js";
import { name, sentence, table } from "./parts.js";
import { WORDS } from "./words.js";

const MOST_RUNS = 100; // rows of the models that ran

/** Show the goal: whether it is met, and what was run for it. */
export function goal({ goal: g, words }, names) {
  if (!g) return null;
  return h("div", { class: "line" }, h("dt", {}, glyph("decided", g.state === "met" ? "yes" : "no"), " Goal"), h("dd", {}, sentence(words.goal_note, names), runs(g)));
}

const priced = (g) => g.by_model.some((run) => run.cost_run !== null);

/** Show what each model ran for the goal, on request. */
function runs(g) {
  const amount = (value) => (value === null ? "-" : money(value));
  const texts = {
    model: (run) => name(run.model),
    items_run: (run) => count(run.items_run),
    items_full: (run) => (run.items_full === null ? "-" : count(run.items_full)),
    saved: (run) => (run.saved_ratio === null ? "-" : fixed(100 * run.saved_ratio, 1)),
    ...(priced(g) && { cost_run: (run) => amount(run.cost_run), cost_saved: (run) => amount(run.cost_saved) }),
    left: (run) => (run.left ? "no" : "yes"),
  };
  const columns = Object.keys(texts).map((key) => ({ title: WORDS.goal[key], head: key === "model", class: key === "model" || key === "left" ? "wide-cell" : "number" }));
  const rows = g.by_model.slice(0, MOST_RUNS).map((run) => ({ key: run.model, cells: Object.values(texts).map((text) => text(run)) }));
  const more = g.by_model.length - MOST_RUNS;
  return h("details", { class: "legend", "data-key": "goal-runs" }, h("summary", {}, "Scores by model"),
    table("Scores that each model ran for the goal", columns, [{ rows }], { class: "data" }),
    more > 0 && h("p", { class: "about" }, `${plural(more, "more model")}: see the report as JSON.`));
}
