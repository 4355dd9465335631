// Parts that several views share: names, sentences, chips, verdict cells, links, tables.

import { h, s } from "./dom.js";
import { count, fixed, share } from "./format.js";
import { WORDS, phrase } from "./words.js";

/** The setting `low_coverage`: the page marks a model with a smaller share of the items. */
export const LOW_COVERAGE = Number(document.documentElement.dataset.lowCoverage);

export const DECISIONS = WORDS.procedures;

export const RESOLUTIONS = DECISIONS.filter((procedure) => procedure.resolves);

/** Return the heads of the columns of a ranking. */
export const headsOf = (benchmark) => (benchmark.battles ? { ...WORDS.heads, ...WORDS.rated } : WORDS.heads);

export const link = {
  home: () => "#/",
  benchmark: (name, view = "") => `#/b/${encodeURIComponent(name)}${view && `/${view}`}`,
  newcomer: (name, model) => `#/b/${encodeURIComponent(name)}/newcomers/${encodeURIComponent(model)}`,
  model: (name, model) => `#/b/${encodeURIComponent(name)}/model/${encodeURIComponent(model)}`,
  items: (name, a, b) => `#/b/${encodeURIComponent(name)}/items?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`,
  categories: (name, to) => `#/b/${encodeURIComponent(name)}/categories?to=${encodeURIComponent(to)}`,
  pair: (name, a, b) => `#/b/${encodeURIComponent(name)}/pair/${encodeURIComponent(a)}/${encodeURIComponent(b)}`,
};

/** Show a name with its own text direction. */
export const name = (text, attributes) => h("bdi", { class: "name", ...attributes }, text);

/** Letters, digits and what joins them: next to these a match is part of another name or word. */
const JOINS = { before: /[\p{L}\p{N}_]$|[\p{L}\p{N}_][-./:]$/u, after: /^[\p{L}\p{N}_]|^[-./:][\p{L}\p{N}_]/u };

/** Return where a name is on its own in a text, from a place on. */
function placeOf(text, wanted, from) {
  for (let at = text.indexOf(wanted, from); at >= 0; at = text.indexOf(wanted, at + 1)) {
    if (!JOINS.before.test(text.slice(0, at)) && !JOINS.after.test(text.slice(at + wanted.length))) return at;
  }
  return -1;
}

/** Show a sentence with the names in it marked up. */
export function sentence(text, names) {
  const parts = [];
  const known = [...new Set(names)].filter(Boolean).sort((x, y) => y.length - x.length);
  let from = 0;
  for (;;) {
    let at = -1;
    let next = "";
    for (const candidate of known) {
      const place = placeOf(text, candidate, from);
      if (place >= 0 && (at < 0 || place < at)) [at, next] = [place, candidate];
    }
    if (at < 0) return [...parts, text.slice(from)];
    parts.push(text.slice(from, at), name(next));
    from = at + next.length;
  }
}

/** The sign of each step (`STEPS` of monitor/words/columns.py), and its tone. */
export const STEP_SIGNS = {
  decided: ["●", "good"], against: ["▼", "warn"], tie: ["○", ""], open: ["◔", "warn"], equivalent: ["≈", ""], held: ["!", "warn"], invalidated: ["✗", "warn"],
};

export const better = (pair, procedure = "anytime_family") => {
  const side = pair.decided[procedure];
  return side === null ? null : pair[`model_${side}`];
};

/** Return what a step is: a key of `WORDS.steps`, as `PairReport.step` has it. */
export function stepOf(pair) {
  if (pair.status === "decided") return pair.decided.anytime_family === "a" ? "decided" : "against";
  if (["held", "invalidated", "equivalent"].includes(pair.status)) return pair.status;
  return pair.status === "collecting" || pair.n === 0 || missingOf(pair) ? "open" : "tie";
}

/** Return the items whose absence keeps a pair open. */
export const missingOf = (pair) => Math.max(0, ...pair.facts.map(({ missing }) => missing ?? 0));

/** Show what a pair is by sign, colour and word. */
export function chip(pair) {
  const step = stepOf(pair);
  const [glyph, tone] = STEP_SIGNS[step];
  return h("span", { class: `chip step ${tone || "open"}`, "data-sign": glyph }, WORDS.steps[step].word);
}

const tested = (pair, procedure) => {
  if (procedure === "clustered") return pair.p_clustered !== null;
  if (procedure === "anytime") return pair.log_e !== null;
  if (procedure === "fixed_n") return pair.gap !== null;
  return pair.gap !== null && (pair.gap_family_low !== null || pair.log_e === null); // without e-values there is no interval, but a test
};

/** Return sign, tone and words of one decision. */
export function decision(pair, procedure) {
  const side = pair.decided[procedure];
  if (side === "a") return ["●", "good", phrase("better", { model: pair.model_a })];
  if (side === "b") return ["▼", "warn", phrase("better", { model: pair.model_b })];
  return tested(pair, procedure) ? ["○", "open", WORDS.answers.decided.no] : ["·", "open", WORDS.answers.resolved.unknown];
}

/** Return sign, tone and words of one resolution; its signs are squares, those of decisions are round. */
export function resolution(pair, procedure) {
  const value = pair.resolved[procedure];
  const { yes, no, unknown } = WORDS.answers.resolved;
  if (value === null) return ["·", "open", unknown];
  return value ? ["■", "good", yes] : ["□", "open", no];
}

export const sign = ([glyph, tone, words]) =>
  h("span", { class: `sign ${tone}` }, h("span", { "aria-hidden": "true" }, glyph), h("span", { class: "sr" }, words));

/** Return the item count of a benchmark: as declared, or those that have arrived. */
export const size = (benchmark) => Math.max(benchmark.items, benchmark.declared_items ?? 0);

export const lowCoverage = (model) => model.coverage < LOW_COVERAGE;

export const coverage = (model, digits = 1) =>
  lowCoverage(model)
    ? h("span", { class: "low" }, h("span", { "aria-hidden": "true" }, "◔ "), share(model.coverage, digits), h("span", { class: "sr" }, " low coverage"))
    : share(model.coverage);

/** Return whether an item of a model has several repeats, so that its score is their mean. */
export const hasRepeats = (benchmark) => benchmark.models.some((m) => m.repeats && m.repeats.max > 1);

/** Return whether some runs have ended and others have not. */
export const someEnded = (benchmark) => new Set(benchmark.models.map((m) => m.run_ended)).size > 1;

/** Return whether a model has scores that count only when its run ends: under repeats "all" no item of it counts before. */
export const waits = (model) => model.items === 0 && model.repeats !== null;

/** Show the scored repeats of an item: their number, or the mean with the least and the most. */
export const repeats = ({ repeats: r }) => (r && r.min !== r.max ? `${fixed(r.mean, 1)} (${count(r.min)} to ${count(r.max)})` : count(r?.max));

/** Show the title of a model, which an operator has given it, or its name. */
export const modelTitle = (model) => name(model.title ?? model.model);

/** Show the name of a model below its title; nothing without one. */
export const titled = (model) => model.title && h("span", { class: "aside" }, name(model.model));

/** Show the aliases of a model below its name; nothing without any. */
export const aliases = (model) =>
  model.aliases.length > 0 && h("span", { class: "aside" }, "includes ", model.aliases.map((alias, k) => [k > 0 && ", ", name(alias)]));

export const isHeld = ({ status }) => status === "held" || status === "invalidated";

export const notice = (text, names = []) => h("p", { class: "notice" }, sentence(text, names));

/** Show the name of a board: its title, if it has one, and the name of the benchmark. */
export const boardName = ({ benchmark, board }) => (board?.title ? [name(board.title), " ", h("span", { class: "aside" }, name(benchmark))] : name(benchmark));

/** Show the heading of a view: the benchmark, the title and an introduction. */
export const heading = (benchmark, title, about) => [h("p", { class: "crumb" }, h("a", { href: link.benchmark(benchmark) }, name(benchmark))), h("h1", { tabindex: "-1" }, title), about && h("p", { class: "about" }, about)];

/** Show where a view belongs: a link to the board. */
export const crumb = (b, words) => h("p", { class: "crumb" }, h("a", { href: link.benchmark(b.benchmark) }, name(b.benchmark)), ` / ${words}`);

// --- plots of one row; places are percentages of the width, so they need no measuring --------------------------------------------------

/** Return a scale from values to percentages of the width, with at most about `most` round ticks. */
export function scaleOf(low, high, format, most = 5) {
  const span = Math.max(high - low, 1e-6);
  const [from, to] = [low - 0.03 * span, high + 0.03 * span];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const x = (value) => (2 + (96 * (value - from)) / (to - from)).toFixed(2);
  const ticks = [];
  for (let k = Math.ceil(from / step); k * step <= to; k += 1) ticks.push(k * step || 0);
  return Object.assign(x, { ticks, format });
}

/** Draw the numbers of a scale. */
export const axis = (x) => s("svg", { class: "axis", height: 14, "aria-hidden": "true" }, x.ticks.map((tick) => s("text", { x: `${x(tick)}%`, y: 12, "text-anchor": "middle" }, x.format(tick))));

/** Draw a value with its interval. */
export function whisker(low, high, value, x, kind, words) {
  return s("svg", { class: "line-plot", role: "img", "aria-label": words },
    x.ticks.map((tick) => s("line", { class: tick === 0 && x.signed ? "zero" : "grid", x1: `${x(tick)}%`, x2: `${x(tick)}%`, y1: 0, y2: "100%" })),
    low !== null && [s("line", { class: `whisk ${kind}`, x1: `${x(low)}%`, x2: `${x(high)}%`, y1: "50%", y2: "50%" }), [low, high].map((end) => s("svg", { x: `${x(end)}%`, y: "50%", overflow: "visible" }, s("line", { class: `whisk ${kind}`, x1: 0, x2: 0, y1: -5, y2: 5 })))],
    s("circle", { class: `dot ${kind}`, cx: `${x(value)}%`, cy: "50%", r: 2.8 }));
}

/**
 * Make a table that turns into blocks on a phone. It sets the ARIA roles, which `display` on rows and cells removes.
 *
 * columns: [{title, class, head, group}], `group` on the first column of several under one name; each body: {head, rows: [{key, attributes, cells}]}.
 */
export function table(caption, columns, bodies, attributes = {}) {
  const row = ({ key, cells, attributes: more }) =>
    h("tr", { role: "row", "data-key": key, ...more }, cells.map((cell, k) => {
      const { title, class: kind, head, group } = columns[k];
      const tag = head ? "th" : "td";
      return h(tag, { role: head ? "rowheader" : "cell", scope: head && "row", class: kind, "data-label": title, "data-group": group }, cell);
    }));
  return h("table", { role: "table", ...attributes },
    h("caption", { class: "sr" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
      columns.map((c) => h("th", { role: "columnheader", scope: "col", class: c.class, title: c.about }, c.mark ?? c.title)))),
    bodies.map((body) => h("tbody", { role: "rowgroup", "data-key": body.key, class: body.class },
      body.head && h("tr", { role: "row", class: "group" }, h("th", { role: "rowheader", scope: "rowgroup", colspan: columns.length }, body.head)),
      body.rows.map(row))));
}

/** Return a button that copies a text; nothing where the browser has no clipboard. */
export function copies(text, label = "Copy") {
  const onclick = (event) => {
    const button = event.currentTarget;
    navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Copying was blocked"; });
    setTimeout(() => { button.textContent = label; }, 2000);
  };
  return navigator.clipboard && h("button", { class: "quiet", type: "button", onclick }, label);
}
