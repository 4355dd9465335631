// What several views are made of: names, sentences, chips, verdict cells, links, tables.

import { h } from "./dom.js";
import { count, more, share } from "./format.js";

/** Below this share of the items a model is marked: its rank rests on fewer items than its neighbours'. The monitor's setting `low_coverage`. */
export const LOW_COVERAGE = Number(document.documentElement.dataset.lowCoverage);

export const DECISIONS = [
  { key: "anytime_family", short: "Family", name: "Anytime, family-wise", group: "any", about: "valid whenever you look, over all pairs: the headline" },
  { key: "anytime", short: "Pair", name: "Anytime, this pair alone", group: "any", about: "valid whenever you look, for one pair that was chosen beforehand" },
  { key: "e_bh", short: "e-BH", name: "e-BH", group: "any", about: "a current view: may be taken back" },
  { key: "fixed_n", short: "Fixed", name: "Fixed n", group: "planned", about: "exact test at 5 %, looked at once" },
  { key: "bonferroni", short: "Bonf.", name: "Bonferroni", group: "planned", about: "over all pairs" },
  { key: "holm", short: "Holm", name: "Holm", group: "planned", about: "over all pairs" },
  { key: "benjamini_hochberg", short: "BH", name: "Benjamini-Hochberg", group: "planned", about: "controls the share of false decisions" },
  { key: "clustered", short: "Clust.", name: "Clustered", group: "planned", about: "items of one category count as related" },
];

export const RESOLUTIONS = [
  { key: "fixed_n", short: "Fixed", name: "Fixed n" },
  { key: "bonferroni", short: "Bonf.", name: "Bonferroni" },
  { key: "anytime", short: "Anyt.", name: "Anytime" },
  { key: "clustered", short: "Clust.", name: "Clustered" },
];

const TONES = { decided: "good", held: "warn", invalidated: "warn" };

export const link = {
  home: () => "#/",
  benchmark: (name, view = "") => `#/b/${encodeURIComponent(name)}${view && `/${view}`}`,
  pair: (name, a, b) => `#/b/${encodeURIComponent(name)}/pair/${encodeURIComponent(a)}/${encodeURIComponent(b)}`,
};

/** A name from outside, in its own direction. */
export const name = (text, attributes) => h("bdi", { class: "name", ...attributes }, text);

/** A sentence of the monitor with the names in it set apart. */
export function sentence(text, names) {
  const parts = [];
  const known = [...new Set(names)].filter(Boolean).sort((x, y) => y.length - x.length);
  let rest = text;
  while (rest) {
    let at = -1;
    let found = "";
    for (const candidate of known) {
      const place = rest.indexOf(candidate);
      if (place >= 0 && (at < 0 || place < at)) [at, found] = [place, candidate];
    }
    if (at < 0) break;
    parts.push(rest.slice(0, at), name(found));
    rest = rest.slice(at + found.length);
  }
  return [...parts, rest];
}

export const better = (pair, procedure = "anytime_family") => {
  const side = pair.decided[procedure];
  return side === null ? null : pair[`model_${side}`];
};

/** The status of a pair. Colour never stands alone: each has its sign and its word. */
export function chip(pair) {
  const against = pair.status === "decided" && pair.decided.anytime_family === "b";
  const tone = against ? "warn turned" : (TONES[pair.status] ?? "open");
  return h("span", { class: `chip ${tone}` }, against ? "decided, against the rank" : pair.status);
}

const tested = (pair, procedure) => {
  if (procedure === "clustered") return pair.p_clustered !== null;
  if (procedure === "anytime") return pair.log_e !== null;
  if (procedure === "fixed_n") return pair.gap !== null;
  return pair.gap !== null && pair.gap_family_low !== null;
};

/** Sign, tone and words of one decision. */
export function decision(pair, procedure) {
  const side = pair.decided[procedure];
  if (side === "a") return ["●", "good", `decided: ${pair.model_a} is better`];
  if (side === "b") return ["▼", "warn", `decided: ${pair.model_b} is better`];
  return tested(pair, procedure) ? ["○", "open", "undecided"] : ["·", "open", "not computed"];
}

/** Sign, tone and words of one resolution; squares, where decisions are round. */
export function resolution(pair, procedure) {
  const value = pair.resolved[procedure];
  if (value === null) return ["·", "open", "not computed"];
  return value ? ["■", "good", "resolved"] : ["□", "open", "not resolved"];
}

export const sign = ([glyph, tone, words]) =>
  h("span", { class: `sign ${tone}` }, h("span", { "aria-hidden": "true" }, glyph), h("span", { class: "sr" }, words));

/** How many items the benchmark has: declared, or as far as coverage tells. */
export function size(benchmark) {
  const model = benchmark.models.find((m) => m.coverage > 0 && m.coverage < 1);
  return Math.max(benchmark.items, model ? Math.round(model.items / model.coverage) : 0);
}

/** How many items a pair may still get; null where nobody has said how many there are. */
export function itemsLeft(pair, benchmark) {
  if (pair.status === "exhausted") return 0;
  return benchmark.order.policy === "completion" ? Math.max(0, size(benchmark) - pair.n) : null;
}

/** What would separate a pair, in a few words. */
export function prospect(pair, benchmark) {
  if (pair.status === "decided") return pair.decided_at_n ? `since ${count(pair.decided_at_n)} items` : "";
  if (pair.n === 0) return "no shared item yet";
  if (isHeld(pair)) return "";
  if (pair.status === "equivalent") return "within the declared margin";
  if (pair.items_to_decision === null) return pair.log_e === null || pair.b === null ? "" : "no number of items settles it as it stands";
  if (pair.items_to_decision < 1) return "";
  const left = itemsLeft(pair, benchmark);
  const needed = `needs ${more(pair.items_to_decision)} more items`;
  if (left === null || pair.items_to_decision <= left) return needed;
  return `${needed}, ${left ? `${count(left)} left` : "none left"}`;
}

export const lowCoverage = (model) => model.coverage < LOW_COVERAGE;

export const coverage = (model) =>
  lowCoverage(model)
    ? h("span", { class: "low" }, h("span", { "aria-hidden": "true" }, "◔ "), share(model.coverage), h("span", { class: "sr" }, " low coverage"))
    : share(model.coverage);

export const isHeld = ({ status }) => status === "held" || status === "invalidated";

/** Why no anytime verdict is given; null where verdicts are given. */
export function orderTrouble({ order, pairs }) {
  return order.policy === "none" || pairs.some(isHeld) ? `No verdict is given: ${order.reason ?? "the order does not allow one"}.` : null;
}

/** What looks odd about the order although the verdicts do not rest on it; null where nothing does. */
export const orderNote = (b) => (b.order.suspect && b.order.reason && !orderTrouble(b) ? `Note: ${b.order.reason}.` : null);

export const notice = (text, names = []) => h("p", { class: "notice" }, sentence(text, names));

/** A title with the sentence that says what stands below. */
export const heading = (title, about) => [h("h2", {}, title), about && h("p", { class: "about" }, about)];

/**
 * A table that turns into blocks on a phone. The roles are said aloud, because `display` on rows and cells takes them away.
 *
 * columns: [{title, class, head}]; each body: {head, rows: [{key, attributes, cells}]}.
 */
export function table(caption, columns, bodies, attributes = {}) {
  const row = ({ key, cells, attributes: more }) =>
    h("tr", { role: "row", "data-key": key, ...more }, cells.map((cell, k) => {
      const { title, class: kind, head } = columns[k];
      const tag = head ? "th" : "td";
      return h(tag, { role: head ? "rowheader" : "cell", scope: head && "row", class: kind, "data-label": title }, cell);
    }));
  return h("table", { role: "table", ...attributes },
    h("caption", { class: "sr" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
      columns.map((c) => h("th", { role: "columnheader", scope: "col", class: c.class, title: c.about }, c.mark ?? c.title)))),
    bodies.map((body) => h("tbody", { role: "rowgroup", "data-key": body.key, class: body.class },
      body.head && h("tr", { role: "row", class: "group" }, h("th", { role: "rowheader", scope: "rowgroup", colspan: columns.length }, body.head)),
      body.rows.map(row))));
}
