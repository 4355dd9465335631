// Show one pair: the verdict in a sentence, the number that it rests on, the chart that decides, and a line for each question.

import { get, report } from "../api.js";
import { evidence, interval, lead, pathTable, scaleOfP, wideWidth } from "../chart.js";
import { h } from "../dom.js";
import { downloads } from "../downloads.js";
import { apart, count, evalue, plural, small } from "../format.js";
import { DECISIONS, RESOLUTIONS, STEP_SIGNS, better, copies, decision, isHeld, link, name, notice, resolution, sentence, sign } from "../parts.js";
import { phrase } from "../words.js";

export const title = ({ benchmark, a, b }) => `${a} v. ${b}, ${benchmark}`;

const POINTS = 320;
const LAST = 60; // items at the end of the path that are drawn one by one

export async function load({ benchmark, a, b }, signal) {
  const [board, page] = await Promise.all([report(benchmark, signal), get("/pairs", { benchmark, model: a, other: b, limit: 1 }, signal)]);
  const [pair] = page.pairs;
  if (!pair || pair.n === 0) return { board, pair, path: null };
  const path = await get("/path", { benchmark, model_a: pair.model_a, model_b: pair.model_b, points: POINTS, last: LAST + 1 }, signal);
  return { board, pair, path };
}

export function render({ board, pair, path }, route) {
  if (!pair) return [h("h1", { tabindex: "-1" }, "No such pair"), h("p", {}, name(route.benchmark), " has no pair of ", name(route.a), " and ", name(route.b), ".")];
  const names = [pair.model_a, pair.model_b];
  const rank = (model) => count(board.models.find((m) => m.model === model)?.rank);
  const notes = [board.words.partial_note, board.words.board_note, !isHeld(pair) && board.words.held_note].filter(Boolean);
  const crumb = h("p", { class: "crumb" }, h("a", { href: link.benchmark(board.benchmark) }, name(board.benchmark)),
    ` · ranks ${rank(pair.model_a)} and ${rank(pair.model_b)} · `, h("b", { class: "pair-names" }, name(pair.model_a), h("span", { class: "v" }, " v. "), name(pair.model_b)));
  if (!path) return [crumb, h("h1", { tabindex: "-1", class: "versus" }, sentence(pair.reason, names)), notes.map((text) => notice(text))];
  const { words } = path;
  const [glyph, tone] = STEP_SIGNS[words.step];
  const held = isHeld(pair);
  const drawn = path.n.length > 1 && !held && main(path, pair, board);
  return [
    crumb,
    h("h1", { tabindex: "-1", class: "versus" }, h("span", { class: `sign ${tone}`, "aria-hidden": "true" }, glyph), " ", h("span", { class: "verdict-line" }, sentence(words.headline, names))),
    notes.map((text) => notice(text)),
    h("div", { class: "numbers" }, restsOn(pair, words, names, BETS.includes(board.order.policy) && path.lead_needed === null && !board.look), counts(pair)),
    h("p", { class: "actions" }, h("a", { class: "button", href: link.items(board.benchmark, pair.model_a, pair.model_b) }, "Items on which they differ"), files(board, pair, path, drawn)),
    drawn && h("div", { class: "charts" }, drawn),
    h("div", { class: "rows" }, words.rows.map((row) => line(row, { board, pair, path, names }))),
    h("p", { class: "about assumes" }, words.policy_note, words.assumes.length > 0 && " Assumes that"),
    words.assumes.length > 0 && h("ul", { class: "about assumed" }, words.assumes.map((text) => h("li", {}, `${text}.`))),
  ];
}

const BETS = ["committed", "trusted"];

/** Draw what decides under the order policy: the lead that the exact test needs, or the e-value; nothing where a test of graded scores does. */
function main(path, pair, board) {
  if (path.log_e && BETS.includes(board.order.policy) && path.lead_needed === null) return evidence(path, board, wideWidth());
  return pair.b !== null && lead(path, pair.b - pair.c);
}

/** Offer the evidence along the shared items. */
function files(b, pair, path, chart) {
  const drawn = path.n.length > 1;
  const columns = drawn ? ["n", "gap", "gap_low", "gap_high", "log_e", "log_e_a", "log_e_b"].filter((key) => path[key]) : [];
  return downloads({
    name: [b.benchmark, pair.model_a, pair.model_b], json: () => ({ benchmark: b.benchmark, pair, path }),
    rows: drawn && (() => [columns, ...path.n.map((_, k) => columns.map((key) => path[key][k]))]), figure: chart ? ".charts" : null,
    heading: `${pair.model_a} v. ${pair.model_b}, ${b.benchmark}`, caption: path.words.headline,
  });
}

// --- the number --------------------------------------------------------------------------------------------------------------------

const DIGITS = 1; // more than usual, so that a number and its threshold have three

/** Show the number that the verdict rests on next to its threshold, with the digits that show which is the smaller one, on one scale. */
function restsOn(p, words, names, bets) {
  const below = words.turned_note && h("p", { class: "turned" }, sentence(words.turned_note, names));
  if (p.p_anytime === null || words.number === null) return h("div", {}, below);
  const big = (text) => {
    const [leading, exponent] = text.split(" × ");
    return [leading, exponent && h("i", {}, ` × ${exponent}`)];
  };
  const figure = (text, label, tone) => h("div", { class: tone }, h("p", { class: "big" }, big(text)), h("p", {}, label));
  if (p.family_threshold === null) return h("div", {}, h("div", { class: "duo" }, figure(small(Math.log(p.p_anytime), DIGITS), words.number)), below);
  const limit = Math.log(p.family_threshold);
  if (bets) {
    const e = p.p_anytime < 1 ? -Math.log(p.p_anytime) : p.log_e;
    const [now, needed] = apart(evalue, e, -limit);
    return h("div", {}, h("div", { class: "duo" }, figure(now, words.number), h("p", { class: "than" }, e < -limit ? "<" : "≥"), figure(needed, phrase("at_or_above"), "good")), below);
  }
  const [found, level] = p.p_anytime === 0 ? ["< 10⁻³⁰⁰", small(limit, DIGITS)] : apart((x, extra) => small(x, extra + DIGITS), Math.log(p.p_anytime), limit);
  return [
    h("div", {}, h("div", { class: "duo" }, figure(found, words.number), h("p", { class: "than" }, p.p_anytime > p.family_threshold ? ">" : "≤"), figure(level, phrase("at_or_below"), "good")), below),
    scaleOfP(p.p_anytime, p.family_threshold),
  ];
}

function counts(p) {
  if (p.b === null) return null;
  const both = Math.round(p.p_a * p.n) - p.b;
  const neither = p.n - p.b - p.c - both;
  const cell = (n, kind) => h("td", { class: `number ${kind}` }, h("b", {}, count(n)));
  const side = (model, word) => [h("span", { class: "who" }, name(model)), ` ${word}`];
  return h("div", {},
    h("table", { class: "twobytwo" }, h("caption", { class: "sr" }, plural(p.n, "shared item")),
      h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, side(p.model_b, "right")), h("th", { scope: "col" }, side(p.model_b, "wrong")))),
      h("tbody", {},
        h("tr", {}, h("th", { scope: "row" }, side(p.model_a, "right")), cell(both, ""), cell(p.b, "only-a")),
        h("tr", {}, h("th", { scope: "row" }, side(p.model_a, "wrong")), cell(p.c, "only-b"), cell(neither, "")))),
    h("p", { class: "about" }, `${plural(p.b + p.c, "item")} that one alone has right: ${count(p.b)} − ${count(p.c)} = `, h("b", {}, p.b < p.c ? `−${count(p.c - p.b)}` : count(p.b - p.c))));
}

// --- the lines ---------------------------------------------------------------------------------------------------------------------

/** Show one question: its answer, and more on demand. */
function line({ key, head, answer, detail }, given) {
  const more = MORE[key]?.(given);
  const shown = [h("span", { class: "head" }, head), h("b", {}, answer), h("span", { class: "note" }, sentence(detail, [...given.names, given.board.benchmark]))];
  return more ? h("details", { "data-key": key }, h("summary", {}, shown), more) : h("p", { "data-key": key, class: "plain" }, shown);
}

const MORE = {
  gap: ({ board, pair, path }) => path.gap_low && path.n.length > 1 && [interval(path, board.alpha, isHeld(pair)), pathTable(path)],
  procedures: ({ pair }) => procedures(pair),
  evidence: ({ board, pair, path }) => path.log_e && path.n.length > 1 && [evidence(path, board), !path.gap_low && pathTable(path)],
  clusters: ({ board, pair }) => h("p", {}, h("a", { href: link.categories(board.benchmark, pair.model_a) }, "Each category on its own")),
  why: ({ path, names }) => h("ul", {}, path.words.why.map((text) => h("li", {}, sentence(text, names)))),
  quote: ({ path }) => copies(path.words.rows.find((row) => row.key === "quote").detail),
};

function procedures(p) {
  const row = (procedure, found, note) => h("li", {}, sign(found), h("span", {}, procedure.name), h("span", { class: "note" }, note));
  return h("div", { class: "columns" },
    h("section", {}, h("h3", {}, "Decided: is there evidence which model is better?"),
      h("ul", { class: "procedures" }, DECISIONS.map((procedure) => {
        const side = better(p, procedure.key);
        const found = decision(p, procedure.key);
        return row(procedure, found, [side ? ["for ", name(side)] : found[2], `; ${procedure.about}`]);
      }))),
    h("section", {}, h("h3", {}, "Resolved: would a planned test of this many items detect a gap of this size?"),
      h("ul", { class: "procedures" }, RESOLUTIONS.map((procedure) => row(procedure, resolution(p, procedure.key), resolution(p, procedure.key)[2])))));
}
