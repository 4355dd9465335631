// Draw SVG charts of a pair along its shared items: items won minus items lost, the evidence against its thresholds, the interval for the gap.

import { h, s } from "./dom.js";
import { apart, count, evalue, fixed, isolated, plural, points, small, superscript } from "./format.js";
import { phrase } from "./words.js";

const HEIGHT = 284;
const PAD = { left: 48, right: 20, top: 30, bottom: 42 };

/** One unit is about one pixel, so text keeps its size on a narrow screen. */
const width = (most = 560) => Math.min(most, Math.max(300, innerWidth - 40));

/** The width of a chart that has a row of its own. */
export const wideWidth = () => width(1132);

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

function frame({ id, title, about, xs, from = 0, end = xs.at(-1), domain, unit, labels, marks, wide = width(), numbered = true }) {
  const right = wide - PAD.right;
  const x = linear([from, end], [PAD.left, right]);
  const y = linear(domain, [HEIGHT - PAD.bottom, PAD.top]);
  return s("svg", { class: "chart", viewBox: `0 0 ${wide} ${HEIGHT}`, role: "img", "aria-labelledby": `${id}-title ${id}-about` },
    s("title", { id: `${id}-title` }, title),
    s("desc", { id: `${id}-about` }, about),
    labels.map(([value, text]) => [
      s("line", { class: "rule", x1: PAD.left, x2: right, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: PAD.left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
    ]),
    numbered && [ticks(from, end, wide > 400 ? 5 : 3).map((value) => s("text", { class: "tick", x: x(value), y: HEIGHT - 24, "text-anchor": "middle" }, count(value))),
      s("text", { class: "tick", x: (PAD.left + right) / 2, y: HEIGHT - 7, "text-anchor": "middle" }, "shared items")],
    s("text", { class: "tick", x: 8, y: 17 }, unit),
    marks(x, y, right),
    s("line", { class: "cross", x1: 0, x2: 0, y1: PAD.top, y2: HEIGHT - PAD.bottom, visibility: "hidden" }));
}

/** Make a figure whose readout follows the pointer. */
function figure({ title, about, xs, from = 0, end = xs.at(-1), read, caption, start }, picture) {
  const move = (event) => {
    const chart = event.currentTarget.querySelector("svg");
    const words = event.currentTarget.querySelector(".readout");
    const box = chart.getBoundingClientRect();
    const wide = chart.viewBox.baseVal.width;
    const inner = wide - PAD.left - PAD.right;
    const n = from + ((((event.clientX - box.left) / box.width) * wide - PAD.left) / inner) * (end - from);
    let k = xs.findIndex((value) => value >= n);
    if (k < 0) k = xs.length - 1;
    const cross = chart.querySelector(".cross");
    // A live update skips both until the pointer leaves.
    cross.dataset.keep = words.dataset.keep = "";
    const place = PAD.left + ((xs[k] - from) / (end - from)) * inner;
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
  return h("figure", { onpointermove: move, onpointerleave: leave }, h("h2", {}, title), about && h("p", { class: "about" }, about), picture, h("p", { class: "readout" }, start), caption && h("figcaption", {}, caption));
}

/** Return a place next to a threshold where its words cover no line; none where there is no such place. */
function clear(text, [first, second], lines, n, x, y, right) {
  const wide = 7.6 * text.length;
  const crosses = (values, k, top, bottom) => k > 0 && Math.min(y(values[k - 1]), y(values[k])) < bottom && Math.max(y(values[k - 1]), y(values[k])) > top;
  const covers = ({ x: left, y: base }) => lines.some((values) => n.some((items, k) => x(items) > left - 4 && x(items) < left + wide + 4 && crosses(values, k, base - 14, base + 4)));
  const places = [first, second].flatMap((base) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((k) => ({ x: PAD.left + 6 + (k / 8) * Math.max(0, right - PAD.left - 12 - wide), y: base })));
  return places.find((place) => !covers(place));
}

const signed = (items) => (items < 0 ? `−${count(-items)}` : items > 0 ? `+${count(items)}` : "0");

/** Draw items won minus items lost against the lead that decides, with what the missing items could still do, and its last items. */
export function lead(path, now) {
  const all = path.n.map((n, k) => Math.round(n * path.gap[k]));
  const [end, total] = [path.n.at(-1), path.n.at(-1) + (path.missing ?? 0)];
  const needed = path.lead_needed === null ? null : (now < 0 ? -1 : 1) * path.lead_needed;
  const last = path.n.findIndex((n) => n >= end - 60);
  const close = !path.missing && needed !== null && Math.abs(now) < Math.abs(needed) && Math.abs(needed) - Math.abs(now) <= 60 && last > 0;
  const about = `${isolated(path.model_a)} against ${isolated(path.model_b)}, ${path.order}${path.stretches ? ": category by category" : ""}`;
  const drawn = (id, title, of, from, wide, marks) => {
    const [xs, values] = [path.n.slice(from), all.slice(from)];
    const edge = id === "lead" ? 0 : Math.min(60, total - xs[0]);
    const reach = path.missing && id === "lead" ? Math.min(path.missing, 2 * Math.max(...values.map(Math.abs), Math.abs(needed ?? 0), 1)) : 0;
    const ends = [...values, ...(needed === null ? [] : [needed]), ...(id === "lead" ? [0, now + reach, now - reach] : [values[0] + edge, values[0] - edge])];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const room = 0.06 * Math.max(high - low, 1);
    const start = id === "lead" ? 0 : xs[0];
    const read = (k) => `${plural(xs[k], "item")} · ${signed(values[k])}${needed === null ? "" : `, ${signed(needed)} needed`}`;
    const picture = frame({
      id, title, about: `${read(xs.length - 1)}.`, xs, numbered: id !== "lead" || !path.stretches, from: start, end: total, wide, domain: [low - (id === "lead" && path.stretches ? 2 : 1) * room, high + room], unit: "items", labels: ticks(low, high, 5).filter(Number.isInteger).map((value) => [value, signed(value)]),
      marks: (x, y, right) => [
        id === "lead" && path.stretches && bands(path, all, x),
        marks(x, y, xs, values),
        id === "lead" && s("line", { class: "zero", x1: PAD.left, x2: right, y1: y(0), y2: y(0) }),
        needed !== null && [s("line", { class: "threshold needed", x1: PAD.left, x2: right, y1: y(needed), y2: y(needed) }), tag(`needed at the end: ${signed(needed)}`, needed, xs, values, x, y, right)],
        s("path", { class: "line main", d: line(x, y, xs, values) }), s("circle", { class: "end", cx: x(end), cy: y(now), r: 4 }),
      ],
    });
    return figure({ title, about: of, xs, from: start, end: total, read, caption: null, start: `Now: ${read(xs.length - 1)}` }, picture);
  };
  const funnel = (x, y, xs, values) => s("path", { class: "still", d: `${line(x, y, xs, xs.map((n, k) => values[k] + total - n))}L${line(x, y, [...xs].reverse(), [...xs].reverse().map((n, k) => values[xs.length - 1 - k] - total + n)).slice(1)}Z` });
  const whole = drawn("lead", "Items won minus items lost", about, 0, width(close ? 640 : 1132), (x, y) =>
    path.missing > 0 && s("path", { class: "still", d: `M${x(end)},${y(now)}L${x(total)},${y(now + path.missing)}L${x(total)},${y(now - path.missing)}Z` }));
  return [whole, close && drawn("last", `The last ${count(end - path.n[last])} items`, "What the missing items could still do", last, width(480), funnel)];
}

const WIDE = 24; // pixels that the words of a stretch need

/** Shade every second category of a path that goes through one after the other, with the items that each won or lost. */
function bands({ n, stretches }, all, x) {
  const at = (items) => (items ? all[Math.max(n.findLastIndex((each) => each <= items), 0)] : 0);
  const drawn = stretches.map(([name, to], k) => {
    const from = k ? stretches[k - 1][1] : 0, [left, right, net] = [x(from), x(to), at(to) - at(from)];
    return [
      k % 2 === 0 && s("rect", { class: "stretch", x: left, y: PAD.top, width: right - left, height: HEIGHT - PAD.top - PAD.bottom }, s("title", {}, name)),
      right - left > WIDE && s("text", { class: "tick", transform: `translate(${(left + right) / 2 - 4} ${HEIGHT - PAD.bottom + 12}) rotate(35)` }, name),
      right - left > WIDE && Math.abs(net) >= 50 && s("text", { class: "tag net", x: (left + right) / 2, y: HEIGHT - PAD.bottom - 5, "text-anchor": "middle" }, signed(net)),
    ];
  });
  return [drawn.map(([shade]) => shade), drawn.map(([, ...words]) => words)]; // a number may be wider than its stretch
}

/** Write what is needed next to its line, where no curve runs. */
function tag(text, value, xs, values, x, y, right) {
  const place = clear(text, [y(value) - 6, y(value) + 15], [values], xs, x, y, right);
  return place && s("text", { class: "tag needed", ...place }, text);
}

/** Draw a p-value and the threshold of its decision on one logarithmic scale. */
export function scaleOfP(p, limit) {
  const logs = [p, limit, 0.05].map((each) => Math.log10(Math.max(each, 1e-300)));
  const most = Math.max(4, Math.ceil(-Math.min(...logs.slice(0, 2)) * 1.25 + 0.7));
  const x = (log) => 14 + (412 * -Math.min(log, 0)) / most;
  const step = Math.ceil(most / 7);
  const [at, edge, alone] = logs.map(x);
  return s("svg", { class: "scale-of-p", viewBox: "0 0 440 62", role: "img", "aria-label": phrase("scale", { p: small(Math.log(p)), limit: small(Math.log(limit)) }) },
    s("rect", { class: "decides", x: edge, y: 26, width: 426 - edge, height: 14 }), s("line", { class: "axis-line", x1: 14, x2: 426, y1: 40, y2: 40 }),
    Array.from({ length: Math.floor(most / step) + 1 }, (_, k) => k * step).map((tens) => [s("line", { class: "axis-line", x1: x(-tens), x2: x(-tens), y1: 40, y2: 44 }), s("text", { x: x(-tens), y: 57, "text-anchor": "middle" }, tens < 4 ? String(10 ** -tens) : `10${superscript(-tens)}`)]),
    s("line", { class: "edge", x1: edge, x2: edge, y1: 20, y2: 44 }), s("text", { class: "decides", x: edge + 6, y: 22 }, phrase("from_here")),
    Math.abs(alone - edge) > 40 && s("line", { class: "axis-line", x1: alone, x2: alone, y1: 32, y2: 44 }), edge - alone > 180 && at > 160 && s("text", { x: 14, y: 22 }, phrase("alone")),
    s("circle", { class: "here", cx: at, cy: 33, r: 5 }), s("text", { class: "here", ...(at < edge && edge - at < 60 ? { x: at + 6, "text-anchor": "end" } : { x: Math.min(Math.max(at, 32), 408), "text-anchor": "middle" }), y: edge - at < 60 ? 11 : 20 }, "this pair"));
}

/** Draw the e-process and its directional halves on a logarithmic scale, against 1/alpha and 1/alpha_j. */
export function evidence(path, { order: { policy }, look }, wide = width()) {
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
    id: "evidence", title: "Evidence", xs: n, wide, domain: [low, top], unit: "e-value", labels,
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
    policy === "committed" ? phrase("crosses", { look: look ? phrase("look", { share: Number((100 * look).toPrecision(3)) }) : "" }) : phrase("crosses_elsewhere", { policy }),
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
      s("text", { class: "tag", x: right - 4, y: PAD.top + 6, "text-anchor": "end" }, phrase("ahead", { model: isolated(path.model_a) })),
      s("text", { class: "tag", x: right - 4, y: HEIGHT - PAD.bottom - 6, "text-anchor": "end" }, phrase("ahead", { model: isolated(path.model_b) })),
    ],
  });
  const caption = phrase("interval", { level: fixed(100 * (1 - alpha), 0), validity: phrase(held ? "interval_held" : "interval_valid") });
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
