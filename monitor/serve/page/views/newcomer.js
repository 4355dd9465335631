// Show a newcomer on a frozen board: the ranks that are still possible closing item by item, its score, and the certificate.

import { ApiError, certificate, get } from "../api.js";
import { h, s } from "../dom.js";
import { save } from "../downloads.js";
import { count, fixed } from "../format.js";
import { crumb, link, name } from "../parts.js";

export const title = ({ benchmark, model }) => `${model ?? "Newcomers"}, ${benchmark}`;

export async function load({ benchmark, model, options }, signal) {
  const admitted = await get("/admissions", { benchmark }, signal);
  const names = Object.keys(admitted).sort((a, b) => admitted[b].at.localeCompare(admitted[a].at) || a.localeCompare(b));
  const shown = model ?? names[0];
  if (shown === undefined || !admitted[shown]) throw new ApiError(404, "No such newcomer", shown === undefined ? `${benchmark} has admitted no newcomer.` : `${benchmark} has not admitted ${shown}.`);
  const goal = options.get("goal") ?? `model:"${shown.replaceAll('"', '""')}",width=3`;
  return { report: await get("/admissions/report", { benchmark, model: shown, goal }, signal), names: names.length > 1 ? names : [] };
}

const LEFT = 34;
const FIRST = 20; // items: before these hardly a rank is excluded
const ROW = 17.5;
const TALL = 1400;

/** Return where a number of items is drawn: on a log scale, from the first items to all. */
function scale(from, to, left, right) {
  const low = Math.min(FIRST, from);
  const span = Math.log(to / low) || 1;
  const x = (items) => left + (Math.max(0, Math.log(Math.max(items, low) / low)) / span) * (right - left);
  const marks = [low];
  for (const power of [0, 1, 2, 3, 4, 5, 6]) {
    for (const items of [1, 2, 5].map((digit) => digit * 10 ** power)) if (x(items) - x(marks.at(-1)) > 36 && x(to) - x(items) > 66) marks.push(items);
  }
  return { x, marks: [...marks, to] };
}

/** Return the rows of the chart, best total first: the models above the newcomer, the newcomer, those that are open, and those below it. */
function rows({ model, models, result }) {
  const of = (side) => models.filter((each) => each.side === side);
  return [...of("below"), { model, side: "own", rank: [result.first_rank, result.last_rank] }, ...of("open"), ...of("above")];
}

function ranks(report) {
  const { items, result } = report;
  const all = rows(report);
  const wide = Math.min(764, Math.max(300, innerWidth - 48));
  const named = wide > 600 ? 236 : 148;
  const [right, row] = [wide - named, Math.min(ROW, TALL / all.length)];
  const legible = row > 12;
  const { x, marks } = scale(items, items, LEFT, right);
  const [high, stop, bottom] = [all.length * row, x(result.items_run), all.length * row + 8];
  const fits = Math.floor((named - 50) / 6.9);
  const cut = ({ model, side }) => { // its own name is bold
    const most = side === "own" ? fits - 2 : fits;
    return model.length > most ? `${model.slice(0, most - 1)}…` : model;
  };
  const own = all.findIndex((each) => each.side === "own");
  const [first, last] = [own, own + all.filter((each) => each.side === "open").length + 1].map((k) => 8 + k * row);
  const at = (each) => (each.side === "own" ? (each.rank[0] === each.rank[1] ? count(each.rank[0]) : `${count(each.rank[0])}–${count(each.rank[1])}`) : each.after === null ? "open" : count(each.after));
  const numbers = [0, ...Array.from({ length: Math.floor(all.length / 5) }, (_, k) => 5 * k + 4), all.length - 1].filter((k, place, list) => list.indexOf(k) === place && (k === 0 || k === all.length - 1 || (legible && all.length - 1 - k > 1)));
  return s("svg", { class: "ranks", viewBox: `0 0 ${wide} ${bottom + 22}`, role: "img", "aria-label": report.words.headline },
    marks.map((mark) => s("line", { class: "grid", x1: x(mark), x2: x(mark), y1: 8, y2: bottom })),
    result.items_run < items && s("rect", { class: "spared", x: stop, y: 8, width: Math.max(0, right - stop), height: high }),
    right - stop > 130 && s("text", { class: "tick", x: (stop + right) / 2, y: bottom - 10, "text-anchor": "middle" }, `${count(items - result.items_run)} items not run`),
    all.map((each, k) => s("rect", { class: "possible", x: LEFT, y: 8 + k * row, width: Math.max(0, x(each.after ?? result.items_run) - LEFT), height: row + 0.3 })),
    s("rect", { class: "own", x: right + 4, y: first, width: named - 4, height: row }),
    [first, last].map((y) => s("line", { class: "edge", x1: stop, x2: right + 4, y1: y, y2: y })),
    result.items_run > 0 && s("line", { class: "stop", x1: stop, x2: stop, y1: 8, y2: bottom }),
    all.map((each, k) => each.after && s("circle", { cx: x(each.after), cy: 8 + (k + 0.5) * row, r: Math.min(4.2, row / 2) }, s("title", {}, `${each.model}: ${count(each.after)}`))),
    legible && all.map((each, k) => [
      s("text", { class: each.side, x: right + 10, y: 8 + (k + 0.5) * row + 4.5 }, cut(each), s("title", {}, each.model)),
      s("text", { class: each.side, x: wide - 4, y: 8 + (k + 0.5) * row + 4.5, "text-anchor": "end" }, at(each)),
    ]),
    numbers.map((k) => s("text", { class: "tick", x: LEFT - 8, y: 8 + (k + 0.5) * row + 4.5, "text-anchor": "end" }, count(k + 1))),
    marks.map((mark) => s("text", { class: "tick", x: x(mark), y: bottom + 16, "text-anchor": mark === items ? "end" : "middle" }, count(mark))));
}

function totals({ items, unit, totals: all, words }) {
  const [wide, high, right] = [334, 130, 286];
  const share = (total) => (100 * total) / (unit * items);
  const { x } = scale(all[0].items || 1, Math.max(all.at(-1).items, all[0].items + 1), 30, right);
  const [least, most] = [Math.min(...all.map((each) => share(each.least))), Math.max(...all.map((each) => share(each.most)))];
  const y = (value) => 8 + ((most - value) / (most - least || 1)) * (high - 36);
  const step = [1, 2, 5, 10, 20, 50].find((each) => (most - least) / each <= 5) ?? 50;
  const grid = Array.from({ length: 6 }, (_, k) => (Math.ceil(least / step) + k) * step).filter((value) => value <= most);
  const side = (key) => all.map((each) => `${x(each.items).toFixed(1)},${y(share(each[key])).toFixed(1)}`);
  const end = all.at(-1);
  const apart = y(share(end.least)) - y(share(end.most)) < 14 ? 7 : 0;
  return s("svg", { class: "ranks", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": words.score_line },
    grid.map((value) => [s("line", { class: "grid", x1: 30, x2: right, y1: y(value), y2: y(value) }), s("text", { class: "tick", x: 24, y: y(value) + 4, "text-anchor": "end" }, count(value))]),
    s("path", { class: "possible", d: `M${side("most").join("L")}L${side("least").reverse().join("L")}Z` }),
    all.length === 1 && s("line", { class: "possible", x1: 30, x2: right, y1: y(share(end.most)), y2: y(share(end.most)) }),
    s("text", { x: right + 6, y: y(share(end.most)) + 4 - apart }, fixed(Math.ceil(share(end.most) * 10 - 1e-9) / 10, 1)), s("text", { x: right + 6, y: y(share(end.least)) + 4 + apart }, fixed(Math.floor(share(end.least) * 10 + 1e-9) / 10, 1)),
    all.length > 1 && [s("text", { class: "tick", x: 30, y: high - 4 }, count(all[0].items)), s("text", { class: "tick", x: right, y: high - 4, "text-anchor": "middle" }, count(end.items))]);
}

function card(report) {
  const { benchmark, model, items, result, admission, models } = report;
  const range = result.first_rank === result.last_rank ? count(result.first_rank) : `${count(result.first_rank)} to ${count(result.last_rank)}`;
  const rowsOf = [
    ["model", name(model)], ["rank", [h("b", {}, range), ` of ${count(models.length + 1)}`]],
    ["items", `${count(result.items_run)} of ${count(items)} (${fixed((100 * result.items_run) / items, 1)} %)`],
    ["order", ["seed ", h("code", {}, admission.seed)]], ["board", [`${count(models.length)} models, digest `, h("code", {}, admission.board.slice(0, 12))]],
    ["frozen", `${admission.at.slice(0, 10)} ${admission.at.slice(11, 16)} UTC`],
  ];
  const take = async (event) => {
    event.preventDefault();
    save(`${model.replace(/[^\w.-]+/g, "_")}.admit.json`, await certificate(benchmark, model), "application/json");
  };
  return h("section", { class: "card certificate" },
    h("h2", {}, "Certificate", h("button", { type: "button", class: "quiet", onclick: take }, "Download JSON")),
    h("dl", { class: "facts" }, rowsOf.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value)))),
    h("pre", {}, "$ rankwatch verify FILE"));
}

export function render({ report, names }) {
  const { benchmark, model, items, words } = report;
  return [
    crumb(report, "newcomer"),
    names.length > 0 && h("p", { class: "actions" }, names.map((each) => h("a", { class: "button", href: link.newcomer(benchmark, each), "aria-current": each === model && "page" }, name(each)))),
    h("h1", { tabindex: "-1" }, h("span", { class: "diamond", "aria-hidden": "true" }, "◆ "), words.headline),
    h("p", {}, words.opponents_line), words.goal_line && h("p", {}, words.goal_line), words.ahead_line && h("p", { class: "notice" }, words.ahead_line),
    h("div", { class: "newcomer" },
      h("section", {}, h("h2", {}, "Ranks still possible"),
        h("p", { class: "about" }, "Items run in the committed order, log scale. A dot: the item that decided this model."),
        ranks(report)),
      h("section", {}, h("h2", {}, `Score on all ${count(items)} items`), h("p", { class: "about" }, "Every value that is still possible, %"), totals(report), h("p", { class: "about" }, words.score_line), card(report))),
    h("p", { class: "assumes" }, words.promise_line, " ", words.claim_line),
  ];
}
