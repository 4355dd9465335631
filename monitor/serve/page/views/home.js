// List the benchmarks of this monitor.

import { summaries } from "../api.js";
import { h } from "../dom.js";
import { count, plural } from "../format.js";
import { boardName, link, name, table } from "../parts.js";
import { loadUpload, upload } from "../upload.js";

export const title = () => "Benchmarks";

export async function load(_, signal) {
  const [benchmarks] = await Promise.all([summaries(signal), loadUpload()]);
  return benchmarks;
}

export function render(benchmarks) {
  if (!benchmarks.length) {
    return [
      h("h1", { tabindex: "-1" }, "No results yet"),
      h("p", { class: "about" }, "The ranking appears here as soon as the first results arrive. You need not reload. To send some:"),
      h("p", {}, h("code", {}, `rankwatch send results.jsonl --to ${location.origin}`)),
      upload(),
    ];
  }
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
