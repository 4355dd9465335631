// Show what the verdicts rest on: counts, the declaration, and the coverage of each model.

import { report } from "../api.js";
import { h, s } from "../dom.js";
import { count, fixed, percent, plural } from "../format.js";
import { aliases, coverage, hasRepeats, heading, name, notice, repeats, size, someEnded, table } from "../parts.js";
import { loadUpload, upload } from "../upload.js";
import { phrase } from "../words.js";

export const title = ({ benchmark }) => `Data, ${benchmark}`;

export async function load({ benchmark }, signal) {
  const [found] = await Promise.all([report(benchmark, signal), loadUpload()]);
  return found;
}

export function render(b) {
  const trouble = b.words.held_note;
  return [
    ...heading(b.benchmark, "Data quality", "The data and the declaration that the verdicts rest on."),
    b.words.partial_note && notice(b.words.partial_note),
    b.words.reading_notes.map((text) => notice(text)),
    b.words.board_note && notice(b.words.board_note),
    trouble && notice(trouble),
    h("div", { class: "columns" }, counts(b), !b.suite && declared(b)),
    conflicts(b),
    h("h2", {}, "Coverage"),
    h("p", { class: "about" }, "The share of the items that a model has a score for, lowest first. A pair is compared on its shared items."),
    models(b),
    upload(),
  ];
}

const fact = (label, value, note, tone) => [h("dt", {}, label), h("dd", {}, h("span", { class: tone }, value), note && h("span", { class: "note" }, note))];

function counts(b) {
  const odd = (n) => (n ? "odd" : "");
  return h("dl", { class: "list" },
    fact("Items", count(b.items), size(b) > b.items && `of ${count(size(b))}`),
    fact("Scores", count(b.events)),
    repeatFact(b),
    runFact(b),
    fact("Duplicates", count(b.duplicates), "repeated scores, counted once"),
    fact("Conflicts", count(b.conflicts), "a different score for an existing key; the earlier score counts", odd(b.conflicts)),
    b.clusters && fact("Clusters", count(b.clusters.clusters), b.clusters.warning ?? `effective number ${fixed(b.clusters.effective_clusters, 1)}`, odd(b.clusters.warning ? 1 : 0)),
    b.weights && fact("Weights", b.weights.equal ? "equal" : "declared", b.words.weights_note),
    b.epochs.length > 1 && fact("Epochs", b.epochs.join(", "), `a model is ranked by its newest; ${plural(b.unranked, "score")} on items that only an earlier one has`, odd(b.unranked)),
    fact("Rejected", count(b.rejected), "unreadable records, kept as dead letters", odd(b.rejected)));
}

/** Report how many repeats an item has, where it is not one each. */
function repeatFact(b) {
  if (!hasRepeats(b)) return null;
  const known = b.models.flatMap((m) => (m.repeats ? [m.repeats] : []));
  const [least, most] = [Math.min(...known.map((r) => r.min)), Math.max(...known.map((r) => r.max))];
  return fact("Repeats", least === most ? `${count(most)} an item` : `${count(least)} to ${count(most)} an item`, "the score of an item is their mean");
}

/** Report how many runs have ended, if any has. */
function runFact(b) {
  const ended = b.models.filter((m) => m.run_ended).length;
  return ended > 0 && fact("Runs ended", `${count(ended)} of ${count(b.models.length)}`, "nothing more of them comes; later scores are refused");
}

const NAMED = 10;

/** Return what to do about conflicts: an alias merges two models, and a newer epoch replaces the scores of one. */
function advice(b) {
  const aliased = b.models.filter((m) => m.aliases.length && Object.hasOwn(b.conflicts_by_model, m.model));
  const omit = aliased.slice(0, NAMED).map((m) => `The scores of ${m.model} include those of ${m.aliases.join(", ")} (--alias); if these are different models or runs, omit the alias. `);
  const others = Object.keys(b.conflicts_by_model).length > aliased.length;
  return omit.join("") + (others ? "If one file holds both scores, delete one, or number them as repeats (field repeat). To replace the scores of a model, send all of them in another file under a newer epoch (--epoch next)." : "");
}

/** Name the models with most conflicts, and what to do. */
function conflicts(b) {
  const models = Object.entries(b.conflicts_by_model);
  if (!models.length) return null;
  const rest = models.length - NAMED;
  return [
    h("h2", {}, "Conflicts"),
    h("p", { class: "about" }, `Scores that contradict an earlier score of the same model, item and repeat. The earlier score counts. ${advice(b)}`),
    h("dl", { class: "list" }, models.slice(0, NAMED).map(([model, n]) => fact(name(model), count(n)))),
    h("p", { class: "about" }, rest > 0 && `${plural(rest, "more model")}. `,
      h("a", { href: `/api/v1/benchmarks/${encodeURIComponent(b.benchmark)}/conflicts` }, "Each conflict as JSON")),
  ];
}

function declared(b) {
  const family = [b.family.policy === "capacity" ? "declared capacity" : "alpha spending: any number of models may join; pairs that come later get smaller shares (equal ones if you declare the models)",
    b.family_assumption && phrase("assumes", { assumption: b.family_assumption }),
    b.family_outside > 0 && phrase("outside", { n: b.family_outside })].filter(Boolean).join("; ");
  return h("dl", { class: "list" },
    fact("Order policy", b.words.policy_note),
    fact("Arrival order", b.order.suspect ? "suspect" : "no problem detected", b.order.suspect && b.order.reason, b.order.suspect ? "odd" : ""),
    fact("Family", b.family.size === null ? "–" : plural(b.family.size, "pair"), family),
    fact("Error rate", `${Number((100 * b.alpha).toPrecision(3))} %`, "upper bound on the chance of any false family-wise decision"),
    fact("Power", `${percent(b.power, 0)} %`, "required for “resolved”"),
    fact("Mixture", b.mixture));
}

function models(b) {
  const columns = [
    { title: "Model", head: true, class: "wide-cell" },
    { title: "Coverage", class: "number" },
    { title: "Drawn", mark: h("span", { class: "sr" }, "Coverage, drawn"), class: "drawn" },
    { title: "Items", class: "number" },
    { title: "Missing", class: "number" },
    hasRepeats(b) && { title: "Repeats", class: "number" },
    someEnded(b) && { title: "Run" },
  ].filter(Boolean);
  const rows = [...b.models].sort((x, y) => x.coverage - y.coverage || x.rank - y.rank).map((m) => ({
    key: m.model,
    cells: [
      [name(m.model), aliases(m)],
      coverage(m),
      s("svg", { class: "plot", viewBox: "0 0 120 10", width: 120, height: 10, "aria-hidden": "true" },
        s("line", { class: "rail", x1: 0, x2: 120, y1: 5, y2: 5 }), s("rect", { class: "bar sure", x: 0, y: 2, height: 6, rx: 3, width: 120 * Math.min(1, m.coverage) })),
      count(m.items),
      count(Math.max(0, size(b) - m.items)),
      ...(hasRepeats(b) ? [repeats(m)] : []),
      ...(someEnded(b) ? [m.run_ended ? "ended" : "open"] : []),
    ],
  }));
  return table("Coverage of each model", columns, [{ rows }], { class: "data" });
}
