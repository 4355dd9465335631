// State once, above a list of verdicts, what they assume. The sentence of a verdict ends with it.

import { h } from "./dom.js";
import { count } from "./format.js";

const KINDS = { settled: "settled leads", anytime: "pair-only verdicts", anytime_family: "family-wise verdicts" };
const CLAUSE = / Assumes that ((?:(?! Assumes that ).)*)\.$/s; // the last one: a name may contain the words
const MORE = ", and that ";

const clauseOf = (text) => text.match(CLAUSE)?.[1];

/** Return the assumption that most verdicts of each kind make. */
function common(verdicts) {
  const tallies = {};
  for (const { kind, text } of verdicts) {
    const clause = clauseOf(text);
    const tally = (tallies[kind] ??= new Map());
    if (clause) tally.set(clause, (tally.get(clause) ?? 0) + 1);
  }
  return Object.keys(KINDS).filter((kind) => tallies[kind]?.size).map((kind) => ({ kind, clause: [...tallies[kind]].sort(([, m], [, n]) => n - m)[0][0] }));
}

/**
 * Return what most verdicts assume as a paragraph, and a function that drops it from the sentence of one.
 *
 * verdicts: [{kind, text}], of those whose sentence ends with what they assume.
 */
export function assumptions(verdicts) {
  const known = common(verdicts);
  const commonOf = (kind) => known.find((k) => k.kind === kind)?.clause;
  const drop = (kind, text) => {
    const words = ` Assumes that ${commonOf(kind)}.`;
    const at = text.lastIndexOf(words);
    return at < 0 ? text : text.slice(0, at) + text.slice(at + words.length);
  };
  const statements = [];
  for (const { kind, clause } of known) {
    const last = statements.at(-1);
    if (last?.clause === clause) last.kinds.push(KINDS[kind]);
    else statements.push({ clause, kinds: [KINDS[kind]], also: last && clause.startsWith(last.clause + MORE) && clause.slice((last.clause + MORE).length) });
  }
  const kinds = new Set(verdicts.map((v) => v.kind)).size;
  const others = verdicts.filter(({ kind, text }) => (clauseOf(text) ?? commonOf(kind)) !== commonOf(kind)).length;
  const words = statements.map((s) => {
    const who = s.kinds.length === kinds ? "verdicts" : s.kinds.join(" and ");
    return `${who[0].toUpperCase()}${who.slice(1)} ${s.also ? `also assume that ${s.also}` : `assume that ${s.clause}`}.`;
  });
  if (others) words.push(others === 1 ? "One verdict names another assumption." : `${count(others)} verdicts name another assumption.`);
  return { stated: words.length > 0 && h("p", { class: "about" }, words.join(" ")), drop };
}
