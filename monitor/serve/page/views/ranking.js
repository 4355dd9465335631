// Show the leaderboard: ranks, ties, and what each pair of neighbours needs to be decided.

import { report } from "../api.js";
import { h, s } from "../dom.js";
import { count, percent, plural, points, ranks } from "../format.js";
import { LOW_COVERAGE, aliases, better, chip, coverage, isHeld, itemsLeft, link, lowCoverage, name, notice, orderNote, orderTrouble, partial, prospect, sentence, size, someEnded, table, waits } from "../parts.js";

export const title = ({ benchmark }) => benchmark;

export const load = ({ benchmark }, signal) => report(benchmark, signal);

const columns = ({ alpha }) => [
  { title: "Rank", class: "rank", about: "the ranks that the decisions allow" },
  { title: "Possible ranks", mark: h("span", { class: "sr" }, "Possible ranks, drawn"), class: "spread" },
  { title: "Model", head: true, class: "model" },
  { title: "Score", class: "number score" },
  { title: `${percent(1 - alpha, 0)} % interval`, class: "whisker" },
  { title: "Against the next", class: "next" },
  { title: "Coverage", class: "number cover" },
];

export function render(b) {
  const trouble = orderTrouble(b);
  return [
    h("h1", { tabindex: "-1" }, name(b.benchmark)),
    answer(b),
    b.partial && notice(partial(b)),
    trouble && notice(trouble),
    facts(b),
    b.models.length ? leaderboard(b) : h("p", { class: "about" }, "No model has a score yet. Results appear here as they arrive."),
    orderNote(b) && h("p", { class: "about" }, orderNote(b)),
    sharedItems(b),
    b.clusters?.warning && h("p", { class: "about" }, `Clusters: ${b.clusters.warning}`),
    legend(b),
  ];
}

/** Report how many pairs of neighbours are decided family-wise, tied or held. */
function answer(b) {
  if (!b.pairs.length) return h("p", { class: "answer" }, "Only one model: there is no pair to compare yet.");
  const of = (...statuses) => b.pairs.filter((p) => statuses.includes(p.status)).length;
  const [decided, held, ties] = [of("decided"), of("held", "invalidated"), of("collecting", "exhausted", "equivalent", "superseded")];
  const text = [
    h("strong", { class: "good" }, `${decided} of ${plural(b.pairs.length, "neighbouring pair")} decided`),
    ties > 0 && [", ", h("strong", {}, plural(ties, "tie"))],
    held > 0 && [", ", h("strong", { class: "warn" }, `${count(held)} held`)],
    decided === b.pairs.length ? ": every rank is decided." : ".",
  ];
  return h("div", { class: "answer" }, h("p", {}, text), result(b), ties > 0 && h("p", { class: "about" }, outlook(b)));
}

/** Show the answers to the three questions. */
function result(b) {
  if (!b.result) return null;
  const names = b.models.map((m) => m.model);
  const line = (word, yes, no) => [h("dt", { class: b.result[word].yes ? "good" : "" }, `${b.result[word].yes ? yes : no} ${word}`), h("dd", {}, sentence(b.result[word].text, names))];
  return h("dl", { class: "result" }, line("settled", "◆", "◇"), line("decided", "●", "○"), line("resolved", "●", "○"), goal(b.goal, names));
}

/** Show the goal: whether it is met, and what was run for it. */
function goal(g, names) {
  if (!g) return null;
  const saved = g.saved_ratio === null ? "" : `, ${(100 * g.saved_ratio).toFixed(1)} % saved`;
  const spent = g.items_full === null ? `Run so far: ${count(g.items_run)} scores.` : `Run so far: ${count(g.items_run)} of ${count(g.items_full)} scores${saved}.`;
  const met = g.state === "met", state = g.state === "impossible" ? "out of reach" : g.state;
  return [h("dt", { class: met ? "good" : "" }, `${met ? "●" : "○"} goal`), h("dd", {}, sentence(`${g.goal}: ${state}. ${g.reason} ${spent}`, names))];
}

/** Report which ranks change on the items that all models have, where these have different items. */
function sharedItems(b) {
  if (b.shared_items === null) return null;
  if (!b.shared_items) return h("p", { class: "about" }, "No item has a score of every model, so the means do not compare.");
  const moved = b.models.filter((m) => m.shared_rank !== null && m.shared_rank !== m.rank);
  const ranks = moved.slice(0, 3).flatMap((m, k) => [k ? ", " : "", name(m.model), ` (${m.rank} to ${m.shared_rank})`]);
  const rest = moved.length > 3 ? ` and ${count(moved.length - 3)} more` : "";
  return h("p", { class: "about" }, `Means are over different items; on the ${plural(b.shared_items, "item")} that all models have `, moved.length ? ["these ranks change: ", ranks, rest] : "no rank changes", ".");
}

/** Probability of a decision below which a tie is not expected to break. */
const UNLIKELY = 0.05;

/** Report which tie is expected to break next. */
function outlook(b) {
  const [next] = b.pairs.filter((p) => p.status === "collecting" && reachable(p, b)).sort((p, q) => p.items_to_decision - q.items_to_decision);
  if (!next && b.pairs.every((p) => itemsLeft(p, b) === 0)) {
    const scored = b.pairs.every((p) => p.status !== "exhausted" || p.n >= size(b));
    return `${scored ? "Every item is scored" : "The runs have ended"}: no tie can break.`;
  }
  if (!next && b.models.some(waits)) return "Some models count when their runs end.";
  const likely = b.pairs.filter((p) => p.decision_probability >= UNLIKELY).sort((p, q) => q.decision_probability - p.decision_probability)[0];
  if (!next && likely) return ["Most likely decision: ", name(likely.model_a), " and ", name(likely.model_b), ", ", prospect(likely, b), "."];
  if (!next) return "The remaining items are not expected to break any tie.";
  return ["Next decision expected: ", name(next.model_a), " and ", name(next.model_b), ", ", prospect(next, b), "."];
}

const reachable = (pair, b) => pair.items_to_decision >= 1 && pair.items_to_decision <= (itemsLeft(pair, b) ?? Infinity);

function facts(b) {
  const groups = new Set(b.models.map((m) => m.tie_group)).size;
  const low = b.models.filter(lowCoverage).length;
  const fact = (value, label, tone) => h("div", {}, h("dt", {}, label), h("dd", { class: tone }, value));
  return h("dl", { class: "facts" },
    fact(count(b.models.length), b.models.length === 1 ? "model" : "models"),
    fact(count(groups), groups === 1 ? "tie group" : "tie groups"),
    fact(count(b.items), size(b) > b.items ? `of ${count(size(b))} items` : "items"),
    fact(count(low), `models under ${percent(LOW_COVERAGE, 0)} % coverage`, low ? "low" : ""),
    fact(count(b.conflicts), "conflicting scores", b.conflicts ? "low" : ""));
}

function leaderboard(b) {
  const next = new Map(b.pairs.filter((p) => p.adjacent).map((p) => [p.model_a, p]));
  const scale = scoreScale(b.models);
  const bodies = groupsOf(b.models).map((models) => ({
    key: `group ${models[0].tie_group}`,
    class: models.length > 1 ? "tie" : "single",
    head: models.length > 1 && groupHead(models, b),
    rows: models.map((m) => ({ key: m.model, cells: cells(m, b, next.get(m.model), scale) })),
  }));
  return table("Ranking with tie groups", columns(b), bodies, { class: "board" });
}

function groupsOf(models) {
  const groups = [];
  for (const model of models) {
    if (groups.at(-1)?.[0].tie_group === model.tie_group) groups.at(-1).push(model);
    else groups.push([model]);
  }
  return groups;
}

function groupHead(models, b) {
  if (b.pairs.every(isHeld)) return "Verdicts are held, so every rank is open";
  return h("span", { class: "tied" }, h("b", {}, `Tie of ${models.length}`), ` ranks ${models[0].rank} to ${models.at(-1).rank}: no pair of neighbours is decided`);
}

function cells(m, b, pair, scale) {
  return [
    ranks(m.rank_low, m.rank_high),
    spread(m, b.models.length),
    [
      name(m.model), aliases(m),
      waits(m) && h("span", { class: "aside" }, "counts when its run ends"),
      lowCoverage(m) && !waits(m) && h("span", { class: "low aside" }, coverage(m), " of the items"),
      m.run_ended && someEnded(b) && h("span", { class: "aside" }, "run ended"),
    ],
    percent(m.mean),
    whisker(m, scale),
    pair && against(pair, b),
    coverage(m),
  ];
}

function against(pair, b) {
  const side = better(pair);
  const label = `${pair.model_a} against ${pair.model_b}`;
  const note = [points(pair.gap), pair.gap !== null && " points", prospect(pair, b) && `, ${prospect(pair, b)}`];
  return h("a", { class: "against", href: link.pair(b.benchmark, pair.model_a, pair.model_b) },
    h("span", { class: "sr" }, `${label}: `), chip(pair), " ",
    h("span", { class: "note" }, side === pair.model_b ? sentence(`${side} is better, `, [side]) : "", note));
}

/** Draw the possible ranks as a bar over all ranks, with the current rank as a dot. */
function spread(m, size_) {
  const x = (rank) => 4 + (88 * (rank - 0.5)) / size_;
  const half = Math.min(6, 44 / size_);
  return s("svg", { class: "plot", viewBox: "0 0 96 16", width: 96, height: 16, role: "img", "aria-label": `possible ranks ${ranks(m.rank_low, m.rank_high)} of ${size_}` },
    s("line", { class: "rail", x1: 4, x2: 92, y1: 8, y2: 8 }),
    s("rect", { class: m.rank_low === m.rank_high ? "bar sure" : "bar", x: x(m.rank_low) - half, width: x(m.rank_high) - x(m.rank_low) + 2 * half, y: 4, height: 8, rx: 4 }),
    s("circle", { class: "dot", cx: x(m.rank), cy: 8, r: 2.5 }));
}

function scoreScale(models) {
  const low = Math.min(...models.map((m) => m.mean_low ?? 1));
  const high = Math.max(...models.map((m) => m.mean_high ?? 0));
  return (value) => 4 + (120 * (value - low)) / Math.max(high - low, 1e-9);
}

function whisker(m, x) {
  if (m.mean_low === null) return null;
  const words = `${percent(m.mean_low)} to ${percent(m.mean_high)}`;
  return [
    s("svg", { class: "plot", viewBox: "0 0 128 16", width: 128, height: 16, "aria-hidden": "true" },
      s("line", { class: "rail", x1: 4, x2: 124, y1: 8, y2: 8 }),
      s("line", { class: "whisk", x1: x(m.mean_low), x2: x(m.mean_high), y1: 8, y2: 8 }),
      s("circle", { class: "dot", cx: x(m.mean), cy: 8, r: 3 })),
    h("span", { class: "ends" }, words),
  ];
}

function legend(b) {
  const family = b.family.size === null ? "the family" : plural(b.family.size, "pair");
  return h("details", { class: "legend" }, h("summary", {}, "How to read this"),
    h("ul", {},
      h("li", {}, "Rank is the range of ranks that the decisions allow. A model with rank 2–4 may be second, third or fourth."),
      h("li", {}, "In a tie group, no pair of neighbours is decided. Models of different groups may be undecided too; their possible ranks then overlap."),
      h("li", {}, `Decided is the family-wise verdict. Over ${family}, the chance of one or more false decisions is at most ${percent(b.alpha, 0)} %, at any time.`),
      h("li", {}, "Score is the mean over the model's own items, in percent, with its interval. Overlapping intervals do not make a tie: pairs are compared item by item."),
      h("li", {}, "The points under “Against the next” are the gap on the shared items.")));
}
