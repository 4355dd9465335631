// Show every pair of neighbours in rank under every procedure, with decided and resolved as separate questions.

import { report } from "../api.js";
import { h } from "../dom.js";
import { count, fixed, points, range } from "../format.js";
import { DECISIONS, RESOLUTIONS, chip, decision, heading, link, name, notice, resolution, sentence, sign, table } from "../parts.js";
import { WORDS, phrase } from "../words.js";

export const title = ({ benchmark }) => `Neighbours, ${benchmark}`;

export const load = ({ benchmark }, signal) => report(benchmark, signal);

/** The words for each group of signs, by the procedure that begins it; a phone shows them next to the group. */
const GROUPS = { anytime_family: "Any time", fixed_n: "Planned n" };

const { decided: DECIDED, resolved: RESOLVED } = WORDS.answers;

const COLUMNS = [
  { title: "Pair", head: true, class: "pair" },
  { title: "Gap in points", class: "number gap" },
  ...DECISIONS.map((p) => ({ title: p.short, about: `${DECIDED.yes}, ${p.name}: ${p.about}`, class: `mark ${GROUPS[p.key] ? "edge" : ""}`, group: GROUPS[p.key], mark: [h("span", { class: "sr" }, `${DECIDED.yes}, `), p.short] })),
  ...RESOLUTIONS.map((p, k) => ({ title: p.short, about: `${RESOLVED.yes}, ${p.name}`, class: `mark ${k ? "" : "edge"}`, group: k ? null : "Resolved", mark: [h("span", { class: "sr" }, `${RESOLVED.yes}, `), p.short] })),
];

export function render(b) {
  const { held_note: held, assumed_note: assumed } = b.words;
  return [
    ...heading(b.benchmark, "Neighbours in rank", "Each model against the next, under each procedure. The first column of signs is the headline. The columns from “Fixed” on are valid at a planned n only, evaluated once."),
    held && notice(held),
    b.clusters?.warning && h("p", { class: "about" }, `Clusters: ${b.clusters.warning}`),
    assumed && h("p", { class: "about" }, assumed),
    counts(b),
    key(),
    b.pairs.length ? pairs(b) : h("p", { class: "about" }, "There are no pairs yet: a pair needs two models."),
  ];
}

function counts({ summary }) {
  const line = (label, procedures, values) => h("tr", {},
    h("th", { scope: "row" }, label),
    procedures.map(({ key: procedure }) => h("td", { class: "number" }, procedure === null ? "" : count(values[procedure]))));
  const resolved = DECISIONS.map(({ key: procedure }) => ({ key: RESOLUTIONS.some((r) => r.key === procedure) ? procedure : null }));
  return h("details", { class: "legend" }, h("summary", {}, phrase("procedures", { n: summary.pairs })),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counts per procedure" },
      h("table", { class: "data small" },
        h("caption", { class: "sr" }, "Undecided and unresolved pairs per procedure"),
        h("thead", {}, h("tr", {}, h("td", {}), DECISIONS.map((p) => h("th", { scope: "col", class: "number" }, p.short)))),
        h("tbody", {}, line("Undecided", DECISIONS, summary.undecided), line("Unresolved", resolved, summary.unresolved)))));
}

const SIGNS = [
  ["●", "good", DECIDED.yes], ["▼", "warn", DECIDED.against], ["○", "open", DECIDED.no],
  ["■", "good", RESOLVED.yes], ["□", "open", RESOLVED.no], ["·", "open", RESOLVED.unknown],
];

const key = () => h("ul", { class: "key" }, SIGNS.map(([glyph, tone, words]) =>
  h("li", {}, h("span", { class: `sign ${tone}`, "aria-hidden": "true" }, glyph), ` ${words}`)));

function pairs(b) {
  const rows = b.pairs.map((p, k) => ({
    key: link.pair(b.benchmark, p.model_a, p.model_b),
    cells: [
      [
        h("a", { href: link.pair(b.benchmark, p.model_a, p.model_b) }, name(p.model_a), h("span", { class: "v" }, " v. "), name(p.model_b)),
        h("p", { class: "reason" }, chip(p), " ", sentence(b.words.reasons[k], [p.model_a, p.model_b])),
      ],
      [h("b", {}, points(p.gap)), h("span", { class: "ends" }, range(p.gap_family_low ?? p.gap_low, p.gap_family_high ?? p.gap_high)), h("span", { class: "ends" }, `ln e ${fixed(p.log_e, 2)}`)],
      ...DECISIONS.map(({ key: procedure }) => sign(decision(p, procedure))),
      ...RESOLUTIONS.map(({ key: procedure }) => sign(resolution(p, procedure))),
    ],
  }));
  const made = table("Neighbours in rank, decided and resolved under each procedure", COLUMNS, [{ rows }], { class: "data verdicts" });
  const over = (text, span, kind) => h("th", { role: "columnheader", scope: "colgroup", colspan: span, class: kind }, text);
  made.tHead.prepend(h("tr", { role: "row", class: "over" }, h("td", { role: "cell", colspan: 2 }),
    over("Decided, any time", 3, "edge"), over("Decided, at a planned n", 5, "edge"), over("Resolved", 4, "edge")));
  return made;
}
