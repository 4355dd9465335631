// Show what battles add to the board: the position, the judges, islands, and pairs whose direct battles contradict the ratings.

import { h } from "./dom.js";
import { count, fixed, plural } from "./format.js";
import { link, name, table } from "./parts.js";
import { WORDS, phrase } from "./words.js";

const NAMED = 20; // disagreements in the table

/** Return the rating of each model by its name; null for a benchmark of scores. */
export const ratings = ({ battles }) => battles && new Map(battles.ratings.map((r) => [r.model, r]));

/** Return the word for what the models of a benchmark share. */
export const unit = (b) => (b.battles ? "prompt" : "item");

/** Return what was counted, in one line. */
export function votes(b) {
  const { votes: all, prompts, ties, units, judge_count: judges } = b.battles;
  const units_ = units < all ? ` · ${plural(units, "unit")} of one pair and prompt` : "";
  const by = b.battles.judges.length ? ` by ${plural(judges, "judge")}` : "";
  return `${plural(b.models.length, "model")} · ${plural(prompts, "prompt")} · ${plural(all, "vote")}${by}, ${plural(ties, "tie")}${units_}`;
}

/** Show the checks of a rating, for battles. */
export function battles(b) {
  if (!b.battles) return null;
  const centre = b.battles.anchor === null ? "the mean of the models is 1,000" : [name(b.battles.anchor), " is 1,000"];
  return [
    h("p", { class: "about" }, phrase("ratings", { centre })),
    islands(b),
    unrated(b),
    contradictions(b),
    position(b.battles.position),
    judges(b),
  ];
}

function islands({ battles: { islands: all }, benchmark }) {
  if (all.length < 2) return null;
  return [
    h("h2", {}, `${plural(all.length, "island")} of models that never met`),
    h("p", { class: "about" }, "No battle connects them, directly or through others. Ratings and ranks of two islands do not compare."),
    h("ul", {}, all.map((models) => h("li", {}, listed(models.map((model) => h("a", { href: link.model(benchmark, model) }, name(model))), 8)))),
  ];
}

/** Return nodes with commas between them, and a count of those left out. */
const listed = (nodes, most) => [nodes.slice(0, most).flatMap((node, k) => [k > 0 && ", ", node]), nodes.length > most && ` and ${count(nodes.length - most)} more`];

function unrated({ battles: { ratings: all } }) {
  const without = all.filter((r) => r.unrated !== null);
  if (!without.length) return null;
  return h("details", {}, h("summary", {}, `${plural(without.length, "model")} without a finite rating`),
    table("Models without a finite rating", [{ title: "Model", head: true, class: "wide-cell" }, { title: "Reason", class: "wide-cell" }],
      [{ rows: without.map((r) => ({ key: r.model, cells: [name(r.model), r.unrated] })) }], { class: "data" }));
}

function contradictions({ battles: { disagreements: all }, benchmark }) {
  if (!all.length) return null;
  const columns = [
    { title: "Higher rating", head: true, class: "wide-cell" },
    { title: "Wins their battles", class: "wide-cell" },
    { title: "Rating gap", class: "number" },
    { title: "Direct gap, points", class: "number" },
    { title: "Prompts", class: "number" },
    { title: "Decided" },
  ];
  const rows = all.slice(0, NAMED).map((d) => ({
    key: `${d.higher} ${d.lower}`,
    cells: [h("a", { href: link.pair(benchmark, d.higher, d.lower) }, name(d.higher)), name(d.lower), fixed(d.rating_gap, 0), fixed(100 * d.direct_gap, 1), count(d.prompts), d.decided ? h("span", { class: "warn" }, `▼ ${WORDS.answers.decided.yes}`) : "no"],
  }));
  return [
    h("h2", {}, "Direct battles against the ratings"),
    h("p", { class: "about" }, `In ${plural(all.length, "pair")} the model with the lower rating wins more of their own battles`, all.length > NAMED && `; the ${NAMED} with the strongest evidence are shown`, "."),
    h("details", {}, h("summary", {}, "Show the pairs"), table("Pairs whose direct battles favour the model with the lower rating", columns, [{ rows }], { class: "data" })),
  ];
}

function position(p) {
  const title = h("h2", {}, "Position");
  if (!p) return [title, h("p", { class: "about" }, "It is not known which answer was shown first, so a preference for a position cannot be measured. The field ", h("code", {}, "position"), " of a battle names it.")];
  const effect = p.effect === null ? "Its effect on ratings cannot be estimated." : `Being shown first is worth ${fixed(p.effect, 0)} rating points (${fixed(p.effect_low, 0)} to ${fixed(p.effect_high, 0)}); the ratings correct for it.`;
  const drawn = p.votes - p.first_wins - p.second_wins;
  const row = (label, n) => ({ key: label, cells: [label, count(n), `${fixed((100 * n) / p.votes, 1)} %`] });
  return [
    title,
    h("p", { class: "about" }, `${effect} Prompts judged in both orders: ${count(p.swapped)}; in one order: ${count(p.fixed)}.`),
    table("Wins by position", [{ title: "Winner", head: true }, { title: "Votes", class: "number" }, { title: "Share", class: "number" }],
      [{ rows: [row("The answer shown first", p.first_wins), row("The answer shown second", p.second_wins), row("Tie", drawn)] }], { class: "small" }),
  ];
}

function judges({ battles: { judges: all, judge_count: total, agreement, ratings: models }, benchmark }) {
  if (!all.length) return null;
  const overall = new Map(models.map((r, k) => [r.model, k + 1]));
  const columns = [
    { title: "Judge", head: true, class: "wide-cell" },
    { title: "Votes", class: "number" },
    { title: "Shared", class: "number", about: "prompts of a pair that another judge judged too" },
    { title: "Agrees, %", class: "number", about: "mean share of the other judges that gave the same result" },
    { title: "Its ranking, best first", class: "wide-cell" },
  ];
  const place = (model, k, ranking) => {
    // Ranks among the models that the judge has judged.
    const order = [...ranking].sort((x, y) => overall.get(x) - overall.get(y));
    const moved = order.indexOf(model) - k;
    const sign = moved > 0 ? `▲${moved}` : moved < 0 ? `▼${-moved}` : "";
    return [h("a", { href: link.model(benchmark, model) }, name(model)), sign && h("span", { class: "note" }, ` ${sign}`, h("span", { class: "sr" }, ` ${plural(Math.abs(moved), "place")} ${moved > 0 ? "higher" : "lower"} than over all judges`))];
  };
  const ranking = (j) => (j.ranking === null ? "its votes leave islands" : listed(j.ranking.map((model, k) => h("span", {}, place(model, k, j.ranking))), 8));
  return [
    h("h2", {}, "Judges"),
    h("p", { class: "about" }, agreement === null ? "No two judges judged the same prompt of a pair, so their agreement is not known." : `Agreement of the judges: Krippendorff's alpha ${fixed(agreement, 2)}; 1 is full agreement, 0 is chance.`,
      total > all.length && ` The ${all.length} judges with the most votes of ${count(total)} are shown.`),
    table("Judges", columns, [{ rows: all.map((j) => ({ key: j.judge, cells: [name(j.judge), count(j.votes), count(j.shared), j.agrees === null ? "–" : fixed(100 * j.agrees, 1), ranking(j)] })) }], { class: "data" }),
  ];
}
