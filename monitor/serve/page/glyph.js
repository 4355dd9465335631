// The three questions and the signs of their answers. Filled is yes, hollow is no; the shape names the question.

import { h, s } from "./dom.js";
import { WORDS, phrase } from "./words.js";

const SHAPES = {
  settled: () => s("path", { d: "M6 .8 11.2 6 6 11.2 .8 6Z" }),
  decided: () => s("circle", { cx: 6, cy: 6, r: 4.4 }),
  resolved: () => s("rect", { x: 1.8, y: 1.8, width: 8.4, height: 8.4 }),
};

const STATES = {
  yes: (question) => SHAPES[question](),
  no: (question) => SHAPES[question](),
  against: () => s("path", { d: "M1 2h10L6 11Z" }),
  held: () => [s("rect", { x: 0.5, y: 0.5, width: 11, height: 11, rx: 1 }), s("path", { class: "bang", d: "M6 2.6v4M6 8.2v1.4" })],
  equal: () => s("path", { d: "M1.5 4h9M1.5 8h9" }),
  unknown: () => s("circle", { cx: 6, cy: 6, r: 1.2 }),
};

/** Draw a sign; the words next to it carry the meaning. */
export const glyph = (question, state) => s("svg", { class: `glyph ${state}`, viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, STATES[state](question));

/** Return the state of each question for a pair, seen from its first model. */
export function states(pair) {
  const side = pair.decided.anytime_family;
  const held = pair.status === "held" || pair.status === "invalidated";
  const settled = { a: "yes", b: "against", tie: "equal" }[pair.settled] ?? "no";
  const resolved = pair.resolved.fixed_n;
  return {
    settled: pair.n === 0 ? "unknown" : settled,
    decided: side === "b" ? "against" : side === "a" ? "yes" : held ? "held" : pair.n === 0 ? "unknown" : "no",
    resolved: resolved === null ? "unknown" : resolved ? "yes" : "no",
  };
}

export const QUESTIONS = ["settled", "decided", "resolved"];

/** Show the answer to one question as a line of a result: its sign and word, a sentence, and what comes after it. */
export function answerLine(question, state, words, ...others) {
  const word = state === "no" ? `Not ${question}` : state === "held" ? "Held" : question[0].toUpperCase() + question.slice(1);
  return h("div", { class: `line ${state}` }, h("dt", {}, glyph(question, state), ` ${word}`), h("dd", {}, words), others);
}

/** Draw the three signs of a pair, with their words for screen readers. */
export function signs(pair) {
  const state = states(pair);
  return h("span", { class: "signs" }, QUESTIONS.map((question) => [glyph(question, state[question]), h("span", { class: "sr" }, `${WORDS.answers[question][state[question]] ?? phrase("nothing_shared")}, `)]));
}

/** Return whether a state answers its question. */
export const answered = (state) => ["yes", "against", "equal"].includes(state);

const BINS = 100;

/** Draw one tick a step: tall where the answer is yes, hollow where items are missing; of more than 100 steps, bins with the share of yes as height. */
export function ticks(values) {
  const size = Math.min(values.length, BINS);
  const marks = Array.from({ length: size }, (_, k) => {
    const part = values.slice(Math.floor((k * values.length) / size), Math.floor(((k + 1) * values.length) / size));
    const against = part.includes("against");
    const high = part.filter(answered).length / part.length;
    const open = !high && part.includes("open");
    const tall = open ? 7 : Math.max(high * 10, high > 0 ? 3 : 1.5);
    return s("rect", { class: against ? "against" : high > 0 ? "yes" : open ? "open" : "no", x: `${(100 * (k + 0.15)) / size}%`, width: `${70 / size}%`, y: 6 - tall / 2, height: tall });
  });
  return s("svg", { class: "ticks", height: 12, "aria-hidden": "true" }, marks);
}
