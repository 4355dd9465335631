// Show the runs of each model of a sentinel: one chart with the band of its own past, the evidence, its judge, and the items that moved most.

import { ApiError, announce, get } from "../api.js";
import { h, s } from "../dom.js";
import { count, evalue, fixed } from "../format.js";
import { copies, heading, name } from "../parts.js";
import { loadUpload, mayWrite } from "../upload.js";

export const title = ({ benchmark }) => `Drift, ${benchmark}`;

export async function load({ benchmark }, signal) {
  const [found] = await Promise.all([get("/drift", { benchmark, found: true }, signal), loadUpload()]);
  return found;
}

const PAD = { left: 40, right: 148 };
const width = () => Math.min(780, Math.max(300, innerWidth - 48));
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const percent = (score) => fixed(100 * score, 1);

function spread(values) {
  if (values.length < 2) return 0;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}

/** Return where a run and a value are drawn. */
function scales(runs, [low, high], height) {
  const wide = width();
  const right = wide - (wide > 500 ? PAD.right : 16);
  const span = high - low || 1;
  return { wide, right, height, x: (k) => PAD.left + (runs.length < 2 ? 0 : (k / (runs.length - 1)) * (right - PAD.left)), y: (value) => height - 22 - ((value - low) / span) * (height - 40) };
}

/** Label the first run of some months, or the first and the last one. */
function days(runs, { x, height }) {
  const marks = runs.map((run, k) => [k, run.slice(0, 7)]).filter(([k, month], place, all) => place === 0 || month !== all[place - 1][1]);
  const shown = marks.length > 1 && marks.length < 15 ? marks : [[0, runs[0]]];
  const anchor = (k) => (x(k) > width() - 90 ? "end" : "start");
  return shown.map(([k]) => s("text", { class: "tick", x: x(k), y: height - 6, "text-anchor": anchor(k) }, runs[k].slice(0, 10)));
}

/** Draw the means of runs with the band of their past, and where they changed. */
function levels(label, all, monitor, value, height) {
  const ranked = all.filter((run) => run.ranked && value(run) !== null);
  if (!ranked.length) return null;
  const runs = ranked.map((run) => run.run);
  const means = ranked.map(value);
  const alarm = monitor?.alarms.at(-1) ?? null;
  const begin = alarm ? runs.indexOf(alarm.start) : runs.length;
  const first = Math.max(0, runs.indexOf(monitor?.changed)); // what was before an announced change is history
  const past = means.slice(first, begin);
  const [center, reach] = [mean(past), 1.96 * spread(past)];
  const at = scales(runs, [Math.min(center - reach, ...means), Math.max(center + reach, ...means)], height);
  const { x, y, wide, right } = at;
  const from = alarm ? runs.indexOf(alarm.after_run) : 0;
  const to = alarm ? runs.indexOf(alarm.last_start) : 0;
  const since = alarm && mean(means.slice(begin));
  const about = alarm ? `${percent(center)} before ${alarm.start}, ${percent(since)} since` : `${percent(center)} on average`;
  return s("svg", { class: "chart runs", viewBox: `0 0 ${wide} ${height}`, role: "img", "aria-label": `${label}: ${about}, in ${runs.length} runs` },
    s("rect", { class: "own", x: x(first), y: y(center + reach), width: right - x(first), height: Math.max(1, y(center - reach) - y(center + reach)) }),
    alarm && s("rect", { class: "when", x: x(from), y: 18, width: Math.max(2, x(to) - x(from)), height: height - 40 }),
    s("line", { class: "level", x1: x(first), x2: x(Math.max(first, begin - 1)), y1: y(center), y2: y(center) }),
    s("text", { class: "tick", x: 4, y: y(center) + 4 }, percent(center)),
    means.map((value_, k) => s("circle", { class: k < begin ? "run" : "run moved", cx: x(k), cy: y(value_), r: runs.length > 200 ? 1.6 : 2.6 }, s("title", {}, `${runs[k]}: ${percent(value_)}`))),
    alarm && s("line", { class: "level moved", x1: x(begin), x2: right, y1: y(since), y2: y(since) }),
    alarm && height > 150 && wide > 500 && s("text", { class: "tick moved", x: x(from) > 260 ? x(from) - 6 : x(to) + 6, y: 14, "text-anchor": x(from) > 260 ? "end" : "start" }, `change: ${alarm.after_run.slice(0, 10)} to ${alarm.last_start.slice(0, 10)}`),
    alarm && s("path", { class: "alarm", d: `M${x(runs.indexOf(alarm.run))},${height - 22}l-4,7h8z` }, s("title", {}, `alarm at ${alarm.run}`)),
    wide > 500 && spaced(at, [[y(center + reach), "its own past, 95 %", ""], ...(alarm ? [[y(center), `${percent(center)} before`, ""], [y(since), `${percent(since)} since`, "moved"], [height - 32, `alarm ${alarm.run.slice(0, 10)}`, "moved"]] : [])]),
    days(runs, at));
}

/** Write labels right of a chart, none over another. */
function spaced({ right, height }, labels) {
  const line = 13;
  let [end, below] = [-line, height - 30 - line * labels.length];
  return labels.sort(([a], [b]) => a - b).map(([y, text, kind]) => {
    below += line;
    end = Math.max(end + line, Math.min(y, below));
    return s("text", { class: `tick ${kind}`, x: right + 8, y: end + 4 }, text);
  });
}

/** Draw the evidence of the model's monitor against its limit. */
function evidence(all, monitor) {
  const ranked = all.filter((run) => run.log_sum !== null);
  if (ranked.length < 2) return null;
  const values = ranked.map((run) => run.log_sum);
  const at = scales(ranked.map((run) => run.run), [Math.min(0, ...values), Math.max(monitor.log_limit, ...values)], 110);
  const { x, y, wide, right } = at;
  return s("svg", { class: "chart runs", viewBox: `0 0 ${wide} 110`, role: "img", "aria-label": `Evidence: ${evalue(values.at(-1))} now, an alarm takes ${evalue(monitor.log_limit)}` },
    s("line", { class: "limit", x1: PAD.left, x2: right, y1: y(monitor.log_limit), y2: y(monitor.log_limit) }),
    [...monitor.earlier, ...monitor.alarms].map(({ run, log_sum }) => s("circle", { class: "run moved", cx: x(ranked.findIndex((each) => each.run === run)), cy: y(log_sum), r: 3.5 }, s("title", {}, `alarm at ${run}`))),
    wide > 500 && s("text", { class: "tick moved", x: right + 8, y: y(monitor.log_limit) + 4 }, `alarm at ${count(Math.exp(monitor.log_limit))}`),
    s("path", { class: "line main", d: `M${values.map((value, k) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`).join("L")}` }));
}

/** List the items that moved most, each with its scores before and since. */
function moved(alarm, what, graded, note) {
  if (!alarm?.items.length) return null;
  const rows = alarm.items.slice(0, 8).map((each) => h("tr", { "data-key": each.item },
    h("th", { scope: "row" }, name(each.item)),
    h("td", {}, s("svg", { class: "fall", viewBox: "0 0 120 14", "aria-hidden": "true" },
      s("line", { x1: 6 + 108 * each.since, x2: 6 + 108 * each.before, y1: 7, y2: 7 }),
      s("circle", { class: "before", cx: 6 + 108 * each.before, cy: 7, r: 4 }), s("circle", { class: "since", cx: 6 + 108 * each.since, cy: 7, r: 4 }))),
    h("td", { class: "number" }, `${fixed(100 * each.before, 0)} %`),
    h("td", { class: "number" }, graded ? `${fixed(100 * each.since, 0)} %` : `${Math.round(each.since * each.runs_since)} of ${each.runs_since}`)));
  const head = `${what} that ${alarm.side === "worse" ? "fell" : "rose"} most`;
  const ten = alarm.share_of_ten === null ? "" : ` Ten items carry ${fixed(100 * Math.min(1, alarm.share_of_ten), 0)} % of it.`;
  return [
    h("h3", {}, head),
    h("table", { class: "data", "aria-label": head }, h("thead", {}, h("tr", {}, ["Item", "", "Before", "Since"].map((text, k) => h("th", { scope: "col", class: k > 1 && "number" }, text)))), h("tbody", {}, rows)),
    h("p", { class: "about" }, `${note}${ten}`),
  ];
}

/** Show how soon drops would have been found. */
function found(monitor, text) {
  if (!text) return null;
  const most = monitor.found.length ? monitor.found[0].horizon : 1;
  return [
    h("h3", {}, "What would have been found"),
    h("ul", { class: "found" }, monitor.found.map((each) => h("li", {}, h("span", {}, `${fixed(100 * each.drop, 0)} points`),
      s("svg", { viewBox: "0 0 100 8", "aria-hidden": "true" }, s("rect", { x: 0, y: 0, height: 8, width: (100 * (each.median ?? most)) / most })),
      h("span", {}, each.median === null ? `not within ${most} runs` : `within ${Math.round(each.median)} runs`)))),
    h("p", { class: "about" }, text),
  ];
}

/** Offer to announce a change, and to copy the sentence. */
function actions({ benchmark, model }, words) {
  const command = `rankwatch drift change --server ${location.origin} ${words.change}`;
  const onsubmit = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const [outcome, button] = [form.querySelector("[role=status]"), form.querySelector("button")];
    button.disabled = true; // a second change cannot be undone either
    try {
      await announce(benchmark, model, form.elements.reason.value.trim());
      form.reset();
      outcome.textContent = "Announced. The next run begins a new history.";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      outcome.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  };
  return h("div", { class: "actions" },
    h("details", { class: "announce", "data-key": "announce" },
      h("summary", { class: "button" }, "Announce a change"),
      h("p", { class: "about" }, "Was it you? Then the next run begins a new history. This cannot be undone."),
      mayWrite() && h("form", { onsubmit },
        h("label", {}, "What you changed ", h("input", { name: "reason", type: "text", maxlength: "1000", placeholder: "new prompt" })),
        h("button", { class: "loud", type: "submit" }, "Announce"),
        h("p", { role: "status", "data-keep": "" })),
      h("p", { class: "about" }, mayWrite() ? "Or from a terminal:" : "Your token may not announce it. From a terminal, with one that may:"),
      h("div", { class: "code" }, h("pre", {}, command), copies(command))),
    copies(words.quote, "Copy the sentence"));
}

function one(sentinel, words) {
  const [model, judge] = sentinel.monitors;
  const alarm = model.alarms.at(-1) ?? judge?.alarms.at(-1);
  const moves = judge?.alarms.at(-1);
  const own = (run) => (moves && run.anchor_mean !== null && run.mean !== null ? run.mean - run.anchor_mean + moves.before : run.mean);
  const part = (title_, about) => h("h3", {}, title_, " ", h("span", { class: "about" }, about));
  return h("section", { class: "sentinel", "data-key": sentinel.model },
    h("p", { class: "about" }, words.title),
    h("h2", { class: alarm && "warn" }, `${words.sign} ${words.headline}`),
    h("dl", { class: "facts" }, words.details.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text)))),
    h("div", { class: "watched" },
      h("div", {},
        part("Model", moves ? "score of each run, the judge's own movement removed" : "score of each run"), levels("Model", sentinel.runs, model, own, 220),
        part("Evidence", "of the model: a drop, against runs that could have come in any order"), evidence(sentinel.runs, model),
        judge && [part("Judge", "the same frozen answers, judged again in each run"), levels("Judge", sentinel.runs, judge, (run) => run.anchor_mean, 110)]),
      h("div", {}, moved(alarm, model.alarms.length ? "Items" : "Frozen answers", sentinel.graded, words.list_note), found(model, words.quiet), actions(sentinel, words))),
    words.notes.map((note) => h("p", { class: "note" }, note)));
}

export function render({ report, words, promise, assumption }, route) {
  return [
    ...heading(route.benchmark, "Drift", "Each run is ranked among the earlier ones of its model."),
    report.sentinels.length ? report.sentinels.map((each, k) => one(each, words[k])) : h("p", { class: "about" }, "No run has closed yet."),
    h("p", { class: "about" }, `${promise} ${assumption}`),
  ];
}
