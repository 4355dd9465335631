// Show one model: the ranks it may have, and its gap to every other model with the family-wise interval.

import { ApiError, allPairs, get, report } from "../api.js";
import { badge, place } from "../badge.js";
import { unit } from "../battles.js";
import { h, s } from "../dom.js";
import { downloads } from "../downloads.js";
import { count, fixed, more, percent, plural, points } from "../format.js";
import { QUESTIONS, answerLine, glyph, signs, states } from "../glyph.js";
import { bars } from "./items.js";
import { WORDS, phrase } from "../words.js";
import { aliases, axis, coverage, crumb, link, lowCoverage, modelTitle, name, notice, scaleOf, size, table, titled, waits, whisker } from "../parts.js";

const CATEGORIES = 30;

export const title = ({ model, benchmark }) => `${model}, ${benchmark}`;

export async function load({ benchmark, model }, signal) {
  const b = await report(benchmark, signal);
  if (!b.models.some((m) => m.model === model)) throw new ApiError(404, "No such model", `${benchmark} has no model ${model}.`);
  const [pairs, profile, surprises] = await Promise.all([b.models.length > 1 ? allPairs(benchmark, model, signal) : [], b.clusters && get("/categories", { benchmark, limit: CATEGORIES }, signal), get("/surprises", { benchmark, model }, signal)]);
  return { b, pairs, profile, surprises };
}

/** Return a pair seen from one of its models: gap, interval, and who is better. */
export function seenFrom(model, p) {
  const first = p.model_a === model;
  const own = first ? "a" : "b";
  const turned = (value) => (value === null ? null : -value);
  const side = (value) => (value === null || value === "tie" ? value : value === own ? "own" : "other");
  return {
    pair: p, other: first ? p.model_b : p.model_a,
    gap: first ? p.gap : turned(p.gap),
    low: first ? p.gap_family_low : turned(p.gap_family_high),
    high: first ? p.gap_family_high : turned(p.gap_family_low),
    decided: side(p.decided.anytime_family), settled: side(p.settled),
  };
}

export function render({ b, pairs, profile, surprises }, { model }) {
  const own = b.models.find((m) => m.model === model);
  const rows = pairs.map((p) => seenFrom(model, p)).filter((r) => b.models.some((m) => m.model === r.other)); // others are new since the report
  const neighbour = (rank, words) => {
    const m = b.models.find((other) => other.rank === rank);
    return m && h("a", { class: "button", href: link.model(b.benchmark, m.model), title: m.model }, words);
  };
  const trouble = b.words.held_note;
  const answer = place(b, own);
  return [
    crumb(b, "models"),
    h("h1", { tabindex: "-1", class: "with-badge" }, modelTitle(own), " ", h("span", { class: `badge ${answer.state}` }, answer.words)),
    h("p", { class: "actions" }, neighbour(own.rank - 1, `‹ rank ${own.rank - 1}`), neighbour(own.rank + 1, `rank ${own.rank + 1} ›`),
      h("a", { class: "button", href: `${link.benchmark(b.benchmark)}?to=${encodeURIComponent(model)}` }, "Compare all with it"),
      rows.length > 0 && files(b, own, rows)),
    h("p", { class: "about" }, facts(own, b), titled(own), aliases(own)),
    trouble && notice(trouble),
    rows.length > 0 && result(own, rows, b),
    inColumns(
      rows.length > 0 && [
        h("h2", {}, "Against every other model"),
        h("p", { class: "about" }, phrase("gaps", { unit: unit(b) })),
        against(own, rows, b),
      ],
      [profile?.total > 0 && byCategory(own, profile), surprises.higher.length + surprises.lower.length > 0 && unlike(surprises)].filter(Boolean)),
  ];
}

/** Show the gaps, and next to them, where the window has room, what else there is. */
const inColumns = (gaps, others) => (gaps && others.length ? h("div", { class: "of-model" }, h("section", {}, gaps), h("section", {}, others)) : [gaps, others]);

/** Show the items on which the model is most unlike the others. */
function unlike({ model, models, higher, lower }) {
  const place = models.indexOf(model);
  const columns = [
    { title: "Item", head: true, class: "item" }, { title: "Category", class: "category" },
    { title: `Scores, rank 1 to ${models.length}`, class: "bars" }, { title: "Others", class: "number" },
  ];
  const row = (item) => {
    const own = item.scores[place];
    return { key: item.item_id, cells: [
      h("span", { class: "who", title: item.item_id }, name(item.item_id)), h("span", { class: "who", title: item.cluster }, item.cluster ?? "–"),
      bars(item, place), `${count(item.right - (own >= 1 ? 1 : 0))} of ${count(item.scored - 1)}`] };
  };
  const part = (title, items) => items.length > 0 && [h("h3", {}, title), table(title, columns, [{ rows: items.map(row) }], { class: "items" })];
  return [
    h("h2", {}, "Its surprises"),
    h("p", { class: "about" }, "Items on which it differs most from the other models, with one bar per model in rank order, this one in blue, and how many others are right. They were picked by their scores, so they prove nothing about the model."),
    part("Right, where most others are wrong", higher), part("Wrong, where most others are right", lower),
  ];
}

/** Show the score of the model in each category among those of the others. */
function byCategory(own, { benchmark, models, categories, means, total }) {
  const at = models.indexOf(own.model);
  if (at < 0) return null; // the model is new since the report
  const values = means.flat().filter((v) => v !== null);
  const x = scaleOf(100 * Math.min(...values, 1), 100 * Math.max(...values, 0), (v) => fixed(v, 0));
  const columns = [
    { title: "Category", head: true, class: "model" },
    { title: "Score, %: this model among all", mark: ["Score, %, all models", axis(x)], class: "plot" },
    { title: "Score", class: "number" }, { title: "Rank", class: "number rank" }, { title: "Items", class: "number" },
  ];
  const rows = categories.flatMap((category, j) => {
    const column = means.map((row) => row[j]).filter((v) => v !== null);
    const mean = means[at][j];
    if (mean === null) return [];
    const rank = 1 + column.filter((v) => v > mean).length;
    const drawn = s("svg", { class: "line-plot", role: "img", "aria-label": `${percent(mean)}, rank ${rank} of ${column.length}` },
      x.ticks.map((tick) => s("line", { class: "grid", x1: `${x(tick)}%`, x2: `${x(tick)}%`, y1: 0, y2: "100%" })),
      column.map((v) => s("line", { class: "others", x1: `${x(100 * v)}%`, x2: `${x(100 * v)}%`, y1: "28%", y2: "72%" })), s("circle", { class: "dot", cx: `${x(100 * mean)}%`, cy: "50%", r: 3.4 }));
    const place = h("span", { class: Math.abs(rank - own.rank) > 1 ? "odd" : "" }, count(rank));
    return [{ key: category.name, mean, cells: [h("span", { class: "who", title: category.name }, name(category.name)), drawn, percent(mean, 1), place, count(category.items)] }];
  }).sort((p, q) => q.mean - p.mean);
  return [
    h("h2", {}, "By category"),
    h("p", { class: "about" }, "A profile: it enters no verdict. Bold rank: 2 or more from the rank on the board", total > categories.length && `; the ${count(categories.length)} largest of ${count(total)} categories`, ". ",
      h("a", { href: link.categories(benchmark, own.model) }, "Compare every model with it, by category")),
    table(`Scores of ${own.model} by category`, columns, [{ rows }], { class: "gaps profile" }),
  ];
}

function facts(m, b) {
  if (waits(m)) return "Its scores count when its run ends.";
  return [m.mean === null ? "No score" : `Score ${percent(m.mean)} %`, m.mean_low === null ? "" : ` (interval ${percent(m.mean_low)} to ${percent(m.mean_high)}, for one look)`,
    ` · ${count(m.items)} of ${plural(size(b), unit(b))}`, lowCoverage(m) && [" · ", coverage(m)], m.run_ended && " · run ended"];
}

/** Return how many gaps of a model are settled, and the words for them. */
export function onTheseItems(rows) {
  const [ahead, trailing, level] = ["own", "other", "tie"].map((side) => rows.filter((r) => r.settled === side).length);
  const closed = ahead + trailing + level;
  const open = rows.length - closed;
  const places = enumerated({ ahead, below: trailing, level });
  return { closed, words: [h("b", {}, places ? phrase("settled", { places }) : phrase("nothing_settled")), open > 0 && phrase("settled_open", { n: open }), "."] };
}

/** Return numbers of models with the words before each, without those of none: "Ahead of 3 models, below 1". */
function enumerated(numbers) {
  const words = Object.entries(numbers).filter(([, n]) => n > 0).map(([to, n], k) => phrase(k ? "lead_more" : "lead", { lead: WORDS.leads[to], n })).join(", ");
  return words && words[0].toUpperCase() + words.slice(1);
}

/** Answer the three questions for one model. */
function result(own, rows, b) {
  const of = (test) => rows.filter(test).length;
  const place = b.battles ? { closed: 0, words: phrase("nothing_settled_in_battles") } : onTheseItems(rows);
  const [better, worse] = [of((r) => r.decided === "own"), of((r) => r.decided === "other")];
  const held = of((r) => states(r.pair).decided === "held");
  const tied = rows.length - better - worse - held;
  const resolved = of((r) => r.pair.resolved.fixed_n);
  const possible = own.rank_low === own.rank_high ? phrase("one_rank", { rank: own.rank_low }) : phrase("several_ranks", { low: own.rank_low, high: own.rank_high });
  const closest = rows.filter((r) => r.decided === null && r.pair.needs_items !== null).sort((x, y) => x.pair.needs_items - y.pair.needs_items)[0];
  const line = (question, state, words, n) => answerLine(question, state, words, h("dd", { class: "tally" }, h("b", {}, count(n)), ` of ${plural(rows.length, "other")}`));
  const yes = (n) => (n > 0 ? "yes" : "no");
  return h("dl", { class: "result" },
    line("settled", yes(place.closed), place.words, place.closed),
    line("decided", held === rows.length ? "held" : yes(better + worse), [h("b", {}, enumerated({ better, worse, tied, held })), `. ${possible}`], better + worse),
    line("resolved", yes(resolved), [phrase("planned", { enough: h("b", {}, phrase("enough", { unit: unit(b), some: resolved, n: rows.length })) }), closest && phrase("closest", { model: name(closest.other), items: more(closest.pair.needs_items), unit: unit(b) })], resolved));
}

function against(own, rows, b) {
  const numbers = rows.flatMap((r) => [r.low, r.high, r.gap]).filter((v) => v !== null).map((v) => 100 * v);
  const x = scaleOf(Math.min(...numbers, -1), Math.max(...numbers, 1), (v) => (v > 0 ? `+${fixed(v, 0)}` : fixed(v, 0)), 7);
  x.signed = true;
  const rankOf = new Map(b.models.map((m) => [m.model, m]));
  const columns = [
    { title: "Rank", class: "number rank" },
    { title: "Other model", head: true, class: "model" },
    { title: "Gap with family-wise interval", mark: ["Gap with family-wise interval", axis(x)], class: "plot" },
    { title: "Points", class: "number" },
    { title: QUESTIONS.map((key) => WORDS.heads[key]).join(", "), mark: [h("span", { class: "sr" }, QUESTIONS.map((key) => WORDS.heads[key]).join(", ")), h("span", { class: "signs", "aria-hidden": "true" }, QUESTIONS.map((question) => glyph(question, "yes")))], class: "verdict" },
  ];
  const cells = (r) => {
    const m = rankOf.get(r.other);
    const tone = r.decided ? "sure" : "open";
    const words = r.gap === null ? `no shared ${unit(b)}` : `${points(r.gap)} points${r.low === null ? "" : `, from ${points(r.low)} to ${points(r.high)}`}`;
    return [
      count(m?.rank),
      h("span", { class: "who" }, h("a", { href: link.pair(b.benchmark, r.pair.model_a, r.pair.model_b), title: r.other }, name(r.other)), m && lowCoverage(m) && h("span", { class: "low aside" }, coverage(m))),
      r.gap !== null && whisker(r.low === null ? null : 100 * r.low, r.low === null ? null : 100 * r.high, 100 * r.gap, x, tone, words),
      points(r.gap),
      signs(r.pair),
    ];
  };
  const row = (r) => ({ key: r.other, attributes: { class: r.decided === null ? "tied" : "" }, cells: cells(r) });
  const above = rows.filter((r) => (rankOf.get(r.other)?.rank ?? 0) < own.rank).sort((p, q) => rankOf.get(p.other).rank - rankOf.get(q.other).rank);
  const below = rows.filter((r) => !above.includes(r)).sort((p, q) => rankOf.get(p.other).rank - rankOf.get(q.other).rank);
  const self = { key: "own", attributes: { class: "own" }, cells: [count(own.rank), h("span", { class: "who" }, name(own.model)), whisker(null, null, 0, x, "", "this model"), percent(own.mean), ""] };
  return table(`Gaps of ${own.model} to every other model`, columns, [{ rows: [...above.map(row), self, ...below.map(row)] }], { class: "gaps" });
}

const COLUMNS = ["model", "other", "other_rank", "gap", "gap_family_low", "gap_family_high", "decided", "settled", "resolved_fixed_n", "n", "items_to_decision"];

/** Offer the gaps to every other model. */
function files(b, own, rows) {
  const rankOf = new Map(b.models.map((m) => [m.model, m.rank]));
  const line = (r) => [own.model, r.other, rankOf.get(r.other), r.gap, r.low, r.high, r.decided, r.settled, r.pair.resolved.fixed_n, r.pair.n, r.pair.items_to_decision];
  return downloads({
    name: [b.benchmark, own.model], rows: () => [COLUMNS, ...rows.map(line)], json: () => ({ benchmark: b.benchmark, model: own, pairs: rows.map((r) => r.pair) }), figure: ".gaps",
    heading: `${own.model}, ${b.benchmark}`, caption: `Gap to every other model, with family-wise intervals at ${percent(1 - b.alpha, 0)} %`,
    badge: () => badge(b, own),
  });
}
