// What the verdicts rest on: how complete the results are, what was odd about them, what was declared.

import { report } from "../api.js";
import { h, s } from "../dom.js";
import { count, percent, plural } from "../format.js";
import { coverage, heading, name, notice, orderTrouble, size, table } from "../parts.js";

export const title = ({ benchmark }) => `Data, ${benchmark}`;

export const load = ({ benchmark }, signal) => report(benchmark, signal);

const POLICIES = {
  completion: "completion: a verdict is given once the missing items can no longer undo it, in whatever order results arrive",
  committed: "committed: the items follow a permutation that was fixed before the first score",
  trusted: "trusted: it was declared that the order of arrival does not depend on outcomes or clusters",
  none: "none: nothing was declared, so no verdict is given at any time",
};

export function render(b) {
  const trouble = orderTrouble(b);
  return [
    h("h1", { tabindex: "-1" }, name(b.benchmark)),
    ...heading("Data quality", "What the verdicts rest on."),
    trouble && notice(trouble),
    h("div", { class: "columns" }, counts(b), declared(b)),
    h("h3", {}, "Coverage"),
    h("p", { class: "about" }, "The share of the benchmark's items that a model has a score for, least first. A pair is compared on the items that both have."),
    models(b),
  ];
}

const fact = (label, value, note, tone) => [h("dt", {}, label), h("dd", {}, h("span", { class: tone }, value), note && h("span", { class: "note" }, note))];

function counts(b) {
  const odd = (n) => (n ? "low" : "");
  return h("dl", { class: "list" },
    fact("Items", count(b.items), size(b) > b.items && `of ${count(size(b))}`),
    fact("Results", count(b.events)),
    fact("Duplicates", count(b.duplicates), "the same score again: counted once"),
    fact("Conflicts", count(b.conflicts), "another score for a key that had one: the first stands", odd(b.conflicts)),
    fact("Rejected", count(b.rejected), "could not be read, and kept as dead letters", odd(b.rejected)));
}

function declared(b) {
  const family = b.family.policy === "capacity" ? "declared capacity" : "spending: models may join without limit";
  return h("dl", { class: "list" },
    fact("Order policy", POLICIES[b.order.policy]),
    fact("Arrival order", b.order.suspect ? "suspect" : "nothing suspicious seen", b.order.suspect && b.order.reason, b.order.suspect ? "low" : ""),
    fact("Family", b.family.size === null ? "–" : plural(b.family.size, "pair"), family),
    fact("Error rate", `${percent(b.alpha, 1)} %`, "of any false family-wise decision, at most"),
    fact("Power", `${percent(b.power, 0)} %`, "that “resolved” asks for"),
    fact("Mixture", b.mixture));
}

function models(b) {
  const columns = [
    { title: "Model", head: true, class: "wide-cell" },
    { title: "Coverage", class: "number" },
    { title: "Drawn", mark: h("span", { class: "sr" }, "Coverage, drawn"), class: "drawn" },
    { title: "Items", class: "number" },
    { title: "Missing", class: "number" },
  ];
  const rows = [...b.models].sort((x, y) => x.coverage - y.coverage || x.rank - y.rank).map((m) => ({
    key: m.model,
    cells: [
      name(m.model),
      coverage(m),
      s("svg", { class: "plot", viewBox: "0 0 120 10", width: 120, height: 10, "aria-hidden": "true" },
        s("line", { class: "rail", x1: 0, x2: 120, y1: 5, y2: 5 }), s("rect", { class: "bar sure", x: 0, y: 2, height: 6, rx: 3, width: 120 * Math.min(1, m.coverage) })),
      count(m.items),
      count(Math.max(0, size(b) - m.items)),
    ],
  }));
  return table("Coverage of each model", columns, [{ rows }], { class: "data" });
}
