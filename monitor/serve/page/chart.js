// Draw two SVG charts of a pair along its shared items: the evidence against its thresholds, and the interval for the gap.

import { h, s } from "./dom.js";
import { apart, count, evalue, fixed, isolated, points, superscript } from "./format.js";

const HEIGHT = 284;
const PAD = { left: 48, right: 20, top: 30, bottom: 42 };

/** One unit is about one pixel, so text keeps its size on a narrow screen. */
const width = () => Math.min(560, Math.max(300, innerWidth - 40));

function ticks(low, high, about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) values.push(k * step || 0);
  return values;
}

const linear = ([d0, d1], [r0, r1]) => (value) => r0 + ((Math.min(Math.max(value, d0), d1) - d0) / (d1 - d0)) * (r1 - r0);

const line = (x, y, xs, ys) => `M${xs.map((value, k) => `${x(value).toFixed(1)},${y(ys[k]).toFixed(1)}`).join("L")}`;

function frame({ id, title, about, xs, domain, unit, labels, marks }) {
  const wide = width();
  const right = wide - PAD.right;
  const x = linear([0, xs.at(-1)], [PAD.left, right]);
  const y = linear(domain, [HEIGHT - PAD.bottom, PAD.top]);
  return s("svg", { class: "chart", viewBox: `0 0 ${wide} ${HEIGHT}`, role: "img", "aria-labelledby": `${id}-title ${id}-about` },
    s("title", { id: `${id}-title` }, title),
    s("desc", { id: `${id}-about` }, about),
    labels.map(([value, text]) => [
      s("line", { class: "rule", x1: PAD.left, x2: right, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: PAD.left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
    ]),
    ticks(0, xs.at(-1), wide > 400 ? 5 : 3).map((value) => s("text", { class: "tick", x: x(value), y: HEIGHT - 24, "text-anchor": "middle" }, count(value))),
    s("text", { class: "tick", x: (PAD.left + right) / 2, y: HEIGHT - 7, "text-anchor": "middle" }, "shared items"),
    s("text", { class: "tick", x: 8, y: 17 }, unit),
    marks(x, y, right),
    s("line", { class: "cross", x1: 0, x2: 0, y1: PAD.top, y2: HEIGHT - PAD.bottom, visibility: "hidden" }));
}

/** Make a figure whose readout follows the pointer. */
function figure({ title, xs, read, caption, start }, picture) {
  const move = (event) => {
    const chart = event.currentTarget.querySelector("svg");
    const words = event.currentTarget.querySelector(".readout");
    const box = chart.getBoundingClientRect();
    const wide = chart.viewBox.baseVal.width;
    const inner = wide - PAD.left - PAD.right;
    const n = ((((event.clientX - box.left) / box.width) * wide - PAD.left) / inner) * xs.at(-1);
    let k = xs.findIndex((value) => value >= n);
    if (k < 0) k = xs.length - 1;
    const cross = chart.querySelector(".cross");
    // A live update skips both until the pointer leaves.
    cross.dataset.keep = words.dataset.keep = "";
    const place = PAD.left + (xs[k] / xs.at(-1)) * inner;
    cross.setAttribute("x1", place);
    cross.setAttribute("x2", place);
    cross.setAttribute("visibility", "visible");
    words.textContent = read(k);
  };
  const leave = (event) => {
    const cross = event.currentTarget.querySelector(".cross");
    const words = event.currentTarget.querySelector(".readout");
    cross.setAttribute("visibility", "hidden");
    words.textContent = start;
    delete cross.dataset.keep;
    delete words.dataset.keep;
  };
  return h("figure", { onpointermove: move, onpointerleave: leave }, h("h3", {}, title), picture, h("p", { class: "readout" }, start), h("figcaption", {}, caption));
}

/** Return a place next to a threshold where its words cover no line; none where there is no such place. */
function clear(text, [first, second], lines, n, x, y, right) {
  const wide = 7.6 * text.length;
  const crosses = (values, k, top, bottom) => k > 0 && Math.min(y(values[k - 1]), y(values[k])) < bottom && Math.max(y(values[k - 1]), y(values[k])) > top;
  const covers = ({ x: left, y: base }) => lines.some((values) => n.some((items, k) => x(items) > left - 4 && x(items) < left + wide + 4 && crosses(values, k, base - 14, base + 4)));
  const places = [first, second].flatMap((base) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((k) => ({ x: PAD.left + 6 + (k / 8) * Math.max(0, right - PAD.left - 12 - wide), y: base })));
  return places.find((place) => !covers(place));
}

/** Draw the e-process and its directional halves on a logarithmic scale, against 1/alpha and 1/alpha_j. */
export function evidence(path, policy) {
  const { n, log_e: e, log_e_a: a, log_e_b: b, log_threshold: alone, log_family_threshold: joint } = path;
  const lines = [...e, ...a, ...b];
  const top = Math.max(...lines, joint ?? alone, alone) * 1.06 + 0.5;
  const low = Math.max(Math.min(...lines) - 0.5, -0.35 * top);
  const labels = ticks(low / Math.LN10, top / Math.LN10, 5).filter(Number.isInteger).map((p) => [p * Math.LN10, p === 0 ? "1" : p === 1 ? "10" : `10${superscript(p)}`]);
  const threshold = (value, text, kind, x, y, right) => {
    if (value === null) return null;
    const [above, below] = [y(value) - 6, y(value) + 15];
    const place = clear(text, kind === "joint" ? [above, below] : [below, above], [e, a, b], n, x, y, right);
    return [s("line", { class: `threshold ${kind}`, x1: PAD.left, x2: right, y1: y(value), y2: y(value) }), place && s("text", { class: `tag ${kind}`, ...place }, text)];
  };
  const last = n.length - 1;
  const [now, aloneText, jointText] = apart(evalue, e[last], alone, joint);
  const picture = frame({
    id: "evidence", title: "Evidence", xs: n, domain: [low, top], unit: "e-value", labels,
    about: `The e-value is ${now} after ${count(n[last])} shared items. The threshold for this pair only is ${aloneText}; the family-wise threshold is ${joint === null ? "not assigned" : jointText}.`,
    marks: (x, y, right) => [
      s("path", { class: "line half-b", d: line(x, y, n, b) }),
      s("path", { class: "line half-a", d: line(x, y, n, a) }),
      s("path", { class: "line main", d: line(x, y, n, e) }),
      threshold(alone, `this pair only: ${aloneText}`, "alone", x, y, right),
      threshold(joint, `family-wise: ${jointText}`, "joint", x, y, right),
    ],
  });
  const read = (k) => `${count(n[k])} items · e = ${k === last ? now : evalue(e[k])} · for ${isolated(path.model_a)} ${evalue(a[k])} · for ${isolated(path.model_b)} ${evalue(b[k])}`;
  const start = `Now: ${read(last)}`;
  const caption = [
    h("span", { class: "swatch-line main" }), " both directions ", h("span", { class: "swatch-line half-a" }), ` for ${isolated(path.model_a)} `,
    h("span", { class: "swatch-line half-b" }), ` for ${isolated(path.model_b)}. `,
    `Thresholds: ${joint === null ? "" : `family-wise ${jointText}, `}this pair only ${aloneText} (dotted). Order of the items: ${path.order}. `,
    policy === "committed" ? "The pair is decided where the line crosses the threshold." : `Under the order policy ${policy}, the decision need not fall where the line crosses the threshold.`,
  ];
  return figure({ title: "Evidence against its thresholds", xs: n, read, caption, start }, picture);
}

/** Draw the gap and its interval, which is anytime-valid unless verdicts are held. */
export function interval(path, alpha, held) {
  const { n, gap, gap_low: low, gap_high: high } = path;
  // The interval of the first items is so wide that it would flatten the rest.
  const from = Math.min(n.length - 1, Math.floor(n.length * 0.06));
  const top = Math.max(...high.slice(from), 0.001);
  const bottom = Math.min(...low.slice(from), -0.001);
  const labels = ticks(100 * bottom, 100 * top, 5).map((value) => [value / 100, points(value / 100, Math.max(...[top, -bottom]) < 0.03 ? 1 : 0)]);
  const last = n.length - 1;
  const read = (k) => `${count(n[k])} items · gap ${points(gap[k])} points, interval ${points(low[k])} to ${points(high[k])}`;
  const picture = frame({
    id: "interval", title: "Interval", xs: n, domain: [bottom, top], unit: "points", labels,
    about: `${read(last)}.`,
    marks: (x, y, right) => [
      s("path", { class: "band", d: `${line(x, y, n, high)}L${line(x, y, [...n].reverse(), [...low].reverse()).slice(1)}Z` }),
      s("line", { class: "zero", x1: PAD.left, x2: right, y1: y(0), y2: y(0) }),
      s("path", { class: "line main", d: line(x, y, n, gap) }),
      s("text", { class: "tag", x: right - 4, y: PAD.top + 6, "text-anchor": "end" }, `${isolated(path.model_a)} ahead`),
      s("text", { class: "tag", x: right - 4, y: HEIGHT - PAD.bottom - 6, "text-anchor": "end" }, `${isolated(path.model_b)} ahead`),
    ],
  });
  const caption = `Gap in points with its ${fixed(100 * (1 - alpha), 0)} % interval, ${held ? "not valid while verdicts are held" : "valid at any time"}. While the interval contains 0, this pair is undecided on its own.`;
  return figure({ title: "Gap with its interval", xs: n, read, caption, start: `Now: ${read(last)}` }, picture);
}

/** Show the charts as a table, at a few points. */
export function pathTable({ n, log_e: e, gap, gap_low: low, gap_high: high }) {
  const places = [...new Set([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1].map((part) => Math.max(0, Math.round(part * n.length) - 1)))];
  return h("details", { class: "legend" }, h("summary", {}, "The charts as a table"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The charts as a table" },
      h("table", { class: "data small" },
        h("caption", { class: "sr" }, "Evidence and interval by number of shared items"),
        h("thead", {}, h("tr", {}, ["Items", "e-value", "ln e", "Gap", "Low", "High"].map((text) => h("th", { scope: "col", class: "number" }, text)))),
        h("tbody", {}, places.map((k) => h("tr", {},
          h("th", { scope: "row", class: "number" }, count(n[k])),
          [evalue(e[k]), fixed(e[k], 2), points(gap[k]), points(low?.[k]), points(high?.[k])].map((text) => h("td", { class: "number" }, text))))))));
}
