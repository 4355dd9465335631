// Offer what a view shows as files: its rows as CSV, the answer of the API as JSON, its figure as SVG and PNG.

import { h } from "./dom.js";
import { picture, png } from "./picture.js";

const FORMULA = /^ *[=+\-@\t\r\n＝＋－＠]/;

/** Return a cell of a CSV file. Text that a spreadsheet would take for a formula gets an apostrophe in front. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Return rows as a CSV file; a row that ends early has empty cells there. */
const csv = (rows) => rows.map((row) => `${rows[0].map((_, k) => cell(row[k])).join(",")}\n`).join("");

/** Hand a file to the reader. */
export function save(name, content, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** Return a name that every file system takes. */
const fileName = (...parts) => parts.join("-").normalize("NFKD").replace(/[^\w.-]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(0, 120) || "rankwatch";

/**
 * Make the menu of a view.
 *
 * name: parts of the file name. rows: returns the rows of the CSV file, titles first, or a promise of them. json: the same for the JSON file.
 * figure: a selector of what to draw, or null with `why` it cannot be drawn. caption: the words below the picture. badge: returns an SVG badge.
 */
export function downloads({ name, rows, json, figure, why, heading, caption, badge }) {
  const at = fileName(...name);
  const drawn = () => picture(document.querySelector(figure), heading, `${caption} · rankwatch, ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC`);
  const files = {
    CSV: rows && (async () => save(`${at}.csv`, csv(await rows()), "text/csv;charset=utf-8")),
    JSON: json && (async () => save(`${at}.json`, JSON.stringify(await json(), null, 1), "application/json")),
    SVG: figure && (() => save(`${at}.svg`, drawn().text, "image/svg+xml")),
    PNG: figure && (async () => save(`${at}.png`, await png(drawn()), "image/png")),
    Badge: badge && (() => save(`${at}-rank.svg`, badge(), "image/svg+xml")),
  };
  const act = (make) => async (event) => {
    const menu = event.target.closest("details");
    const status = menu.querySelector("[role=status]");
    status.textContent = "";
    try {
      await make();
      menu.open = false;
    } catch (error) {
      status.textContent = `The file could not be made: ${error.message}`;
    }
  };
  return h("details", { class: "menu", "data-key": "downloads" }, h("summary", { class: "quiet" }, "Download"),
    h("div", {}, Object.entries(files).map(([kind, make]) => make && h("button", { type: "button", onclick: act(make) }, kind)),
      !figure && why && h("p", { class: "about" }, why), h("p", { class: "about", role: "status" })));
}
