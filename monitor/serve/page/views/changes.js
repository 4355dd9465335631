// List verdict changes, newest first.

import { get } from "../api.js";
import { h } from "../dom.js";
import { apart, count, fixed, plural, points, ratio, small } from "../format.js";
import { heading, link, sentence } from "../parts.js";
import { phrase } from "../words.js";

export const title = ({ benchmark }) => `Changes, ${benchmark}`;

const SHOWN = 200;
const SCOPES = { anytime_family: "family-wise", anytime: "this pair only", settled: "on these items" };

export const load = ({ benchmark }, signal) => get("/changes", { benchmark, newest: true, limit: SHOWN, words: true }, signal);

const seen = { benchmark: null, ids: new Set(), fresh: new Set() };

/** Mark the changes since the benchmark was opened. */
function markFresh(changes, benchmark) {
  const first = seen.benchmark !== benchmark;
  if (first) Object.assign(seen, { benchmark, ids: new Set(), fresh: new Set() });
  for (const { id } of changes) {
    if (!seen.ids.has(id) && !first) seen.fresh.add(id);
    seen.ids.add(id);
  }
}

export function render({ changes, words }, route) {
  markFresh(changes, route.benchmark);
  return [
    ...heading(route.benchmark, "Verdict changes", "Each change is reported once and has the same id on every replay of the log."),
    words.assumed_note && h("p", { class: "about" }, words.assumed_note),
    changes.length
      ? h("ol", { class: "feed", reversed: true }, changes.map((change, k) => entry(change, route.benchmark, words.sentences[k])))
      : h("p", { class: "about" }, "No pair is decided yet. Verdicts appear here as soon as they are reached."),
    changes.length === SHOWN && h("p", { class: "about" }, `These are the latest ${count(SHOWN)} changes. /api/v1/changes lists all of them.`),
  ];
}

function strength({ evidence: e, mixture }) {
  if (e.log_e === null) return "certain";
  const p = mixture.endsWith("exact test at N");
  const [evidence, threshold] = p ? apart((x, more) => small(-x, more), e.log_e, e.log_threshold) : apart((x, more) => fixed(x, 2 + more), e.log_e, e.log_threshold);
  return p ? `p = ${evidence} ≤ ${threshold}` : `ln e ${evidence} ≥ ${threshold}`;
}

/** Show what a monitor of a sentinel reports. */
function drifted(change, benchmark, text) {
  const tone = change.kind === "drift.better" ? "good" : "warn turned";
  return h("li", { "data-key": change.id, class: seen.fresh.has(change.id) && "fresh" },
    h("p", { class: "marks" }, h("span", { class: `chip ${tone}` }, change.kind), h("span", { class: "scope" }, `run ${change.run}`)),
    h("div", {}, h("p", {}, sentence(text, [change.model, benchmark])), h("p", { class: "evidence" }, h("a", { href: link.benchmark(benchmark, "drift") }, "The runs"))));
}

function entry(change, benchmark, text) {
  if (!change.evidence) return drifted(change, benchmark, text);
  const { evidence: e, model_a: a, model_b: b } = change;
  const tone = { decided: "good", settled: "good settled", reversed: "warn turned" }[change.kind] ?? "warn";
  return h("li", { "data-key": change.id, class: seen.fresh.has(change.id) && "fresh" },
    h("p", { class: "marks" }, h("span", { class: `chip ${tone}` }, change.kind), h("span", { class: "scope" }, SCOPES[change.procedure])),
    h("div", {},
      h("p", {}, sentence(text, [a, b, benchmark])),
      h("p", { class: "evidence" },
        h("a", { href: link.pair(benchmark, a, b) }, "The pair", h("span", { class: "sr" }, ` ${a} and ${b}`)),
        ` · after ${plural(e.n, "shared item")} · gap ${points(Math.abs(e.gap))} points · ${strength(change)}`,
        e.missing > 0 && phrase("missing", { n: e.missing }), e.missing > 0 && change.procedure !== "settled" && phrase("missing_against"),
        e.resolution_ratio !== null && ` · q\u00a0${ratio(e.resolution_ratio)}`)));
}
