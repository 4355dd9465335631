// Every pair of neighbours under every procedure; decided and resolved stay two questions.

import { report } from "../api.js";
import { h } from "../dom.js";
import { count, fixed, points, range } from "../format.js";
import { DECISIONS, RESOLUTIONS, chip, decision, heading, link, name, notice, orderTrouble, resolution, sentence, sign, table } from "../parts.js";

export const title = ({ benchmark }) => `Neighbours, ${benchmark}`;

export const load = ({ benchmark }, signal) => report(benchmark, signal);

const COLUMNS = [
  { title: "Pair", head: true, class: "pair" },
  { title: "Gap in points", class: "number gap" },
  ...DECISIONS.map((p, k) => ({ title: p.short, about: `decided, ${p.name}: ${p.about}`, class: `mark ${edge(k, p)}`, mark: [h("span", { class: "sr" }, "Decided, "), p.short] })),
  ...RESOLUTIONS.map((p, k) => ({ title: p.short, about: `resolved, ${p.name}`, class: `mark ${k ? "" : "edge"}`, mark: [h("span", { class: "sr" }, "Resolved, "), p.short] })),
];

function edge(k, procedure) {
  return k === 0 || procedure.key === "fixed_n" ? "edge" : "";
}

export function render(b) {
  const trouble = orderTrouble(b);
  return [
    h("h1", { tabindex: "-1" }, name(b.benchmark)),
    ...heading("Neighbours in rank", "Each model against the next, under each procedure. The first column of signs is the headline; what follows “Fixed” is valid at a planned n only, looked at once."),
    trouble && notice(trouble),
    counts(b),
    key(),
    b.pairs.length ? pairs(b) : h("p", { class: "about" }, "There is no pair yet."),
  ];
}

function counts({ summary }) {
  const line = (label, procedures, values) => h("tr", {},
    h("th", { scope: "row" }, label),
    procedures.map(({ key: procedure }) => h("td", { class: "number" }, procedure === null ? "" : count(values[procedure]))));
  const columns = [...DECISIONS];
  const resolved = columns.map(({ key: procedure }) => ({ key: RESOLUTIONS.some((r) => r.key === procedure) ? procedure : null }));
  return h("details", { class: "legend" }, h("summary", {}, `How many of ${count(summary.pairs)} each procedure leaves open`),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counts per procedure" },
      h("table", { class: "data small" },
        h("caption", { class: "sr" }, "Undecided and unresolved pairs per procedure"),
        h("thead", {}, h("tr", {}, h("td", {}), columns.map((p) => h("th", { scope: "col", class: "number" }, p.short)))),
        h("tbody", {}, line("Undecided", columns, summary.undecided), line("Unresolved", resolved, summary.unresolved)))));
}

function key() {
  return h("ul", { class: "key" },
    h("li", {}, h("span", { class: "sign good", "aria-hidden": "true" }, "●"), " decided"),
    h("li", {}, h("span", { class: "sign warn", "aria-hidden": "true" }, "▼"), " decided for the second"),
    h("li", {}, h("span", { class: "sign open", "aria-hidden": "true" }, "○"), " undecided"),
    h("li", {}, h("span", { class: "sign good", "aria-hidden": "true" }, "■"), " resolved"),
    h("li", {}, h("span", { class: "sign open", "aria-hidden": "true" }, "□"), " not resolved"),
    h("li", {}, h("span", { class: "sign open", "aria-hidden": "true" }, "·"), " not computed"));
}

function pairs(b) {
  const rows = b.pairs.map((p) => ({
    key: link.pair(b.benchmark, p.model_a, p.model_b),
    cells: [
      [
        h("a", { href: link.pair(b.benchmark, p.model_a, p.model_b) }, name(p.model_a), h("span", { class: "v" }, " v. "), name(p.model_b)),
        h("p", { class: "reason" }, chip(p), " ", sentence(p.reason, [p.model_a, p.model_b])),
      ],
      [h("b", {}, points(p.gap)), h("span", { class: "ends" }, range(p.gap_family_low ?? p.gap_low, p.gap_family_high ?? p.gap_high)), h("span", { class: "ends" }, `ln e ${fixed(p.log_e, 2)}`)],
      ...DECISIONS.map(({ key: procedure }) => sign(decision(p, procedure))),
      ...RESOLUTIONS.map(({ key: procedure }) => sign(resolution(p, procedure))),
    ],
  }));
  const made = table("Neighbours in rank, decided and resolved under each procedure", COLUMNS, [{ rows }], { class: "data verdicts" });
  const over = (text, span, kind) => h("th", { role: "columnheader", scope: "colgroup", colspan: span, class: kind }, text);
  made.tHead.prepend(h("tr", { role: "row", class: "over" }, h("td", { role: "cell", colspan: 2 }),
    over("Decided, at any time", 3, "edge"), over("Decided, at a planned n", 5, "edge"), over("Resolved", 4, "edge")));
  return made;
}
