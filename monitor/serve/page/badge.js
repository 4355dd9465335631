// Draw the possible ranks of a model as an SVG badge, like those of `rankwatch export`: light or dark as the page that shows it.

import { s } from "./dom.js";
import { ranks } from "./format.js";
import { isHeld } from "./parts.js";
import { FORBIDDEN } from "./picture.js";
import { phrase } from "./words.js";

const [HEIGHT, PAD, SIGN] = [22, 8, 15]; // pixels; SIGN is that of the sign with the space after it
const STYLE = "text{font:12px system-ui,sans-serif}.v{font-weight:600}.p{fill:#fff}.t{fill:#1b222b}"
  + ".yes{fill:#eaf2fb;stroke:#0a56ad}.yes-t{fill:#0a56ad}.no{fill:#f1f2f3;stroke:#5c6672}.no-t{fill:#5c6672}.held{fill:#fdeee4;stroke:#99440a}.held-t{fill:#99440a}"
  + "@media(prefers-color-scheme:dark){.p{fill:#191f27}.t{fill:#e6eaef}.yes{fill:#1d3a5c;stroke:#7db9ff}.yes-t{fill:#7db9ff}"
  + ".no{fill:#2a3139;stroke:#a0abb8}.no-t{fill:#a0abb8}.held{fill:#4a2a12;stroke:#ffb26b}.held-t{fill:#ffb26b}}";
const SIGNS = { yes: "M.5 11a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", no: "M.5 11a4 4 0 1 0 8 0a4 4 0 1 0-8 0zM2 11a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0z", held: "M0 6.5h9v9H0zM3.7 8v4h1.6V8zM3.7 12.8v1.5h1.6v-1.5z" };

/** Return what the badge of a model states, and whether that is an answer. */
export function place(b, model) {
  if (b.order.policy === "none" || (b.pairs.length > 0 && b.pairs.every(isHeld))) return { state: "held", words: phrase("held") };
  const one = model.rank_low === model.rank_high;
  return { state: one ? "yes" : "no", words: phrase("place", { ranks: ranks(model.rank_low, model.rank_high), all: b.models.length }) };
}

/** Return the badge of a model as the text of an SVG file. */
export function badge(b, model) {
  const { state, words } = place(b, model);
  const label = b.benchmark.replace(FORBIDDEN, "");
  const pen = document.createElement("canvas").getContext("2d");
  const width = (text, font) => Object.assign(pen, { font }).measureText(text).width;
  const [first, second] = [width(label, "12px system-ui, sans-serif"), width(words, "600 12px system-ui, sans-serif")].map(Math.round);
  const start = first + 2 * PAD;
  const total = start + second + 2 * PAD + SIGN;
  const text = (at, length, kind, content) => s("text", { class: kind, x: at, y: 15, textLength: length, lengthAdjust: "spacingAndGlyphs" }, content);
  const title = `${label}: ${model.model.replace(FORBIDDEN, "")}, ${words}`;
  const drawn = s("svg", { xmlns: "http://www.w3.org/2000/svg", width: total, height: HEIGHT, role: "img", "aria-label": title },
    s("title", {}, title), s("style", {}, STYLE),
    s("rect", { class: state, x: 0.5, y: 0.5, width: total - 1, height: HEIGHT - 1, rx: 3 }),
    s("path", { class: "p", d: `M3.5 1H${start}V21H3.5A2.5 2.5 0 0 1 1 18.5V3.5A2.5 2.5 0 0 1 3.5 1Z` }),
    text(PAD, first, "t", label),
    s("path", { class: `${state}-t`, "fill-rule": "evenodd", transform: `translate(${start + PAD})`, d: SIGNS[state] }),
    text(start + PAD + SIGN, second, `v ${state}-t`, words));
  return new XMLSerializer().serializeToString(drawn);
}
