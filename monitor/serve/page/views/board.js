// Show the leaderboard as a forest plot: tie bands, possible ranks, scores, and the step from each model to the next.

import { allPairs, board as getBoard } from "../api.js";
import { battles, ratings, unit, votes } from "../battles.js";
import { h, s } from "../dom.js";
import { downloads } from "../downloads.js";
import { byName, count, fixed, isolated, percent, plural, points, ranks } from "../format.js";
import { states, ticks } from "../glyph.js";
import { goal } from "../goal.js";
import { members } from "../members.js";
import { choose } from "../options.js";
import { LOW_COVERAGE, STEP_SIGNS, aliases, axis, boardName, coverage, headsOf, link, lowCoverage, modelTitle, name, notice, scaleOf, sentence, size, someEnded, stepOf, titled, waits, whisker } from "../parts.js";
import { WORDS, phrase } from "../words.js";
import { MAX_LANES, arrange, fitColumns, rankX, strip, tieCell, tiedRanks } from "../ties.js";

export const title = ({ benchmark }) => benchmark;

export async function load({ benchmark, options }, signal) {
  const board = await getBoard(benchmark, signal);
  const known = (model) => board.report.models.some((m) => m.model === model);
  const [to, tie] = [options.get("to"), options.get("tie")];
  const against = known(to) ? { to, pairs: await allPairs(benchmark, to, signal) } : null;
  const open = known(tie) && board.ties.bands === null ? { tie, pairs: await allPairs(benchmark, tie, signal) } : null;
  return { ...board, against, open };
}

const SORTS = {
  score: [null, (x, y) => x.rank - y.rank],
  range: [(heads) => heads.places, (x, y) => x.rank_low - y.rank_low || x.rank_high - y.rank_high || x.rank - y.rank],
  items: [(heads) => heads.items, (x, y) => y.items - x.items || x.rank - y.rank],
  name: [(heads) => heads.model, (x, y) => byName(x.model, y.model)],
};

/** Rows from which only those in view are drawn. */
const WINDOWED = 150;
const BEYOND = 40; // rows drawn above and below the window

export function render(data, route) {
  const { report: b, ties } = data;
  const { words } = b;
  return [
    h("div", { class: "title of-board" }, h("h1", { tabindex: "-1" }, boardName(b)), h("p", { class: "about" }, facts(b).map((text, k) => h("span", {}, k > 0 && " · ", text)))),
    words.partial_note && notice(words.partial_note),
    words.reading_notes.map((text) => notice(text)),
    words.board_note && notice(words.board_note),
    words.held_note && !b.result && !b.suite && notice(words.held_note), // else the line "Decided" gives the reason
    (!b.suite || b.models.length > 0) && result(b),
    b.models.length > 1 && legend(b, ties),
    b.models.length ? board(data, route) : h("p", { class: "about" }, b.suite ? "No model has a score in every member yet." : "No model has a score yet. Results appear here as they arrive."),
    b.models.length > 1 && key(b, ties),
    members(b),
    battles(b),
    words.coverage_note && h("p", { class: "about" }, sentence(words.coverage_note, moved(b))),
    words.weights_note && h("p", { class: "about" }, words.weights_note),
    h("p", { class: "about assumes" }, words.assumption_note, " ", words.order_note && `${words.order_note} `, h("a", { href: link.benchmark(b.benchmark, "data") }, "Data quality")),
  ];
}

/** Return the models whose ranks differ on the items that all models have. */
const moved = (b) => b.models.filter((m) => m.shared_rank !== null && m.shared_rank !== m.rank).map((m) => m.model);

function facts(b) {
  if (b.battles) return [votes(b)];
  const all = size(b);
  const items = all > b.items ? `${count(b.items)} of ${plural(all, "item")}` : plural(b.items, "item");
  const every = b.result?.decided.facts.find(({ code }) => code === "neighbours");
  const last = every ? phrase("decided_then", { some: every.all_decided, n: every.all_pairs }) : plural(b.events, "score");
  return [`${plural(b.models.length, "model")} · ${items}`, last];
}

// --- the result --------------------------------------------------------------------------------------------------------------------

const steps = (b) => b.pairs.map((p, k) => ({ ...p, need: b.words.need_notes[k] })).filter((p) => p.adjacent);

/** Show who is best and whether that is decided, how many steps are real with one tick for each, and what would change it; a goal comes first. */
function result(b) {
  if (!b.result) return h("p", { class: "about" }, b.models.length === 1 ? "Only one model: there is no pair to compare yet." : b.battles ? "No prompt of a pair has all its votes yet, so no pair can be judged." : "No two models share an item yet.");
  const names = b.models.map((m) => m.model);
  const { steps: real } = b.result;
  const [best, ...lines] = b.words.result.map(([strong, rest]) => [strong && h("b", {}, sentence(strong, names)), strong && rest && " ", rest && h("span", {}, sentence(rest, names))]);
  return h("div", { class: "result" },
    b.goal && h("dl", {}, goal(b, names)),
    h("p", { class: "headline" }, best),
    real && h("span", { class: "drawn", "aria-hidden": "true" }, ticks(steps(b).map((pair) => (stepOf(pair) === "open" ? "open" : states(pair).decided)))),
    lines.map((line, k) => h("p", { class: real && !k ? "facts" : "facts change" }, line)));
}

// --- what is on display ------------------------------------------------------------------------------------------------------------

/** Return the models that the choices in the address leave, in their order. */
function displayed({ report: b, ties, open }, options) {
  const tied = tiedRanks(ties);
  const chosen = new Set(options.getAll("m"));
  const wanted = (options.get("q") ?? "").toLowerCase();
  const tie = b.models.find((m) => m.model === options.get("tie"));
  const withTie = tie && (tied?.get(tie.rank) ?? (open && undecided(open)));
  const kept = b.models.filter((m) =>
    (!wanted || [m.model, m.title ?? "", ...m.aliases].some((word) => word.toLowerCase().includes(wanted)))
    && (!withTie || m === tie || withTie.has(m.rank) || withTie.has(m.model))
    && (!options.get("full") || !lowCoverage(m))
    && (!chosen.size || options.get("pick") || chosen.has(m.model)));
  const [, compare] = SORTS[options.get("sort")] ?? SORTS.score;
  return kept.sort(compare);
}

const undecided = ({ tie, pairs }) => new Set(pairs.filter((p) => p.decided.anytime_family === null).map((p) => (p.model_a === tie ? p.model_b : p.model_a)));

/** Keep the rows in place while the reader points at one or has the focus in one. */
const kept = { place: null, order: [], moved: 0 };

/** Return whether rows wait for the reader to look away, and are drawn at the next load. */
export const pending = () => kept.moved > 0;

function inPlace(models, place) {
  const table = document.querySelector(".board");
  const busy = table && (table.matches(":hover") || table.contains(document.activeElement));
  const order = models.map((m) => m.model);
  const same = kept.place === place && kept.order.length === order.length && kept.order.every((model) => order.includes(model));
  if (!busy || !same) {
    Object.assign(kept, { place, order, moved: 0 });
    return [models, 0];
  }
  const byName = new Map(models.map((m) => [m.model, m]));
  kept.moved = order.filter((model, k) => model !== kept.order[k]).length;
  return [kept.order.map((model) => byName.get(model)), kept.moved];
}

// --- search, filters, order --------------------------------------------------------------------------------------------------------

function tools(b, shown, options, next) {
  const value = (now) => (select) => { if (select.value !== now) select.value = now; };
  const select = (label, name_, key_, choices) => h("select", { "aria-label": label, once: { key: `${label}\n${key_}`, make: () => choices().map(([value_, words]) => h("option", { value: value_ }, words)) },
    onchange: (event) => choose({ [name_]: event.target.value }), paint: value(options.get(name_) ?? "") });
  const names = b.models.map((m) => m.model);
  const models = (label, name_, first) => select(label, name_, names.join("\n"), () => [["", first], ...names.map((m) => [m, isolated(m)])]);
  const toggle = (label, pressed, change) => h("button", { type: "button", class: "chip-button", "aria-pressed": String(pressed), onclick: () => choose(change) }, label);
  const heads = headsOf(b);
  const full = b.models.filter((m) => !lowCoverage(m)).length;
  const picked = options.getAll("m");
  const every = !["q", "tie", "full", "m"].some((key_) => options.has(key_));
  return h("div", { class: "tools of-board", role: "group", "aria-label": "Choose what the board shows" },
    h("input", { type: "search", id: "find", placeholder: "Find a model", "aria-label": "Find a model", "aria-keyshortcuts": "/", spellcheck: "false", oninput: (event) => choose({ q: event.target.value }),
      paint: (field) => { if (field !== document.activeElement) field.value = options.get("q") ?? ""; } }),
    toggle(`All ${count(b.models.length)}`, every, { q: null, tie: null, full: null, m: null, pick: null }),
    full < b.models.length && toggle(`≥ ${percent(LOW_COVERAGE, 0)} % of items ${count(full)}`, options.has("full"), { full: options.has("full") ? null : "1" }),
    toggle(options.has("pick") ? "Done" : picked.length ? `Chosen ${count(picked.length)}` : "Choose models", options.has("pick"), { pick: options.has("pick") ? null : "1" }),
    models("Show the models in a tie with", "tie", "Tied with…"),
    models("Compare all with", "to", "Compare all with…"),
    select("Sort", "sort", heads.score, () => [["", heads.score], ...Object.entries(SORTS).slice(1).map(([key_, [label]]) => [key_, label(heads)])].map(([key_, label]) => [key_, `Sort: ${label}`])),
    h("span", { class: "spacer" }),
    files(b, shown, next),
    h("p", { class: "sr", role: "status" }, `${plural(shown.length, "model")} on display`));
}

const COLUMNS = ["rank", "rank_low", "rank_high", "model", "mean", "mean_low", "mean_high", "items", "coverage", "next_model", "gap_to_next", "decided", "settled", "resolved_fixed_n", "needs_items"];

/** Offer the rows on display, the report, and the picture of the board. */
function files(b, shown, next) {
  const line = (m) => {
    const p = next.get(m.model);
    const step = p ? [p.model_b, p.gap, p.decided.anytime_family, p.settled, p.resolved.fixed_n, p.needs_items] : [];
    return [m.rank, m.rank_low, m.rank_high, m.model, m.mean, m.mean_low, m.mean_high, m.items, m.coverage, ...step, ...(b.battles ? measureOf(b).of(m) : [])];
  };
  const columns = b.battles ? [...COLUMNS, "rating", "rating_low", "rating_high"] : COLUMNS;
  return downloads({
    name: [b.benchmark, "board"], rows: () => [columns, ...shown.map(line)], json: () => b,
    figure: shown.length > 0 && shown.length <= WINDOWED ? ".board" : null, why: shown.length > 0 && `A picture takes at most ${WINDOWED} rows: choose some models first.`,
    heading: b.benchmark, caption: `${facts(b).join(" · ")}${shown.length < b.models.length ? `, ${count(shown.length)} of the models drawn` : ""}${phrase("ties_at", { level: percent(b.alpha, 0) })}`,
  });
}

// --- the table ---------------------------------------------------------------------------------------------------------------------

function board(data, route) {
  const { report: b, ties, against } = data;
  const { options } = route;
  const [shown, moved] = inPlace(displayed(data, options), location.hash);
  const byScore = !SORTS[options.get("sort")] || options.get("sort") === "score";
  const baseline = against && options.get("to") === against.to ? compared(against) : null;
  const context = {
    b, options, baseline, byScore,
    arranged: arrange(ties, shown.map((m) => m.rank), shown.length === b.models.length),
    next: new Map(steps(b).map((p) => [p.model_a, p])),
    ruled: new Set(byScore && !moved ? ties.rules : []),
    measure: measureOf(b),
    x: baseline ? gapScale(baseline, shown) : scoreScale(shown, measureOf(b)),
    tied: tiedRanks(ties),
  };
  const { from, to } = windowOf(shown.length);
  const rows = shown.slice(from, to).map((m, k) => row(m, from + k, shown, context));
  const gap = (rows_) => rows_ > 0 && h("tr", { class: "gap", "aria-hidden": "true", "data-key": `gap ${rows_ === from ? "above" : "below"}`, paint: (node) => { node.style.height = `${rows_ * rowHeight()}px`; } }, h("td", { colspan: context.arranged.lanes ? 7 : 6 }));
  return [
    tools(b, shown, options, context.next),
    shown.length > WINDOWED && overview(shown, b, ties, byScore),
    h("p", { class: "about moved", role: "status" }, moved > 0 && `The ranking has changed: ${plural(moved, "row")} will move when pointer and focus leave the board.`),
    shown.length === 0 ? h("p", { class: "about" }, "No model matches. ", h("button", { type: "button", class: "quiet", onclick: () => choose({ q: null, tie: null, full: null, m: null }) }, "Show all")) :
      h("table", { role: "table", class: ["board", options.has("pick") && "picking", !context.arranged.lanes && "unlaned"].filter(Boolean).join(" "), "aria-rowcount": shown.length + 1, paint: fitColumns(context.arranged, b.models.length) },
        h("caption", { class: "sr" }, baseline ? `Ranking, with the gap of each model to ${against.to}` : "Ranking with tie bands"),
        head(context),
        h("tbody", { role: "rowgroup", onpointerover: (event) => dim(event, context.tied), onpointerleave: undim },
          from > 0 && gap(from), rows, to < shown.length && gap(shown.length - to))),
    context.arranged.omitted && h("p", { class: "about" }, phrase("too_many_bands", { n: MAX_LANES })),
    context.arranged.threadsOmitted > 0 && h("p", { class: "about" }, phrase("low_coverage", { n: context.arranged.threadsOmitted })),
  ];
}

const rowHeight = () => (innerWidth <= 600 ? 52 : 24);

/** Return which rows to draw. */
function windowOf(length) {
  if (length <= WINDOWED || document.documentElement.classList.contains("printing")) return { from: 0, to: length };
  const body = document.querySelector(".board tbody");
  const above = body ? Math.max(0, -body.getBoundingClientRect().top) : 0;
  const step = BEYOND / 2; // the window moves in steps, so that not every movement draws again
  const first = Math.min(Math.floor(above / rowHeight() / step) * step, length);
  return { from: Math.max(0, first - BEYOND), to: Math.min(length, first + Math.ceil(innerHeight / rowHeight()) + BEYOND + step) };
}

/** Return what to draw again after scrolling; null where the drawn rows still suffice. */
export function scrolled() {
  const table = document.querySelector(".board");
  const length = Number(table?.getAttribute("aria-rowcount") ?? 0) - 1;
  if (length <= WINDOWED) return false;
  const first = Number(table.querySelector("tbody [aria-rowindex]")?.getAttribute("aria-rowindex") ?? 2) - 2;
  return windowOf(length).from !== first;
}

function head({ b, baseline, x }) {
  const heads = headsOf(b);
  const column = (kind, label, more_, about) => h("th", { role: "columnheader", scope: "col", class: kind, title: about }, label, more_);
  const edge = (rank) => s("text", { x: `${rankX(rank, b.models.length)}%`, y: 12, "text-anchor": rank < 100 ? "middle" : "end" }, count(rank)); // a longer one would reach the next head
  return h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
    column("lanes", heads.ties),
    column("rank", heads.ranks),
    column("strip", h("span", { class: "sr" }, heads.places), s("svg", { class: "axis", height: 14, "aria-hidden": "true" }, edge(1), b.models.length > 1 && edge(b.models.length)), "the ranks that the decisions allow"),
    column("model", heads.model),
    column("plot", baseline ? `Gap to ${isolated(baseline.to)}, points, with family-wise interval` : h("span", { class: "sr" }, heads.interval), axis(x), `${percent(1 - b.alpha, 0)} %, for one look`),
    column("score", heads.score),
    column("step", baseline ? "Against the baseline" : heads.step)));
}

function row(m, place, shown, context) {
  const { b, options, baseline, arranged, measure, ruled, byScore, tied, x } = context;
  const below = shown[place + 1];
  const pair = baseline ? baseline.pairs.get(m.model) : context.next.get(m.model);
  const between = pair && !baseline && byScore; // the step leads to the row below
  const follows = below?.rank === m.rank + 1;
  const rule = byScore && below && [...Array(below.rank - m.rank).keys()].some((k) => ruled.has(m.rank + k));
  const others = tied?.get(m.rank)?.size;
  const ownRow = baseline?.to === m.model;
  return h("tr", { role: "row", "data-key": m.model, "aria-rowindex": place + 2, "data-rank": m.rank, class: [rule && "ruled", ownRow && "own"].filter(Boolean).join(" ") },
    h("td", { role: "cell", class: "lanes" }, tieCell(arranged, place, (members) => keepOnly(members, b)), h("span", { class: "sr" }, others === undefined ? "" : others ? phrase("tied", { n: others }) : phrase("tied_with_none"))),
    h("td", { role: "cell", class: "rank" }, ranks(m.rank_low, m.rank_high)),
    h("td", { role: "cell", class: "strip" }, strip(m, b.models.length)),
    h("th", { role: "rowheader", scope: "row", class: "model" }, modelName(m, b, options)),
    h("td", { role: "cell", class: "plot" }, baseline ? gapPlot(pair, x, ownRow) : scorePlot(m, x, measure)),
    h("td", { role: "cell", class: "score", title: measure.about(m) }, measure.text(measure.of(m)[0])),
    h("td", { role: "cell", class: `step${between && follows ? " between" : ""}` }, ownRow ? h("span", { class: "note" }, "the baseline") : pair && (follows || !between) && step(pair, b)));
}

function pick(m, options) {
  const chosen = options.getAll("m");
  const has = chosen.includes(m.model);
  return h("input", { type: "checkbox", "aria-label": `Show ${m.model}`, paint: (box) => { box.checked = has; }, onchange: () => choose({ m: has ? chosen.filter((other) => other !== m.model) : [...chosen, m.model] }) });
}

function modelName(m, b, options) {
  const asides = [
    titled(m),
    aliases(m),
    waits(m) && h("span", { class: "aside" }, "counts when its run ends"),
    lowCoverage(m) && !waits(m) && h("span", { class: "low aside" }, coverage(m, 0), h("span", { class: "of-items" }, " scored")),
    m.run_ended && someEnded(b) && h("span", { class: "aside" }, "run ended"),
  ];
  const long = [...(m.title ?? m.model)].length > (lowCoverage(m) ? 20 : 29); // of a phone
  return h("span", { class: "who" }, options.has("pick") && pick(m, options), h("a", { class: long && "long", href: link.model(b.benchmark, m.model), title: m.model }, modelTitle(m)), asides);
}

function keepOnly(members, b) {
  const inBand = new Set(members);
  choose({ m: b.models.filter((m) => inBand.has(m.rank)).map((m) => m.model), pick: null });
}

/** Dim the models that the one under the pointer is decided against. */
function dim(event, tied) {
  const at = event.target.closest("tr[data-rank]");
  const with_ = at && tied?.get(Number(at.dataset.rank));
  for (const other of event.currentTarget.querySelectorAll("tr[data-rank]")) {
    other.classList.toggle("dim", Boolean(with_) && other !== at && !with_.has(Number(other.dataset.rank)));
  }
}

const undim = (event) => {
  for (const row_ of event.currentTarget.querySelectorAll(".dim")) row_.classList.remove("dim");
};

/** Return what the ranking goes by, with words: the score in percent, or for battles the rating. */
function measureOf(b) {
  const rated = ratings(b);
  if (!rated) {
    const times = (value) => (value === null ? null : 100 * value);
    return { of: (m) => [m.mean, m.mean_low, m.mean_high].map(times), text: (value) => fixed(value, 2), about: (m) => (m.unweighted_rank === null ? undefined : `unweighted ${percent(m.unweighted_mean)}, rank ${m.unweighted_rank}`) };
  }
  const of = (m) => {
    const r = rated.get(m.model);
    return r ? [r.rating, r.rating_low, r.rating_high] : [null, null, null];
  };
  return { of, text: count, about: (m) => rated.get(m.model)?.unrated ?? undefined };
}

function scoreScale(models, measure) {
  const ends = models.flatMap((m) => measure.of(m)).filter((value) => value !== null);
  return scaleOf(Math.min(...(ends.length ? ends : [0])), Math.max(...(ends.length ? ends : [100])), count, 6);
}

function scorePlot(m, x, { of, text }) {
  const [value, low, high] = of(m);
  if (value === null) return null;
  const kind = lowCoverage(m) ? "lacks" : "";
  const words = low === null ? text(value) : `${text(value)}, from ${text(low)} to ${text(high)}`;
  return whisker(low, high, value, x, kind, words);
}

// --- one step, and all models against one ------------------------------------------------------------------------------------------

/** Show a pair in one line: its sign, its gap, its verdict, and the items that it needs. */
function step(pair, b) {
  const kind = stepOf(pair);
  const [sign, tone] = STEP_SIGNS[kind];
  const { word } = WORDS.steps[kind];
  const turned = pair.gap < 0 && pair.oriented === undefined;
  return h("a", { class: `step-link ${tone}`, href: link.pair(b.benchmark, pair.model_a, pair.model_b), title: pair.reason },
    h("span", { class: "sr" }, `${pair.model_a} against ${pair.model_b}: `), h("span", { class: "sign", "aria-hidden": "true" }, sign),
    h("span", { class: `points${turned ? " warn" : ""}` }, turned && h("span", { class: "sr" }, phrase("against_rank")), points(pair.oriented ?? pair.gap)),
    h("span", { class: "word" }, word), h("span", { class: "need" }, pair.need));
}

/** Return the pairs of a baseline by the other model, with the gap of that model to the baseline. */
function compared({ to, pairs }) {
  const byModel = new Map(pairs.map((p) => {
    const first = p.model_a === to;
    const turn = (low, high) => (low === null ? [null, null] : first ? [-high, -low] : [low, high]);
    const [low, high] = turn(p.gap_family_low, p.gap_family_high);
    return [first ? p.model_b : p.model_a, { ...p, oriented: first && p.gap !== null ? -p.gap : p.gap, low, high }];
  }));
  return { to, pairs: byModel };
}

function gapScale({ pairs }, shown) {
  const seen = shown.flatMap((m) => pairs.get(m.model) ?? []);
  const values = seen.flatMap((p) => [p.low, p.high, p.oriented]).filter((v) => v !== null).map((v) => 100 * v);
  const x = scaleOf(Math.min(...values, -1), Math.max(...values, 1), (v) => (v > 0 ? `+${fixed(v, 0)}` : fixed(v, 0)), 7);
  return Object.assign(x, { signed: true });
}

function gapPlot(pair, x, own) {
  if (own) return whisker(null, null, 0, x, "", "the baseline");
  if (!pair || pair.gap === null) return null;
  const decided = pair.decided.anytime_family !== null;
  return whisker(pair.low === null ? null : 100 * pair.low, pair.low === null ? null : 100 * pair.high, 100 * pair.oriented, x, decided ? "sure" : "open",
    `${points(pair.oriented)} points${pair.low === null ? "" : `, from ${points(pair.low)} to ${points(pair.high)}`}, ${WORDS.answers.decided[decided ? "yes" : "no"]}`);
}

// --- many models, and how to read it ------------------------------------------------------------------------------------------------

/** Draw the ranks that each model could have, its own rank, and the blue rules, and count them; a click goes to the row. */
function overview(shown, b, ties, byScore) {
  const [rows, all] = [shown.length, b.models.length];
  const [x, y] = [(place) => ((1000 * place) / rows).toFixed(1), (rank) => ((60 * rank) / all).toFixed(1)];
  const ranges = shown.map((m, place) => `M${x(place)} ${y(m.rank_low - 1)}H${x(place + 1)}V${y(m.rank_high)}H${x(place)}Z`).join("");
  const own = shown.map((m, place) => `${place ? "L" : "M"}${x(place + 0.5)} ${y(m.rank - 0.5)}`).join("");
  const rules = byScore && rows === all ? ties.rules : [];
  const go = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * rows);
    scrollTo(0, scrollY + document.querySelector(".board tbody").getBoundingClientRect().top + place * rowHeight() - innerHeight / 3);
  };
  return h("figure", { class: "overview" },
    s("svg", { viewBox: "0 0 1000 60", preserveAspectRatio: "none", "aria-hidden": "true", onclick: go },
      s("path", { class: "ranges", d: ranges }), byScore && s("path", { class: "own-rank", d: own }), s("path", { class: "rules", d: rules.map((rank) => `M${x(rank)} 0V60`).join("") })),
    h("figcaption", {}, openRanks(shown, all), byScore && " The thin line is the order by score.", rules.length > 0 && phrase("no_tie_crosses", { n: rules.length })));
}

/** Return how many ranks the verdicts leave open to the models on display. */
function openRanks(shown, all) {
  const widths = shown.map((m) => m.rank_high - m.rank_low + 1).sort((x, y) => x - y);
  if (widths[0] === all) return phrase("nothing_decided", { n: all });
  const [least, most, middle] = [widths[0], widths.at(-1), widths[Math.floor(widths.length / 2)]];
  const open = least === most ? count(least) : `${count(least)} to ${count(most)}`;
  const half = middle < most && middle > least ? phrase("half_open", { n: middle }) : "";
  return phrase("open_ranks", { all, open, half });
}

function key(b, ties) {
  const [lacking, ruled] = [ties.lacking.some(({ tied }) => tied.length > 0), ties.rules.length > 0];
  const alone = ties.bands?.some(({ members }) => members.length === 1);
  const passes = ties.bands?.some(({ members }) => members.at(-1) - members[0] >= members.length);
  return h("div", { class: "reading" },
    h("p", {}, s("svg", { width: 26, height: 30, "aria-hidden": "true" }, s("line", { class: "band", x1: 7, x2: 7, y1: 6, y2: 24 }), [6, 24].map((y) => s("circle", { class: "band", cx: 7, cy: y, r: 2.8 })), alone && s("circle", { class: "alone", cx: 20, cy: 15, r: 3 })),
      h("span", {}, "Two models share a band exactly when no verdict separates them. Bands overlap: a tie is not a tier. ", passes && "A dashed stretch passes a model that is not in it. ", alone && (`A blue ring is ${lacking ? "in no band with another model" : phrase("tied_with_none")}.`))),
    (ruled || lacking) && h("p", {}, s("svg", { width: 26, height: 30, "aria-hidden": "true" }, ruled && s("line", { class: "rule-key", x1: 1, x2: 25, y1: 8, y2: 8 }), lacking && [s("line", { class: "thread", x1: 13, x2: 13, y1: 14, y2: 30 }), s("circle", { class: "thread own", cx: 13, cy: 22, r: 3.4 })]),
      h("span", {}, ruled && phrase("rules", { line: h("b", { class: "good" }, "blue line") }), lacking && phrase("lacking", { lacks: h("b", { class: "warn" }, "lacks items") }))),
    h("p", {}, h("span", {}), h("span", {}, b.words.need_note, b.words.need_note && " ", "The score interval is for one look and enters no verdict.")));
}

/** Explain the signs on display in one line, until the reader knows them; the help shows it again. */
function legend(b, ties) {
  const known = () => {
    document.documentElement.classList.add("learned");
    try {
      localStorage.setItem("rankwatch-legend", "known");
    } catch {
      // Without storage the line is back after the next reload.
    }
  };
  const kinds = Object.keys(STEP_SIGNS).filter((kind) => steps(b).some((pair) => stepOf(pair) === kind));
  const line = (kind, ...ends) => s("svg", { width: 18, height: 14, "aria-hidden": "true" }, s("line", { class: kind, ...Object.assign({}, ...ends) }));
  return h("div", { class: "signs-key", role: "note", "aria-label": "Signs" },
    kinds.map((kind) => h("span", {}, h("span", { class: STEP_SIGNS[kind][1], "aria-hidden": "true" }, STEP_SIGNS[kind][0]), " ", h("b", {}, WORDS.steps[kind].word), `: ${WORDS.steps[kind].about}`)),
    ties.bands?.some(({ members }) => members.length > 1) && h("span", { class: "of-lines" }, line("band", { x1: 9, x2: 9, y1: 1, y2: 13 }), phrase("joined")),
    ties.rules.length > 0 && h("span", { class: "of-lines" }, line("rule-key", { x1: 0, x2: 18, y1: 7, y2: 7 }), phrase("above")),
    h("button", { type: "button", class: "quiet", onclick: known }, "Got it"));
}
