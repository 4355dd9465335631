// List the benchmarks of this monitor.

import { summaries } from "../api.js";
import { h, s } from "../dom.js";
import { count, plural } from "../format.js";
import { STEP_SIGNS, boardName, copies, link, name, table } from "../parts.js";
import { loadUpload, upload } from "../upload.js";
import { WORDS } from "../words.js";

export const title = () => "Benchmarks";

let reads; // the paths or the topic that this monitor reads, if the caller may know

export async function load(_, signal) {
  const [benchmarks, found] = await Promise.all([summaries(signal), loadUpload()]);
  reads = found;
  return benchmarks;
}

export function render(benchmarks) {
  if (!benchmarks.length) return empty(reads);
  const columns = [
    { title: "Benchmark", head: true, class: "wide-cell" },
    { title: "Models", class: "number" },
    { title: "Items", class: "number" },
    { title: "Decided", mark: "Pairs decided", class: "number" },
    { title: "Data" },
  ];
  const rows = benchmarks.map((b) => ({
    key: b.benchmark,
    cells: [
      h("a", { href: link.benchmark(b.benchmark, b.sentinel ? "drift" : "") }, boardName(b)),
      count(b.models),
      count(b.items),
      b.members || b.sentinel ? count(null) : `${count(b.decided)} of ${count(b.pairs)}`,
      state(b),
    ],
  }));
  return [
    h("h1", { tabindex: "-1" }, plural(benchmarks.length, "benchmark")),
    table("Benchmarks", columns, [{ rows }], { class: "data benchmarks" }),
    upload(),
  ];
}

const CLIENT = (origin) => `from rankwatch_client import Client

with Client("${origin}", benchmark="quiz", model="new") as c:
    c.score("q1", 1)`;

/** Show what is read, how scores arrive, what is missing, and what will be seen. */
function empty({ watched, topic }) {
  const { steps } = WORDS;
  const paths = watched.slice(0, 3).map((path, k) => [k > 0 && ", ", h("b", {}, name(path))]), more = watched.length - 3;
  return [
    topic ? h("p", { class: "about source" }, "reading the topic ", h("b", {}, topic))
      : watched.length > 0 && h("p", { class: "about source" }, "watching ", paths, more > 0 && ` and ${count(more)} more`),
    h("h1", { tabindex: "-1", class: "versus first" }, "No scores yet. The ranking appears here with the first one."),
    h("p", { class: "about" }, "You need not reload."),
    h("div", { class: "columns empty" },
      h("section", {},
        h("h2", {}, "Results on this machine"),
        h("p", { class: "about" }, "Write them into ", watched.length === 1 ? h("code", {}, h("bdi", {}, watched[0])) : "a watched folder", ": lm-evaluation-harness, Inspect, CSV, JSON lines, Parquet and others are read as they grow."),
        h("h2", {}, "Results elsewhere"), code(`rankwatch send results/ --to ${location.origin}`),
        h("h2", {}, "Your own code"), code(CLIENT(location.origin)),
        h("p", { class: "about waits" }, h("span", { class: "warn", "aria-hidden": "true" }, STEP_SIGNS.open[0]), " Verdicts wait for the number of items. Start with ", h("code", {}, "--items 1000"), " before the first score; for well-known benchmarks the published number is used.")),
      h("section", {},
        h("h2", {}, "What you will see"),
        h("p", { class: "about" }, "Who is best and whether that is decided, then one row for each model and one sign for each step."),
        drawn(),
        h("ul", { class: "list-of-signs" }, ["decided", "tie", "open"].map((key) => h("li", {}, h("span", { class: `sign ${STEP_SIGNS[key][1] || "open"}`, "aria-hidden": "true" }, STEP_SIGNS[key][0]), " ", h("b", {}, steps[key].word), `: ${steps[key].about}`))))),
    upload(),
  ];
}

function code(text) {
  return h("div", { class: "code" }, h("pre", {}, text), copies(text));
}

const SHAPE = [[150, 390], [176, 356], [130, 322], [190, 288], [120, 254]];

/** Draw the shape of a ranking without a score in it. */
const drawn = () => s("svg", { class: "shape", viewBox: "0 0 504 150", "aria-hidden": "true" }, SHAPE.map(([wide, x], k) => [
  s("rect", { x: 30, y: 8 + 30 * k, width: 18, height: 9, rx: 3 }), s("rect", { x: 60, y: 8 + 30 * k, width: wide, height: 9, rx: 3 }), s("circle", { cx: x, cy: 12 + 30 * k, r: 3.4 }),
  k < SHAPE.length - 1 && [s("circle", { cx: 448, cy: 27 + 30 * k, r: 4.4 }), s("rect", { x: 460, y: 22 + 30 * k, width: 44, height: 9, rx: 3 })]]));

function state({ sentinel, order, conflicts, rejected, partial, board, members }) {
  if (sentinel) return "sentinel: its runs are watched";
  if (members) return ["suite of ", members.slice(0, 3).map((member, k) => [k > 0 && ", ", name(member)]), members.length > 3 && ` and ${count(members.length - 3)} more`];
  const trouble = [
    board?.state === "archived" && "archived",
    board?.generation > 1 && `generation ${count(board.generation)}`,
    partial && "may be partial",
    order.suspect && "suspect order",
    order.policy === "none" && "no order declared",
    conflicts && plural(conflicts, "conflict"),
    rejected && `${count(rejected)} rejected`,
  ].filter(Boolean);
  return trouble.length ? h("span", { class: "odd" }, trouble.join(", ")) : "no problems";
}
