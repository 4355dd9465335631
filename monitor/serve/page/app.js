// Route addresses to views, load and refresh them, and show the state of the connection.

import { ApiError, caller, clearToken, forget, freshness, hasToken, setToken, summaries } from "./api.js";
import { h, morph } from "./dom.js";
import { isolated } from "./format.js";
import { follow, poll } from "./live.js";
import * as keys from "./keys.js";
import { onOptions } from "./options.js";
import { link } from "./parts.js";
import * as board from "./views/board.js";
import * as categories from "./views/categories.js";
import * as changes from "./views/changes.js";
import * as data from "./views/data.js";
import * as drift from "./views/drift.js";
import * as home from "./views/home.js";
import * as items from "./views/items.js";
import * as matrix from "./views/matrix.js";
import * as model from "./views/model.js";
import * as newcomer from "./views/newcomer.js";
import * as neighbours from "./views/neighbours.js";
import * as pair from "./views/pair.js";
import * as time from "./views/time.js";

/** The key, the view, its name, and for a view below another one: the key and the name of that one. */
const VIEWS = [
  ["", board, "Ranking"],
  ["drift", drift, "Drift"],
  ["pairs", neighbours, "Neighbours", "pairs", "Pairs"],
  ["matrix", matrix, "All pairs", "pairs"],
  ["newcomers", newcomer, "Newcomers"],
  ["items", items, "Items"],
  ["categories", categories, "Categories"],
  ["time", time, "Moments", "time", "Time"],
  ["changes", changes, "Changes", "time"],
  ["data", data, "Data"],
];
const OF_RUNS = new Set(["drift", "changes", "data"]); // views of a sentinel
const OF_ITEMS = new Set(["items", "categories"]); // views that a benchmark of battles does not have
const PAUSE_MS = 700;
const LAG_MS = 2000; // a server that gives earlier answers has much to do

const at = (id) => document.getElementById(id);
const main = at("main");
const views = at("views");
const lastData = new Map(); // by address, to show a view at once on return
let withBattles = new Set(); // names of benchmarks
let sentinels = new Set();
let admitting = new Set(); // those that have admitted newcomers
let route = null;
let stopFollowing = () => {};
let leaving = new AbortController(); // aborted when the view is left
let refreshing = false; // whether a load is running or has just ended
let stale = false; // whether the state has changed since
let opening = null; // the first load of the view
let shown = null; // the view, the options and the answers on display
const status = { reachable: true, by: "polling", lags: false };

/** Return the view and the names in an address; null for an unknown address. */
function parse(hash) {
  const [path, query = ""] = hash.split("?");
  const options = new URLSearchParams(query);
  let parts;
  try {
    parts = path.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
  if (parts.length === 1 && parts[0] === "") return { view: home, path, options };
  const [root, benchmark, name = "", a, b] = parts;
  if (root !== "b" || !benchmark) return null;
  if (name === "pair" && a && b && parts.length === 5) return { view: pair, path, options, benchmark, a, b, tab: "pairs" };
  if (name === "newcomers" && a && parts.length === 4) return { view: newcomer, path, options, benchmark, model: a, key: name };
  if (name === "model" && a && parts.length === 4) return { view: model, path, options, benchmark, model: a };
  const known = VIEWS.find(([key]) => key === name);
  return known && parts.length <= 3 ? { view: known[1], path, options, benchmark, key: name } : null;
}

/** Return the links to the views, and to those below the present one. */
function tabs() {
  if (!route.benchmark || route.missing) return [];
  const battles = withBattles.has(route.benchmark);
  const watched = sentinels.has(route.benchmark);
  const offered = ([key]) => (watched ? OF_RUNS.has(key) : key !== "drift" && (!battles || !OF_ITEMS.has(key)) && (key !== "newcomers" || admitting.has(route.benchmark)));
  const shown = VIEWS.filter(offered);
  const top = ([key, , , group]) => !group || group === key || !shown.some(([other]) => other === group);
  const [, , , here] = shown.find(([key]) => key === route.key) ?? [];
  const nav = (label, links, current) => links.length > 1 && h("nav", { class: "tabs", "aria-label": label, "data-key": label }, links.map(([key, , own, , name]) =>
    h("a", { href: link.benchmark(route.benchmark, key), "aria-current": current(key) && "page" }, (label === "Views" && name) || own)));
  const below = here ? shown.filter(([, , , group]) => group === here) : [];
  return [nav("Views", shown.filter(top), (key) => [route.key, here, route.tab].includes(key)), nav("Below", below, (key) => key === route.key)];
}

function show(...nodes) {
  shown = null;
  const [all, below] = tabs();
  morph(views, ...[all].filter(Boolean));
  morph(main, ...[below, ...nodes].flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
}

function showError(error) {
  const again = h("button", { class: "loud", type: "button", onclick: () => load() }, "Try again");
  show(h("h1", { tabindex: "-1" }, route.missing ? "No such benchmark" : error.title ?? "Something went wrong"), h("p", { class: "about" }, error.message, route.missing && " This page shows it as soon as the first ones arrive."),
    h("p", { class: "actions" }, again, h("a", { class: "button", href: link.home() }, "All benchmarks")));
}

/**
 * Load the current view and show it; without a response, keep what the page shows.
 *
 * earlier: what the view showed of the same state, under other choices.
 */
async function load(earlier = null) {
  const current = route;
  const { options } = route;
  freshness.lags = false;
  try {
    const data = await current.view.load(current, leaving.signal, earlier);
    if (current !== route || options !== route.options) return;
    if (current.missing) {
      current.missing = false;
      offerBenchmarks(await summaries().catch(() => []));
    }
    remember(current.path, data);
    if (!isShown(data) || current.view.pending?.()) display(data);
    if (current.view === home) offerBenchmarks(data);
    connection({ reachable: true, lags: freshness.lags });
    if (freshness.lags) setTimeout(refresh, LAG_MS); // nothing else announces the newer answer
  } catch (error) {
    if (current === route && error.name !== "AbortError") await failed(error);
  }
}

/** Show the answers of a view. */
function display(data) {
  show(route.view.render(data, route));
  shown = { view: route, options: route.options, data };
}

/** Return whether the page shows the very answers of this load: one that has not changed is the same object. */
function isShown(data) {
  if (shown?.view !== route || shown.options !== route.options) return false;
  const [before, now] = [Object.entries(shown.data), Object.entries(data)];
  return before.length === now.length && now.every(([key, value]) => shown.data[key] === value);
}

/** Reload the view now, or after the pause that follows each load. */
async function refresh() {
  stale = true;
  if (refreshing || document.hidden) return;
  refreshing = true;
  await opening;
  while (stale && !document.hidden) {
    stale = false;
    await load();
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
  refreshing = false;
}

function remember(path, data) {
  lastData.delete(path);
  lastData.set(path, data);
  if (lastData.size > 12) lastData.delete(lastData.keys().next().value);
}

async function failed(error) {
  if (!(error instanceof ApiError)) console.error(error);
  const current = route;
  if (error.status === 404 && route.benchmark) {
    current.missing = !(await summaries().catch(() => [])).some((b) => b.benchmark === current.benchmark);
    if (current !== route) return;
    connection({ reachable: true });
  }
  if (error.status === 0) connection({ reachable: false });
  if (error.status === 401) askForToken(true);
  else if (error.status !== 0 || !lastData.has(route?.path)) showError(error);
}

async function navigate(first) {
  route = parse(location.hash);
  leaving.abort();
  leaving = new AbortController();
  stopFollowing();
  menu(false);
  if (!route) {
    route = { view: home };
    showError({ title: "No such page", message: "This address matches no page. Start from the list of benchmarks." });
    return;
  }
  document.title = `${route.view.title(route)} · rankwatch`;
  const before = lastData.get(route.path);
  if (before) display(before);
  else {
    show(h("p", { class: "loading", "data-key": "loading" }, "Loading…"));
    main.setAttribute("aria-busy", "true");
  }
  stopFollowing = route.benchmark ? follow(route.benchmark, { onMove: refresh, onChange, onStream }) : poll(refresh);
  const current = route;
  opening = load();
  await opening;
  if (current !== route) return;
  if (!first) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  if (!route.benchmark) return;
  const kind = () => [withBattles, sentinels, admitting].map((each) => each.has(current.benchmark)).join();
  const known = kind();
  offerBenchmarks(await summaries().catch(() => []));
  if (current === route && known !== kind()) redraw();
}

/** Show the current view with the choices in its address; load what these need besides. */
function optionsChanged() {
  const { options } = parse(location.hash);
  route.options = options;
  redraw();
  load(refreshing ? null : lastData.get(route.path));
}

/** Show the current view again, from what it was last shown from. */
function redraw() {
  const data = route && lastData.get(route.path);
  if (data) display(data);
}

/** Draw the rows that scrolling has brought into view. */
function scrolled() {
  if (route?.view.scrolled?.()) redraw();
}

/** Draw every row for the printer, and only those in view afterwards. */
function printing(on) {
  document.documentElement.classList.toggle("printing", on);
  redraw();
}

/** Fill the benchmark menu at the top; a single benchmark opens directly. */
function offerBenchmarks(benchmarks) {
  withBattles = new Set(benchmarks.filter((b) => b.battles).map((b) => b.benchmark));
  admitting = new Set(benchmarks.filter((b) => b.newcomers).map((b) => b.benchmark));
  sentinels = new Set(benchmarks.filter((b) => b.sentinel).map((b) => b.benchmark));
  if (route.view === home && benchmarks.length === 1) {
    location.replace(link.benchmark(benchmarks[0].benchmark, benchmarks[0].sentinel ? "drift" : ""));
    return;
  }
  if (route.view === board && sentinels.has(route.benchmark)) location.replace(link.benchmark(route.benchmark, "drift"));
  at("choose").hidden = benchmarks.length < 2;
  const options = benchmarks.map((b) => h("option", { value: b.benchmark, "data-key": b.benchmark }, isolated(b.benchmark)));
  const chosen = route.missing ? "" : route.benchmark ?? "";
  morph(at("benchmark"), ...(chosen ? options : [h("option", { value: "" }, "Benchmark"), ...options]));
  at("benchmark").value = chosen;
}

function onChange(change) {
  if (change.procedure === "anytime_family") at("announce").textContent = change.sentence;
}

const CONNECTIONS = { live: "Live", polling: "Updating", lost: "Disconnected" };
let answered = null; // when the last response arrived

/** Show the state of the connection: `live` with an open stream, or where there is none to follow, on the list and before a benchmark begins; `polling` without one; `lost` without responses. */
function connection(change) {
  Object.assign(status, change);
  if (change.reachable) answered = new Date();
  const state = !status.reachable ? "lost" : route?.view === home || route?.missing ? "live" : status.by;
  const lags = status.reachable && status.lags;
  at("connection-text").textContent = lags ? "Catching up" : CONNECTIONS[state];
  at("connection").title = lags ? "Scores have arrived since this view was computed. The next one is being computed." : "";
  if (at("connection").dataset.state === state) return;
  at("connection").dataset.state = state;
  const since = answered ? `The page shows the answer from ${answered.toLocaleTimeString()} and keeps trying.` : "The page keeps trying.";
  at("banner").textContent = state === "lost" ? `The monitor does not respond. ${since}` : "";
}

const onStream = (open) => connection({ by: open ? "live" : "polling" });

/** Ask for a token: because a request needs one (`needed`), or because the reader wants to see more. */
function askForToken(needed) {
  if (at("ask").open) return;
  stopFollowing();
  at("ask-wrong").textContent = needed && hasToken() ? "That token was not accepted. Check it and try again." : "";
  at("ask-title").textContent = needed ? "Token needed" : "Sign in";
  at("ask-why").textContent = needed ? "This monitor requires a token." : "A token may show more benchmarks.";
  at("ask-without").hidden = needed && !hasToken();
  at("ask").showModal();
}

/** Go on with another token, or without one: what was shown may not be for its holder. */
function enter(token) {
  if (token) setToken(token);
  else clearToken();
  lastData.clear();
  forget();
  if (at("ask").open) at("ask").close();
  navigate(true);
  showCaller();
}

/** Offer to sign in where tokens give rights, and show who has signed in. */
async function showCaller() {
  const found = await caller().catch(() => null);
  at("account").hidden = !found?.tokens || found.name.startsWith("user:"); // a proxy signs its users in and out
  at("account").dataset.signedIn = String(Boolean(found?.signed_in));
  at("account").textContent = found?.signed_in ? "Sign out" : "Sign in";
  at("account").title = found?.signed_in ? `Signed in as ${found.name}` : "";
}

/** Open or close the menu, which has the views and buttons of the head on a phone. */
function menu(open) {
  at("menu").setAttribute("aria-expanded", String(open));
}

function wire() {
  at("menu").addEventListener("click", () => menu(at("menu").getAttribute("aria-expanded") !== "true"));
  at("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = at("token").value.trim();
    at("token").value = "";
    if (token) enter(token);
  });
  at("ask").addEventListener("cancel", (event) => event.preventDefault());
  at("ask-without").addEventListener("click", () => enter(null));
  at("account").addEventListener("click", () => (at("account").dataset.signedIn === "true" ? enter(null) : askForToken(false)));
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  at("benchmark").addEventListener("change", (event) => {
    if (event.target.value) location.hash = link.benchmark(event.target.value);
  });
  at("theme").addEventListener("click", toggleTheme);
  at("help").addEventListener("click", keys.help);
  at("keys-close").addEventListener("click", () => at("keys").close());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("resize", () => {
    repaint();
    scrolled();
  });
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  addEventListener("scroll", () => requestAnimationFrame(scrolled), { passive: true });
  document.addEventListener("keydown", (event) => keys.pressed(event, route));
  onOptions(optionsChanged);
  addEventListener("hashchange", () => navigate(false));
  document.addEventListener("visibilitychange", refresh);
}

const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function toggleTheme() {
  const theme = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("rankwatch-theme", theme);
  } catch {
    // Without storage the choice lasts until the next reload.
  }
  repaint();
}

/** Paint every canvas again, and name the other theme on the button. */
function repaint() {
  at("theme").textContent = dark() ? "Light" : "Dark";
  at("theme").setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`);
  for (const painted of main.querySelectorAll("[data-paint]")) painted.paint(painted);
}

wire();
repaint();
navigate(true);
showCaller();
