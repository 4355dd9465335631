// Show one pair: verdicts, evidence over time, counts, and a checklist before you quote it.

import { get, report } from "../api.js";
import { evidence, interval, pathTable } from "../chart.js";
import { h } from "../dom.js";
import { downloads } from "../downloads.js";
import { apart, count, evalue, fixed, percent, plural, points, pvalue, range, ratio, share, small } from "../format.js";
import { DECISIONS, LOW_COVERAGE, RESOLUTIONS, better, chip, decision, isHeld, link, name, need, notice, resolution, sentence, sign } from "../parts.js";

export const title = ({ benchmark, a, b }) => `${a} v. ${b}, ${benchmark}`;

const POINTS = 320;

export async function load({ benchmark, a, b }, signal) {
  const [board, page] = await Promise.all([report(benchmark, signal), get("/pairs", { benchmark, model: a, other: b, limit: 1 }, signal)]);
  const [pair] = page.pairs;
  if (!pair || pair.n === 0) return { board, pair, path: null };
  const path = await get("/path", { benchmark, model_a: pair.model_a, model_b: pair.model_b, points: POINTS }, signal);
  return { board, pair, path };
}

export function render({ board, pair, path }, route) {
  if (!pair) return [h("h1", { tabindex: "-1" }, "No such pair"), h("p", {}, name(route.benchmark), " has no pair of ", name(route.a), " and ", name(route.b), ".")];
  const names = [pair.model_a, pair.model_b];
  const trouble = board.words.held_note;
  return [
    h("p", { class: "crumb" }, h("a", { href: link.benchmark(board.benchmark) }, "← ", name(board.benchmark))),
    h("h1", { tabindex: "-1", class: "versus" }, name(pair.model_a), h("span", { class: "v" }, " v. "), name(pair.model_b)),
    pair.n > 0 && h("p", { class: "actions" }, h("a", { class: "button", href: link.items(board.benchmark, pair.model_a, pair.model_b) }, "Items on which they differ"), files(board, pair, path)),
    h("div", { class: "verdict-line" }, chip(pair), h("p", {}, sentence(pair.reason, names))),
    board.words.partial_note && notice(board.words.partial_note),
    board.words.board_note && notice(board.words.board_note),
    trouble && notice(trouble),
    pair.n > 0 && h("div", { class: "columns" }, facts(pair, board), counts(pair)),
    path?.log_e && path.n.length > 1 && [h("div", { class: "charts" }, evidence(path, board.order.policy), path.gap_low && interval(path, board.alpha, isHeld(pair))), pathTable(path)],
    h("div", { class: "columns" }, verdicts(pair), checklist(pair, board)),
    pair.n > 0 && quote(pair, board),
  ];
}

/** Offer the evidence along the shared items. */
function files(b, pair, path) {
  const drawn = path?.log_e && path.n.length > 1;
  const columns = drawn ? ["n", "gap", "gap_low", "gap_high", "log_e", "log_e_a", "log_e_b"].filter((key) => path[key]) : [];
  return downloads({
    name: [b.benchmark, pair.model_a, pair.model_b], json: () => ({ benchmark: b.benchmark, pair, path }),
    rows: drawn && (() => [columns, ...path.n.map((_, k) => columns.map((key) => path[key][k]))]), figure: drawn ? ".charts" : null,
    heading: `${pair.model_a} v. ${pair.model_b}, ${b.benchmark}`, caption: pair.reason,
  });
}

/** Return at how many items a pair was decided, or how many it needs in all, and the chance of a decision. */
function toDecision(p) {
  if (p.status === "decided") return p.decided_at_n ? [`at ${count(p.decided_at_n)} items`] : null;
  if (isHeld(p)) return null;
  const chance = p.decision_probability === null ? null : `decided by the last item with probability ${fixed(p.decision_probability, 2)}`;
  return [need(p), chance];
}

function facts(p, b) {
  const model = (which) => b.models.find((m) => m.model === which);
  const line = (label, value, note) => [h("dt", {}, label), h("dd", {}, value, note && h("span", { class: "note" }, note))];
  const needed = toDecision(p);
  return h("section", { "aria-labelledby": "numbers" }, h("h2", { id: "numbers" }, "Numbers"), h("dl", { class: "list" },
    line("Gap", `${points(p.gap)} points`, "on the shared items"),
    line("Interval", range(p.gap_low, p.gap_high), `${isHeld(p) ? "not valid while verdicts are held" : "anytime-valid"}, this pair only; family-wise ${range(p.gap_family_low, p.gap_family_high)}`),
    line("Scores", `${percent(p.p_a)} and ${percent(p.p_b)}`, `ranks ${model(p.model_a)?.rank} and ${model(p.model_b)?.rank}`),
    line("Shared items", count(p.n), p.b !== null && `${count(p.b + p.c)} of them discordant`),
    line("Evidence", `e = ${evalue(p.log_e)}`, `ln e ${fixed(p.log_e, 2)}`),
    line("Verdicts rest on", ...restsOn(p)),
    line("On these items", { a: [name(p.model_a), " leads"], b: [name(p.model_b), " leads"], tie: "equal" }[p.settled] ?? "open", settled(p, b)),
    line("Items for this gap", `q = ${ratio(p.resolution_ratio)}`, p.required_n !== null && `a gap of this size needs ${count(Math.ceil(p.required_n))} items at fixed n; q is computed from the observed gap, so it adds no evidence`),
    line("Detectable gap", p.mde === null ? "–" : `${fixed(100 * p.mde, 2)} points`, `with ${percent(b.power, 0)} % power at fixed n`),
    needed && line(p.status === "decided" ? "Decided" : "To a decision", ...needed),
    p.cluster && line("Clusters", count(p.cluster.clusters), `effective number ${fixed(p.cluster.effective_clusters, 1)}, design effect ${fixed(p.cluster.design_effect, 1)}, q = ${ratio(p.cluster.resolution_ratio)}, p ${pvalue(p.p_clustered)}. ${b.clusters?.warning ?? ""}`)));
}

/** Return whether it is settled who leads, and how surely: along a committed order before it is certain. */
function settled(p, b) {
  if (!p.settled) return "not settled";
  return b.order.policy === "committed" && p.n < b.declared_items ? `settled at alpha ${b.alpha}, over all pairs` : "settled: the missing items cannot change it";
}

/** Return the p of the verdicts, and the level that decides the pair in its family, with the digits that show which is the smaller one. */
function restsOn(p) {
  if (p.p_anytime === null || p.family_threshold === null) return [`p ${pvalue(p.p_anytime)}`];
  if (p.p_anytime === 0) return ["p < 10⁻³⁰⁰", `decided in the family at p ≤ ${small(Math.log(p.family_threshold))}`];
  const [found, level] = apart(small, Math.log(p.p_anytime), Math.log(p.family_threshold));
  return [`p = ${found}`, `decided in the family at p ≤ ${level}`];
}

function counts(p) {
  if (p.b === null) return h("section", {}, h("h2", {}, "Counts"), h("p", { class: "about" }, "Graded scores have no counts of right and wrong."));
  const both = Math.round(p.p_a * p.n) - p.b;
  const neither = p.n - p.b - p.c - both;
  const cell = (n, kind, note) => h("td", { class: `number ${kind}` }, h("b", {}, count(n)), h("span", { class: "ends" }, `${percent(n / p.n, 1)} %`, note && ` ${note}`));
  return h("section", { "aria-labelledby": "counts" }, h("h2", { id: "counts" }, "Item by item"),
    h("table", { class: "twobytwo" },
      h("caption", {}, `${plural(p.n, "shared item")}. Only the marked, discordant items show a difference: exactly one model is right.`),
      h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, name(p.model_b), " right"), h("th", { scope: "col" }, name(p.model_b), " wrong"))),
      h("tbody", {},
        h("tr", {}, h("th", { scope: "row" }, name(p.model_a), " right"), cell(both, ""), cell(p.b, "only-a")),
        h("tr", {}, h("th", { scope: "row" }, name(p.model_a), " wrong"), cell(p.c, "only-b"), cell(neither, "")))),
    h("p", { class: "about" }, `p ${pvalue(p.p_exact)} (exact), ${pvalue(p.p_mid).replace("= ", "")} (mid-p), ${pvalue(p.p_chi2).replace("= ", "")} (chi-squared); valid if evaluated once. Correlation of the 0/1 scores (phi) ${fixed(p.rho, 2)}.`));
}

function verdicts(p) {
  const row = (words, procedure, verdict) => h("li", {}, sign(verdict), h("span", {}, procedure.name), h("span", { class: "note" }, words));
  return h("section", { "aria-labelledby": "verdicts" }, h("h2", { id: "verdicts" }, "Under each procedure"),
    h("h3", {}, "Decided: is there evidence which model is better?"),
    h("ul", { class: "procedures" }, DECISIONS.map((procedure) => {
      const side = better(p, procedure.key);
      return row([side ? ["for ", name(side)] : decision(p, procedure.key)[2], `; ${procedure.about}`], procedure, decision(p, procedure.key));
    })),
    h("h3", {}, "Resolved: would a planned test of this many items detect a gap of this size?"),
    h("ul", { class: "procedures" }, RESOLUTIONS.map((procedure) => row(resolution(p, procedure.key)[2], procedure, resolution(p, procedure.key)))));
}

/** List what to check before quoting the difference. */
function checklist(p, b) {
  const [x, y] = [p.model_a, p.model_b].map((which) => b.models.find((m) => m.model === which));
  const least = Math.min(x?.coverage ?? 0, y?.coverage ?? 0);
  const excludesZero = p.gap_family_low !== null && (p.gap_family_low > 0 || p.gap_family_high < 0);
  const order = b.words.held_note;
  const questions = [
    [!order, "Do the verdicts allow for the arrival order?", order ?? `Order policy ${b.order.policy}.`],
    [better(p) !== null, "Is it decided over the whole family of pairs?", better(p) ? `For ${better(p)}.` : "Not yet: report it as a tie."],
    [excludesZero, "Does the family-wise interval exclude 0?", `${range(p.gap_family_low, p.gap_family_high)} points.`],
    [p.resolved.anytime, "Is it resolved even if you look at any time?", `q = ${ratio(p.resolution_ratio)} at fixed n.`],
    [p.cluster === null ? null : p.decided.clustered !== null, "Is it decided when related items count as one cluster?", p.cluster === null ? (b.clusters?.warning ?? "The events name no clusters.") : `Design effect ${fixed(p.cluster.design_effect, 1)} over ${plural(p.cluster.clusters, "cluster")}.`],
    [least >= LOW_COVERAGE, "Do both models cover the benchmark?", `${share(x?.coverage ?? 0)} and ${share(y?.coverage ?? 0)} of the items.`],
    [b.conflicts === 0, "Are the scores free of conflicts?", b.conflicts ? `${plural(b.conflicts, "conflict")} on this benchmark; the first score counts.` : "No conflicts."],
    [p.gap === null ? null : p.gap >= 0, "Do the shared items agree with the ranking?", p.gap < 0 ? "No: the models were scored on different items." : "Yes."],
  ];
  const marks = new Map([[true, ["✓", "good", "yes: "]], [false, ["✗", "odd", "no: "]], [null, ["·", "open", "unknown: "]]]);
  return h("section", { "aria-labelledby": "checks" }, h("h2", { id: "checks" }, "Before you quote it"),
    h("ul", { class: "checks" }, questions.map(([yes, question, answer]) => h("li", {}, sign(marks.get(yes ?? null)), h("span", {}, question), h("span", { class: "note" }, sentence(answer, [x?.model, y?.model]))))));
}

function quote(p, b) {
  const side = better(p);
  const [leader, other] = p.gap < 0 ? [p.model_b, p.model_a] : [p.model_a, p.model_b];
  const [low, high] = p.gap < 0 ? [-p.gap_family_high, -p.gap_family_low] : [p.gap_family_low, p.gap_family_high];
  const verdict = side
    ? `${side} is decided to be better, family-wise over ${plural(b.family.size, "pair")} at alpha ${b.alpha}`
    : isHeld(p) ? "verdicts are held, so it is not decided which is better"
    : `no family-wise decision at alpha ${b.alpha}, so the models are tied`;
  const interval = p.gap_family_low === null ? "" : `, family-wise interval ${range(low, high)}`;
  const ahead = p.gap === 0 ? `${leader} and ${other} have the same score` : `${leader} is ahead of ${other} by ${fixed(100 * Math.abs(p.gap), 2)} points`;
  const text = `On ${b.benchmark}, ${ahead} (${plural(p.n, "shared item")}${interval}); ${verdict} (order policy ${b.order.policy}).`;
  const copy = (event) => {
    const button = event.currentTarget;
    navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Copying was blocked"; });
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  return h("section", { class: "quote", "aria-labelledby": "quote" }, h("h2", { id: "quote" }, "A sentence to quote"),
    h("blockquote", {}, sentence(text, [p.model_a, p.model_b, b.benchmark])),
    navigator.clipboard && h("button", { class: "quiet", type: "button", onclick: copy }, "Copy"));
}
