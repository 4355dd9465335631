// Show all pairs at once: a canvas, two menus to pick a pair, and a table for screen readers.

import { get } from "../api.js";
import { h } from "../dom.js";
import { downloads } from "../downloads.js";
import { count, fixed, isolated, plural } from "../format.js";
import { heading, link, name, table } from "../parts.js";
import { WORDS, phrase } from "../words.js";

export const title = ({ benchmark }) => `All pairs, ${benchmark}`;

export const load = ({ benchmark }, signal) => get("/matrix", { benchmark }, signal);

const TONES = ["row", "column", "open", "against"].map((tone) => [tone, phrase(tone)]);
const SHOW_NAMES_FROM = 13; // pixels of a cell
const NAME_ROOM = 236;
const HEAD = 18; // pixels above the cells, and left of them where names have no room: ranks
const NUMBER_ROOM = 40;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const SHARES_FROM = 22;

export function render(m, route) {
  const size = m.models.length;
  const decided = m.decided.flat().filter((x) => x > 0).length;
  const pairs = (size * (size - 1)) / 2;
  const about = `${phrase("matrix", { some: decided, n: pairs })} Rows and columns are the models by rank, best first.`;
  const open = (row, column) => (location.hash = link.pair(route.benchmark, m.models[Math.min(row, column)], m.models[Math.max(row, column)]));
  const view = new Grid(m, open);
  const won = m.wins && "Where a cell has room, it has the percentage of the pair's prompts that the row's model wins, a tie as half.";
  return [
    ...heading(route.benchmark, "All pairs", won ? `${about} ${won}` : about),
    h("ul", { class: "key" }, TONES.map(([tone, words]) => h("li", {}, h("span", { class: `swatch ${tone}`, "aria-hidden": "true" }), ` ${words}`))),
    h("p", { class: "actions" }, downloads({
      name: [route.benchmark, "pairs"], rows: () => (m.wins ? results(m) : [[WORDS.leads.better, ...m.models], ...m.models.map((model, k) => [model, ...m.decided[k]])]), json: () => m, figure: "#matrix",
      heading: `All pairs, ${route.benchmark}`, caption: about,
    })),
    h("div", { class: "grid" },
      h("p", { class: "readout", id: "readout", "aria-live": "polite", "data-keep": true }, POINT),
      h("canvas", {
        id: "matrix", tabindex: "0", role: "application", "aria-label": `Matrix of ${size} by ${size} models`, "aria-describedby": "readout matrix-help",
        paint: (canvas) => view.paint(canvas),
        onpointermove: (event) => view.point(event),
        onpointerleave: () => view.leave(),
        onclick: (event) => view.click(event),
        onkeydown: (event) => view.key(event),
      }),
      h("p", { class: "sr", id: "matrix-help" }, "Arrow keys move from cell to cell; Enter opens the pair. The table below has the same data.")),
    compare(m.models, open),
    h("details", { class: "legend" }, h("summary", {}, "The matrix as a table"), summary(m, route.benchmark)),
  ];
}

/** Return the share of the prompts that the row's model wins, in percent, a tie as half; null where the two never met. */
const winShare = ({ prompts, wins }, row, column) => (prompts[row][column] ? 50 + (50 * (wins[row][column] - wins[column][row])) / prompts[row][column] : null);

/** Return the results of every pair that met, a row each. */
function results(m) {
  const pairs = m.models.flatMap((_, row) => m.models.map((__, column) => [row, column])).filter(([row, column]) => row < column && m.prompts[row][column]);
  return [["model_a", "model_b", "prompts", "wins_a", "wins_b", "ties", "decided"],
    ...pairs.map(([i, j]) => [m.models[i], m.models[j], m.prompts[i][j], m.wins[i][j], m.wins[j][i], m.prompts[i][j] - m.wins[i][j] - m.wins[j][i], m.decided[i][j]])];
}

const POINT = "Point at a cell to see its pair.";

/** Draws the matrix. A live update makes a new one on the same canvas, which keeps the chosen cell. */
class Grid {
  constructor(matrix, open) {
    Object.assign(this, { ...matrix, open, size: matrix.models.length });
  }

  paint(canvas) {
    this.canvas = canvas;
    const room = canvas.parentElement.clientWidth;
    const named = room / this.size >= SHOW_NAMES_FROM && room > 480;
    const context = canvas.getContext("2d");
    this.#ink(context, 12);
    const longest = Math.max(...this.models.map((model) => context.measureText(`${model} ${this.size}`).width));
    this.margin = named ? Math.min(NAME_ROOM, room / 4, longest + 16) : NUMBER_ROOM;
    this.cell = Math.min(28, (Math.min(room, 932) - this.margin) / this.size);
    const [width, height] = [this.margin + this.cell * this.size, HEAD + this.cell * this.size];
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    context.save();
    context.translate(this.margin, HEAD);
    this.#cells(context);
    if (this.wins && this.cell >= SHARES_FROM) this.#shares(context);
    this.#ranks(context, named);
    if (named) this.#names(context);
    this.#cursor(context);
    context.restore();
  }

  #cells(context) {
    // The swatches of the key define the colours in both themes.
    const colour = Object.fromEntries(TONES.map(([tone]) => [tone, getComputedStyle(document.querySelector(`.swatch.${tone}`)).color]));
    const inset = this.cell >= 6 ? 1 : 0;
    const side = this.cell - inset;
    for (let row = 0; row < this.size; row += 1) {
      for (let column = 0; column < this.size; column += 1) {
        if (row === column) continue;
        context.fillStyle = colour[this.#tone(row, column)];
        context.fillRect(column * this.cell, row * this.cell, side, side);
      }
    }
  }

  #shares(context) {
    const style = getComputedStyle(this.canvas);
    context.font = `11px ${style.fontFamily}`;
    context.textBaseline = "middle";
    context.textAlign = "center";
    const of = (tone) => getComputedStyle(document.querySelector(`.swatch.${tone}`)).borderTopColor;
    const colour = Object.fromEntries(TONES.map(([tone]) => [tone, of(tone)]));
    for (let row = 0; row < this.size; row += 1) {
      for (let column = 0; column < this.size; column += 1) {
        const share = row === column ? null : winShare(this, row, column);
        if (share === null) continue;
        context.fillStyle = colour[this.#tone(row, column)];
        context.fillText(fixed(share, 0), (column + 0.5) * this.cell, (row + 0.5) * this.cell);
      }
    }
  }

  #tone(row, column) {
    const side = this.decided[row][column];
    if (side === 0) return "open";
    if (side > 0 === row > column) return "against";
    return side > 0 ? "row" : "column";
  }

  /** Write the ranks above the columns, as many as have room, and left of the rows where these have no names. */
  #ranks(context, named) {
    this.#ink(context, 11);
    const widest = Math.max(22, context.measureText(count(this.size)).width + 8);
    const step = STEPS.find((each) => each * this.cell >= widest) ?? this.size;
    for (let rank = 1; rank <= this.size; rank += rank === 1 && step > 1 ? step - 1 : step) {
      const at = (rank - 0.5) * this.cell;
      context.textAlign = "center";
      const edge = this.size * this.cell;
      const half = context.measureText(count(rank)).width / 2;
      if (rank < this.size && at + 3 * half > edge && this.size % step === 0) continue; // the last rank has this place
      context.fillText(count(rank), Math.min(at, edge - half), 8 - HEAD);
      context.textAlign = "right";
      if (!named) context.fillText(count(rank), -6, Math.min(Math.max(at, 6), edge - 6));
    }
  }

  #names(context) {
    this.#ink(context, Math.min(12, this.cell - 2));
    context.textAlign = "right";
    const room = this.margin - 15 - context.measureText(` ${this.size}`).width;
    this.models.forEach((model, row) => context.fillText(`${shorten(context, model, room)} ${row + 1}`, -8, (row + 0.5) * this.cell));
  }

  #ink(context, size) {
    const style = getComputedStyle(this.canvas);
    context.fillStyle = style.color;
    context.font = `${size}px ${style.fontFamily}`;
    context.textBaseline = "middle";
  }

  #cursor(context) {
    const [row, column] = this.chosen;
    if (row < 0 || row >= this.size || column >= this.size) return;
    context.strokeStyle = getComputedStyle(this.canvas).color;
    context.lineWidth = 2;
    context.strokeRect(column * this.cell, row * this.cell, Math.max(this.cell, 3), Math.max(this.cell, 3));
  }

  get chosen() {
    return this.canvas.chosen ?? [-1, -1];
  }

  choose(row, column) {
    if (this.chosen[0] === row && this.chosen[1] === column) return;
    this.canvas.chosen = [row, column];
    this.paint(this.canvas);
    document.getElementById("readout").replaceChildren(...this.words(row, column));
  }

  words(row, column) {
    const place = (k) => [`${k + 1}. `, name(this.models[k])];
    if (row < 0 || column < 0) return [POINT];
    if (row === column) return place(row);
    const side = this.decided[row][column];
    const status = this.statuses[this.status[row][column]];
    const verdict = side === 0 ? ` · ${status}` : [" · ", phrase("better", { model: name(this.models[side > 0 ? row : column]) })];
    return [...place(row), " v. ", ...place(column), ...[verdict].flat(2), this.wins && this.#battles(row, column)].filter(Boolean);
  }

  #battles(row, column) {
    const [all, won, lost] = [this.prompts[row][column], this.wins[row][column], this.wins[column][row]];
    if (!all) return " · they never met";
    return ` · ${plural(all, "prompt")}: ${count(won)} won, ${count(lost)} lost, ${plural(all - won - lost, "tie")} (${fixed(winShare(this, row, column), 1)} %)`;
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - HEAD) / this.cell);
    const column = Math.floor((event.clientX - box.left - this.margin) / this.cell);
    const inside = (k) => k >= 0 && k < this.size;
    return inside(row) && inside(column) ? [row, column] : null;
  }

  point(event) {
    const at = this.#at(event);
    if (at) this.choose(...at);
  }

  leave() {
    if (document.activeElement !== this.canvas) this.choose(-1, -1);
  }

  click(event) {
    const at = this.#at(event);
    if (at && at[0] !== at[1]) this.open(...at);
  }

  key(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const [row, column] = this.chosen.map((k) => Math.max(k, 0));
    if (move) this.choose(...[row + move[0], column + move[1]].map((k) => Math.min(Math.max(k, 0), this.size - 1)));
    else if (event.key === "Enter" && row !== column) this.open(row, column);
    else return;
    event.preventDefault();
  }
}

function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return isolated(text);
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return isolated(`${text.slice(0, low)}…`);
}

function compare(models, open) {
  const chooser = (id, label, chosen) => h("label", {}, label,
    h("select", { id }, models.map((model, k) => h("option", { value: k, selected: k === chosen, "data-key": model }, `${k + 1}. ${isolated(model)}`))));
  const value = (id) => Number(document.getElementById(id).value);
  return h("div", { class: "compare" },
    chooser("first", "Compare", 0), chooser("second", "with", Math.min(1, models.length - 1)),
    h("button", { class: "loud", type: "button", onclick: () => value("first") !== value("second") && open(value("first"), value("second")) }, "Open the pair"));
}

function summary(m, benchmark) {
  const columns = [
    { title: "Model", head: true, class: "wide-cell" },
    { title: "Decided better than", class: "number" },
    { title: "Decided worse than", class: "number" },
    { title: "Undecided against" },
  ];
  const rows = m.models.map((model, k) => {
    const against = m.models.filter((_, j) => j !== k && m.decided[k][j] === 0);
    const beaten = m.decided[k].filter((x) => x > 0).length;
    const shown = against.slice(0, 6).flatMap((other, j) => [j ? ", " : "", h("a", { href: link.pair(benchmark, model, other) }, name(other))]);
    return {
      key: model,
      cells: [name(model), count(beaten), count(m.models.length - 1 - beaten - against.length),
        against.length ? [shown, against.length > 6 && ` and ${count(against.length - 6)} more`] : "none"],
    };
  });
  return table("How many models each model is decided to be better and worse than", columns, [{ rows }], { class: "data" });
}
