// Show the members of a suite: what each counts, the scores in it, and which one makes the largest part of each step down the ranking.

import { h } from "./dom.js";
import { count, fixed, percent, plural, points } from "./format.js";
import { link, name, notice, table } from "./parts.js";

/** Members with a column of scores: the heaviest. */
const COLUMNS = 8;

const ABSENT = { absent: "no events: no model is ranked", battles: "holds battles, which have no score: no model is ranked" };

/** Show the members of a suite; nothing for another benchmark. */
export function members(b) {
  if (!b.suite) return null;
  return [
    b.suite.hides && notice("A benchmark of the same name has events and is not shown. Give the suite another name."),
    h("h2", {}, "Members"),
    counts(b.suite),
    b.suite.members.some((m) => m.baseline) && h("p", { class: "about" }, "A score x above a baseline counts as (x − baseline) / (1 − baseline). Scores by member are shown unchanged."),
    b.models.length > 0 && scores(b),
    lacking(b.suite),
  ];
}

const board = (member) => (member.state === "absent" ? name(member.benchmark) : h("a", { href: link.benchmark(member.benchmark) }, name(member.benchmark)));

function counts({ members: all, gaps }) {
  const drives = (m) => gaps.filter((gap) => gap.driver === m.benchmark).length;
  const note = (m) => [ABSENT[m.state], m.state === "archived" && "archived", m.weighted && "by the plain mean over its items, without its own weights"].filter(Boolean).join(", ");
  const columns = [
    { title: "Benchmark", head: true, class: "wide-cell" },
    { title: "Counts, %", class: "number" },
    all.some((m) => m.baseline) && { title: "Baseline, %", class: "number" },
    { title: "Items", class: "number" },
    { title: "Models", class: "number" },
    { title: "Largest part of", class: "number", about: "steps down the ranking in which it makes the largest part of the gap" },
  ].filter(Boolean);
  const rows = all.map((m) => ({
    key: m.benchmark,
    cells: [
      [board(m), note(m) && h("span", { class: "low aside" }, ` ${note(m)}`)],
      fixed(100 * m.weight, 1),
      ...(columns.length === 6 ? [percent(m.baseline)] : []),
      count(m.items),
      count(m.models),
      `${count(drives(m))} of ${plural(gaps.length, "gap")}`,
    ],
  }));
  return table("Members of the suite", columns, [{ rows }], { class: "data" });
}

/** Show the score of each model in each member, and below it what the member adds to the step to the next rank. */
function scores(b) {
  const shown = [...b.suite.members].sort((x, y) => y.weight - x.weight).slice(0, COLUMNS);
  const omitted = b.suite.members.length - shown.length;
  const step = new Map(b.suite.gaps.map((gap) => [gap.model_a, gap]));
  const cell = (m, member) => {
    const gap = step.get(m.model);
    const drives = gap?.driver === member.benchmark;
    return [
      percent(member.means[m.model] ?? null),
      gap && h("span", { class: `part${drives ? " driver" : ""}` }, points(gap.parts[member.benchmark]), drives && h("span", { class: "sr" }, " the largest part")),
    ];
  };
  const columns = [
    { title: "Model", head: true, class: "wide-cell" },
    { title: "Suite", class: "number" },
    ...shown.map((m) => ({ title: m.benchmark, mark: board(m), class: "number" })),
  ];
  const rows = b.models.map((m) => ({
    key: m.model,
    cells: [h("a", { href: link.model(b.benchmark, m.model) }, name(m.model)), percent(m.mean), ...shown.map((member) => cell(m, member))],
  }));
  return [
    h("h2", {}, "Scores by member"),
    h("p", { class: "about" }, "Below each score: what the member adds to the step to the next rank, in points of the suite. The largest part of each step is ", h("b", { class: "good" }, "blue"), "; the parts add up to the gap.",
      omitted > 0 && ` The ${COLUMNS} members that count most are shown; the report has the other ${count(omitted)}.`),
    table("Scores by member", columns, [{ rows }], { class: "data members" }),
  ];
}

function lacking({ lacking: models, missing }) {
  const all = Object.entries(models);
  if (!all.length) return null;
  return h("details", {}, h("summary", {}, `${plural(all.length, "model")} without a score in some member: ${missing === "worst" ? "it counts 0" : "not ranked"}`),
    table("Models that lack a member", [{ title: "Model", head: true, class: "wide-cell" }, { title: "No score in", class: "wide-cell" }],
      [{ rows: all.map(([model, lacks]) => ({ key: model, cells: [name(model), lacks.map((each, k) => [k > 0 && ", ", name(each)])] })) }], { class: "data" }));
}
