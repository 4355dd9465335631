// Tie bands of the models on display: vertical lines in lanes, with a dot for each member.

import { s } from "./dom.js";
import { ranks } from "./format.js";
import { lowCoverage } from "./parts.js";

export const MAX_LANES = 8;

const MAX_THREADS = 3;

const known = new WeakMap(); // by ties

/** Return what gives the ranks that the model of a rank is tied with, by `get`; null where the bands are too many to list. */
export function tiedRanks(ties) {
  if (ties.bands === null) return null;
  if (!known.has(ties)) known.set(ties, new TiedRanks(ties));
  return known.get(ties);
}

/** Computes the answer for a rank when it is asked for: the rows in view are few, and the bands of a thousand models long. */
class TiedRanks {
  constructor({ bands, lacking }) {
    this.groups = new Map(); // by rank: the bands and threads that tie it
    this.found = new Map();
    const put = (rank, others) => (this.groups.has(rank) ? this.groups.get(rank).push(others) : this.groups.set(rank, [others]));
    for (const { members } of bands) for (const rank of members) put(rank, members);
    for (const { rank, tied } of lacking) {
      put(rank, tied);
      for (const other of tied) put(other, [rank]);
    }
  }

  get(rank) {
    if (!this.groups.has(rank)) return undefined;
    if (!this.found.has(rank)) {
      const others = new Set(this.groups.get(rank).flat());
      others.delete(rank);
      this.found.set(rank, others);
    }
    return this.found.get(rank);
  }
}

/** Place lines in the first lane that is free from their first to their last row. */
function inLanes(lines) {
  const ends = [];
  for (const line of lines) {
    let lane = ends.findIndex((end) => end < line.rows[0]);
    if (lane < 0) lane = ends.length;
    ends[lane] = line.rows.at(-1);
    line.lane = lane;
  }
  return ends.length;
}

/**
 * Arrange bands and threads over rows of the board, in the order of display.
 *
 * ranks: the rank in each row. whole: whether every model is on display; else only those are drawn of a band.
 */
export function arrange({ bands, lacking }, ranks, whole) {
  const rowOf = new Map(ranks.map((rank, row) => [rank, row]));
  const rowsOf = (members) => members.flatMap((rank) => rowOf.get(rank) ?? []).sort((x, y) => x - y);
  const threads = lacking.filter(({ rank }) => rowOf.has(rank)).map(({ rank, tied }) => ({ kind: "thread", own: rowOf.get(rank), rows: rowsOf([rank, ...tied]) }));
  const drawn = threads.length <= MAX_THREADS ? threads : [];
  const threadLanes = inLanes(drawn.sort((x, y) => x.rows[0] - y.rows[0]));
  let lines = (bands ?? []).map(({ members }) => ({ kind: members.length === 1 ? "alone" : "band", members, rows: rowsOf(members) })).filter(({ rows }) => rows.length);
  if (!whole) lines = largest(lines);
  lines.sort((x, y) => x.rows[0] - y.rows[0] || y.rows.length - x.rows.length);
  const bandLanes = inLanes(lines);
  const fits = bandLanes <= MAX_LANES;
  if (!fits) lines = [];
  for (const line of lines) line.lane += threadLanes;
  const byRow = ranks.map(() => []);
  for (const line of [...drawn, ...lines]) {
    const members = new Set(line.rows);
    for (let row = line.rows[0]; row <= line.rows.at(-1); row += 1) byRow[row].push({ line, members });
  }
  return { byRow, lanes: threadLanes + (fits ? bandLanes : 0), omitted: bands === null || !fits, threadsOmitted: threads.length - drawn.length };
}

/** Drop the lines that others contain, once only some models are on display. */
function largest(lines) {
  const kept = [];
  for (const line of [...lines].sort((x, y) => y.rows.length - x.rows.length)) {
    const covers = ({ set }) => line.rows.every((row) => set.has(row));
    if (!kept.some(covers)) kept.push({ ...line, set: new Set(line.rows) });
  }
  return kept;
}

/** Return what gives the columns of a board their widths: the lanes of its ties, and the characters of a range of ranks. */
export const fitColumns = (arranged, models) => (node) => {
  node.style.setProperty("--lanes", arranged.lanes);
  node.style.setProperty("--ranks", ranks(Math.max(models - 1, 1), models).length);
};

/** Draw the part of every line that passes a row. */
export function tieCell(arranged, row, onBand) {
  const pitch = 96 / Math.max(arranged.lanes, 3);
  return s("svg", { class: "ties", "aria-hidden": "true" }, arranged.byRow[row].map(({ line, members }) => {
    const x = `${(line.lane + 0.5) * pitch}%`;
    const [first, last] = [line.rows[0], line.rows.at(-1)];
    const here = members.has(row);
    const stretch = (y1, y2, whole) => s("line", { class: whole ? line.kind : `${line.kind} passes`, x1: x, x2: x, y1, y2 });
    const dot = here && (line.kind === "alone" ? s("circle", { class: "alone", cx: x, cy: "50%", r: 3 })
      : s("circle", { class: `${line.kind} ${line.own === row ? "own" : ""}`, cx: x, cy: "50%", r: line.own === row ? 3.4 : 2.8 }));
    const parts = [row > first && stretch("0%", "50%", here && members.has(row - 1)), row < last && stretch("50%", "100%", here && members.has(row + 1)), dot];
    return s("g", line.kind === "band" && onBand ? { class: "pick", onclick: () => onBand(line.members) } : {}, parts);
  }));
}

/** Return where a rank lies in a strip, in percent of its width. */
export const rankX = (rank, size_) => 2 + (96 * (rank - 0.5)) / size_;

/** Draw the possible ranks as a bar over all ranks, with the current rank as a dot. */
export function strip(m, size_) {
  const half = 48 / size_;
  return s("svg", { class: "line-plot", role: "img", "aria-label": `could be ${ranks(m.rank_low, m.rank_high)} of ${size_}` },
    s("line", { class: m.rank_low === m.rank_high ? "range sure" : lowCoverage(m) ? "range lacks" : "range", x1: `${rankX(m.rank_low, size_) - half * 0.6}%`, x2: `${rankX(m.rank_high, size_) + half * 0.6}%`, y1: "50%", y2: "50%" }),
    s("circle", { class: "dot", cx: `${rankX(m.rank, size_)}%`, cy: "50%", r: 2 }));
}
