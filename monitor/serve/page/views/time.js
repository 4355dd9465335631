// Show the ranking as of an earlier moment: the verdicts in force then, on a slider with a mark for each that fell or ended.

import { get } from "../api.js";
import { h, s } from "../dom.js";
import { count, plural, ranks } from "../format.js";
import { glyph, ticks } from "../glyph.js";
import { choose, chosen } from "../options.js";
import { heading, headsOf, link, name, sentence } from "../parts.js";
import { arrange, fitColumns, strip, tieCell } from "../ties.js";
import { WORDS, phrase } from "../words.js";

const ROWS = 150;
const HEADS = { lanes: "ties", rank: "ranks", strip: "places", model: "model", step: "step" };

export const title = ({ benchmark }) => `Time, ${benchmark}`;

/** Get the board of a moment; the replay is the same at each of them. */
export async function load({ benchmark, options }, signal, earlier) {
  const at = options.get("at");
  const [data, replay] = await Promise.all([
    get("/moments", { benchmark, at: /^\d{1,18}$/.test(at ?? "") ? at : null }, signal),
    earlier?.replay ?? get("/replay", { benchmark }, signal),
  ]);
  return { ...data, replay };
}

export function render(data, { benchmark, options }) {
  const { moments } = data;
  return [
    ...heading(benchmark, "The ranking over time"),
    moments.length === 0 ? h("p", { class: "about" }, phrase(data.kept ? "none_fell" : "not_kept")) : [
      result(data),
      line(data, options),
      happened(data, benchmark),
      board(data, benchmark, options),
    ],
    h("p", { class: "about assumes" }, "Models are in their present order: past scores and ranks are not kept, and a model that had no score yet is shown as tied. ",
      data.omitted > 0 && `${plural(data.omitted, "change")} of scores, or under a declaration, that were replaced since ${data.omitted === 1 ? "is" : "are"} omitted. `),
    replayed(data.replay, benchmark),
  ];
}

// --- the lines ---------------------------------------------------------------------------------------------------------------------

const STEP = { 1: "yes", 0: "no", "-1": "against" };

/** Show how much was decided then, with a tick for each step down the present ranking. */
function result(data) {
  const values = data.steps_decided.map((side) => STEP[side]);
  return h("div", { class: "result" },
    h("p", { class: "headline" }, h("b", {}, phrase("decided_then", { some: data.decided, n: data.pairs })), h("span", {}, phrase("steps_then", { some: values.filter((value) => value !== "no").length, n: values.length }))),
    h("span", { class: "drawn", "aria-hidden": "true" }, ticks(values)),
    h("p", { class: "facts" }, phrase("in_force")));
}

// --- the slider --------------------------------------------------------------------------------------------------------------------

/** Return the place of the moment shown: the last one up to its offset; -1 ahead of the first. */
const placeOf = ({ moments, at }) => moments.findLastIndex(({ offset }) => offset <= at);

const SCALE = 1000;

/** How many moments each key moves the slider. */
const MOVES = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };

function line(data, options) {
  const { moments, at } = data;
  const [first, end] = [moments[0].offset, moments.at(-1).offset];
  const place = placeOf(data);
  const x = (offset) => (SCALE * Math.max(offset - first, 0)) / Math.max(end - first, 1);
  const go = (to) => choose({ at: to >= moments.length - 1 ? null : String(moments[Math.max(to, 0)].offset) });
  const nearest = (value) => Math.max(0, moments.findLastIndex(({ offset }) => x(offset) <= value + 0.5));
  const onkeydown = (event) => {
    if (!(event.key in MOVES) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(placeOf({ moments, at: Number(chosen("at") ?? end) }) + MOVES[event.key]); // a key that repeats is ahead of the view
  };
  const words = phrase("moment", { moment: moment(data, options, place), pairs: plural(data.decided, "pair") });
  return h("div", { class: "timeline" },
    marks(data, x),
    h("input", { type: "range", id: "moment", min: 0, max: SCALE, step: 1, "aria-label": "Moment", "aria-valuetext": words, "data-at": at,
      paint: (node) => { node.value = String(Math.round(x(at))); },
      oninput: (event) => go(nearest(Number(event.target.value))), onkeydown }),
    h("p", { class: "span-of-log" }, h("span", {}, when(data.first_time) ?? phrase("first")), h("b", { role: "status" }, moment(data, options, place)), h("span", {}, when(data.last_time) ?? phrase("last"))),
    h("p", { class: "steps-of-time" },
      h("button", { type: "button", class: "chip-button", disabled: place <= 0, onclick: () => go(place - 1) }, "‹ earlier"),
      h("button", { type: "button", class: "chip-button", disabled: place >= moments.length - 1, onclick: () => go(place + 1) }, "later ›"),
      h("button", { type: "button", class: "chip-button", "aria-pressed": String(!options.has("at")), onclick: () => choose({ at: null }) }, "Now")),
    h("p", { class: "about" }, phrase("timeline", { sign: h("b", { class: "warn" }, "▼") }),
      data.moments_total > moments.length && ` ${count(moments.length)} of ${count(data.moments_total)} moments are drawn.`));
}

const when = (time) => (time ? new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" }) : null);

function moment(data, options, place) {
  const which = place < 0 ? phrase("before_first") : `moment ${count(place + 1)} of ${count(data.moments.length)}, ${when(data.time) ?? "time not recorded"}`;
  return `${options.has("at") ? "" : "Now: "}${which}`;
}

/** Draw a tick for each moment, taller where more pairs were decided or settled. */
function marks({ moments, at }, x) {
  const fell = (m, before) => m.decided + m.settled - (before ? before.decided + before.settled : 0);
  const most = Math.max(...moments.map((m, k) => fell(m, moments[k - 1])), 1);
  const parts = moments.map((m, k) => {
    const before = moments[k - 1];
    const n = fell(m, before);
    const px = `${x(m.offset) / (SCALE / 100)}%`;
    const tall = 4 + (12 * Math.log1p(n)) / Math.log1p(most);
    return [
      n > 0 && s("line", { class: m.offset <= at ? "fell" : "fell later", x1: px, x2: px, y1: 24, y2: 24 - tall }),
      m.steps > (before?.steps ?? 0) && s("circle", { class: m.offset <= at ? "fell" : "fell later", cx: px, cy: 5, r: 4 }),
      m.ended > (before?.ended ?? 0) && s("svg", { x: px, y: 28, overflow: "visible" }, s("path", { class: "ended", d: "M-4 0H4L0 7Z" })),
    ];
  });
  return s("svg", { class: "marks-of-time", height: 36, "aria-hidden": "true" }, s("line", { class: "base", x1: 0, x2: "100%", y1: 24, y2: 24 }), parts);
}

/** List the changes of the moment. */
function happened({ changes, changes_total: total }, benchmark) {
  if (!changes.length) return h("p", { class: "about" }, "No verdict fell or ended at this moment.");
  return h("details", { open: total <= 5 }, h("summary", {}, `${plural(total, "change")} at this moment`),
    h("ul", { class: "happened" }, changes.map((change) => h("li", { "data-key": change.id },
      h("a", { href: link.pair(benchmark, change.model_a, change.model_b) }, change.kind, h("span", { class: "sr" }, ` ${change.model_a} and ${change.model_b}`)), " ",
      sentence(change.sentence, [change.model_a, change.model_b, benchmark])))),
    total > changes.length && h("p", { class: "about" }, `These are the first ${count(changes.length)}. Changes lists all of them.`));
}

// --- the board ---------------------------------------------------------------------------------------------------------------------

function board(data, benchmark, options) {
  const text = (options.get("q") ?? "").toLowerCase();
  const all = data.models.map((model, k) => ({ model, rank: k + 1, rank_low: data.rank_low[k], rank_high: data.rank_high[k] }));
  const found = all.filter(({ model }) => model.toLowerCase().includes(text));
  const shown = found.slice(0, ROWS);
  const arranged = arrange(data.ties, shown.map((m) => m.rank), shown.length === all.length);
  const ruled = new Set(shown.length === all.length ? data.ties.rules : []);
  const column = (kind, label) => h("th", { scope: "col", class: kind }, label);
  const row = (m, k) => h("tr", { "data-key": m.model, class: ruled.has(m.rank) && "ruled" },
    h("td", { class: "lanes" }, tieCell(arranged, k)),
    h("td", { class: "rank" }, ranks(m.rank_low, m.rank_high)),
    h("td", { class: "strip" }, strip(m, all.length)),
    h("th", { scope: "row", class: "model" }, h("span", { class: "who" }, h("a", { href: link.model(benchmark, m.model), title: m.model }, name(m.model)))),
    h("td", { class: "step then" }, m.rank < all.length && [
      glyph("decided", STEP[data.steps_decided[m.rank - 1]]), " ", words(data.steps_decided[m.rank - 1])]));
  return [
    h("div", { class: "tools" }, h("input", { type: "search", id: "find", placeholder: "Find a model", "aria-label": "Find a model", "aria-keyshortcuts": "/", spellcheck: "false", oninput: (event) => choose({ q: event.target.value }),
      paint: (field) => { if (field !== document.activeElement) field.value = options.get("q") ?? ""; } }),
    found.length > ROWS && h("span", { class: "aside" }, `the first ${count(ROWS)} of ${count(found.length)} models`)),
    shown.length === 0 ? h("p", { class: "about" }, "No model matches.") :
      h("table", { class: "board past", paint: fitColumns(arranged, all.length) }, h("caption", { class: "sr" }, "Ties and possible ranks at this moment"),
        h("thead", {}, h("tr", {}, ["lanes", "rank", "strip", "model", "step"].map((kind) => column(kind, headsOf(data)[HEADS[kind]])))),
        h("tbody", {}, shown.map(row))),
    arranged.omitted && h("p", { class: "about" }, "Too many bands overlap here, so the ties are shown as possible ranks only."),
  ];
}

const words = (decided) => {
  const step = decided === 1 ? "decided" : decided === -1 ? "against" : null;
  return step ? h("b", { class: step === "decided" ? "good" : "warn" }, WORDS.steps[step].word) : WORDS.answers.decided.no;
};

// --- the replay --------------------------------------------------------------------------------------------------------------------

/** Draw what p < .05 at each look would have called, next to anytime verdicts, over the same scores in a random order. */
function replayed(replay, benchmark) {
  const head = h("h2", {}, "With and without peeking");
  if (replay.reason) return [head, h("p", { class: "about" }, `There is no replay here: ${replay.reason}.`)];
  const { items, looks, pairs, steps } = replay;
  const x = (item) => (100 * item) / items;
  const shown = steps.slice(0, ROWS);
  const peeked = ({ called }) => s("svg", { class: "peeked", height: 13, "aria-hidden": "true" },
    s("line", { class: "base", x1: 0, x2: "100%", y1: 6.5, y2: 6.5 }),
    called.map(([from, to, side]) => s("rect", { class: side > 0 ? "call" : "call against", x: `${x(from)}%`, y: 2, width: `${x((to ?? items) - from)}%`, height: 9 })),
    called.filter(([, to]) => to !== null).map(([, to]) => s("svg", { x: `${x(to)}%`, y: 2, overflow: "visible" }, s("path", { class: "ended", d: "M-4 0H4L0 7Z" }))));
  const kept = ({ decided_at: at, decided_side: side }) => s("svg", { class: "peeked", height: 13, "aria-hidden": "true" },
    s("line", { class: "base", x1: 0, x2: "100%", y1: 6.5, y2: 6.5 }),
    at !== null && [
      s("rect", { class: side > 0 ? "verdict" : "verdict against", x: `${x(at)}%`, y: 3.5, width: `${100 - x(at)}%`, height: 6 }),
      s("circle", { class: side > 0 ? "verdict" : "verdict against", cx: `${x(at)}%`, cy: 6.5, r: 5 })]);
  const column = (kind, label, more) => h("th", { scope: "col", class: kind }, label, more);
  const span = () => s("svg", { class: "axis", height: 14, "aria-hidden": "true" }, s("text", { x: 0, y: 12 }, "item 0"), s("text", { x: "100%", y: 12, "text-anchor": "end" }, count(items)));
  const row = (step) => h("tr", { "data-key": `${step.model_a}\n${step.model_b}` },
    h("th", { scope: "row", class: "model" }, h("a", { href: link.pair(benchmark, step.model_a, step.model_b), title: `${step.model_a}, ${step.model_b}` }, name(step.model_a))),
    h("td", { class: "strip-of-time" }, peeked(step)),
    h("td", { class: "n" }, step.undone ? h("b", { class: "warn" }, "▼ ", count(step.undone)) : "0"),
    h("td", { class: "strip-of-time" }, kept(step)),
    h("td", { class: "n" }, step.decided_at === null ? "tie" : h("b", { class: step.decided_side > 0 ? "good" : "warn" }, count(step.decided_at))));
  return [
    head,
    h("p", {}, h("b", {}, `p < .05 at each of ${count(looks)} looks calls ${plural(replay.called, "winner")} and withdraws ${count(replay.undone)}`),
      `, in ${count(replay.undone_pairs)} of ${plural(pairs, "pair")}. `,
      h("b", {}, phrase("anytime", { n: replay.decided })), phrase("none_withdrawn")),
    h("table", { class: "replay" }, h("caption", { class: "sr" }, "Calls of p < .05 and anytime verdicts for each step down the ranking"),
      h("thead", {}, h("tr", {}, column("model", "Step down from"), column("strip-of-time", "p < .05 at each look", span()), column("n", "Withdrawn"),
        column("strip-of-time", "Anytime verdict", span()), column("n", "At item"))),
      h("tbody", {}, shown.map(row))),
    h("p", { class: "about" }, phrase("replay", { items: plural(items, "item"), pairs: plural(pairs, "pair"), sign: h("b", { class: "warn" }, "▼") }),
      shown.length < steps.length && `The first ${count(ROWS)} of ${count(steps.length)} steps are drawn.`),
  ];
}
