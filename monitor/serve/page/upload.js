// Send files of results to the monitor, chosen or dropped. The server reads the file as the commands do.

import { ApiError, caller, sendFile } from "./api.js";
import { h } from "./dom.js";
import { count, plural } from "./format.js";
import { link, name } from "./parts.js";

const SHOWN = 20;

let writes = false; // whether the caller may send results, of some benchmark

/** Ask whether the caller may send results: a view that shows the upload loads this too. Return who calls. */
export async function loadUpload() {
  const found = await caller(), { scopes } = found;
  writes = scopes.some((scope) => scope === "admin" || scope === "write" || scope.startsWith("write:"));
  return found;
}

/** Return whether the caller may send results, as `loadUpload` last found. */
export const mayWrite = () => writes;

/** Show where files are chosen or dropped, and under it what became of each; null for a caller who may send none. */
export const upload = () => (writes ? box() : null);

function box() {
  const outcomes = h("div", { role: "status" });
  const section = h("section", { class: "upload", "data-keep": "", "aria-label": "Send results" });
  const over = (on) => (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    section.classList.toggle("over", on);
  };
  const dropped = (event) => {
    over(false)(event);
    send([...event.dataTransfer.files]);
  };
  const send = async (files) => {
    outcomes.replaceChildren();
    for (const file of files) {
      const line = h("div", { class: "outcome" }, name(file.name), " is being sent …");
      outcomes.append(line);
      line.replaceChildren(...(await sent(file, model.value.trim())));
    }
  };
  const model = h("input", { id: "upload-model", type: "text", size: "24", maxlength: "256" });
  const input = h("input", {
    id: "upload",
    type: "file",
    multiple: true,
    onchange: ({ target }) => {
      send([...target.files]).finally(() => (target.value = ""));
    },
  });
  section.append(
    h("label", { for: "upload" }, "Send results: choose files, or drop them here"),
    input,
    h("label", { for: "upload-model", class: "inline" }, "Model, for files that do not name one ", model),
    h("p", { class: "about" }, "JSON lines, CSV, or the log of an evaluation harness. A file with an unreadable line is not stored."),
    outcomes,
  );
  Object.assign(section, { ondragover: over(true), ondragleave: over(false), ondrop: dropped });
  return section;
}

async function sent(file, model) {
  try {
    return stored(file, await sendFile(file, model));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return refused(file, error);
  }
}

function stored(file, answer) {
  const repeats = answer.ended ? `, ${plural(answer.ended, "end")} of runs` : "";
  return [
    h("p", { class: "good" }, name(file.name), `: ${plural(answer.accepted, "result")}${repeats} stored, of `,
      answer.benchmarks.map((each, k) => [k > 0 && ", ", h("a", { href: link.benchmark(each) }, name(each))]), ". Repeated results count once."),
    list([...answer.notes, ...answer.converted]),
    answer.rejected.length > 0 && h("p", { class: "warn" }, `${plural(answer.rejected.length, "result")} refused, and not stored:`),
    list(answer.rejected.map(({ line, field, reason }) => `result ${count(line)}: ${field}: ${reason}`)),
  ].filter(Boolean);
}

function refused(file, error) {
  const where = ({ line, field, reason }) => `${file.name}${line === null ? "" : `:${line}`}: ${field}: ${reason}`;
  return [
    h("p", { class: "warn" }, name(file.name), `: ${error.errors.length ? `nothing was stored; ${plural(error.errors.length, "line")} cannot be read:` : error.message}`),
    list(error.errors.map(where)),
  ].filter(Boolean);
}

function list(sentences) {
  if (!sentences.length) return null;
  const more = sentences.length - SHOWN;
  return h("ul", {}, sentences.slice(0, SHOWN).map((each) => h("li", {}, each)), more > 0 && h("li", {}, `and ${count(more)} more`));
}
