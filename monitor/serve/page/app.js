// The page: which view an address means, loading it, keeping it current, and what is said about the connection.

import { ApiError, hasToken, setToken, summaries } from "./api.js";
import { h, morph } from "./dom.js";
import { isolated } from "./format.js";
import { follow, poll } from "./live.js";
import { link } from "./parts.js";
import * as changes from "./views/changes.js";
import * as data from "./views/data.js";
import * as home from "./views/home.js";
import * as matrix from "./views/matrix.js";
import * as neighbours from "./views/neighbours.js";
import * as pair from "./views/pair.js";
import * as ranking from "./views/ranking.js";

const VIEWS = [
  ["", ranking, "Ranking"],
  ["pairs", neighbours, "Neighbours"],
  ["matrix", matrix, "All pairs"],
  ["changes", changes, "Changes"],
  ["data", data, "Data"],
];
const REST_MS = 700;

const at = (id) => document.getElementById(id);
const main = at("main");
const kept = new Map(); // what each address showed last, to be shown at once when it is come back to
let route = null;
let stopFollowing = () => {};
let leaving = new AbortController(); // aborted when the view is left
let resting = false; // whether a load is under way, or has just been
let wanted = false; // whether something has moved since
const connected = { reachable: true, by: "polling" };

/** What an address means; null for one that means nothing. */
function parse(hash) {
  let parts;
  try {
    parts = hash.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
  if (parts.length === 1 && parts[0] === "") return { view: home };
  const [root, benchmark, name = "", a, b] = parts;
  if (root !== "b" || !benchmark) return null;
  if (name === "pair" && a && b && parts.length === 5) return { view: pair, benchmark, a, b };
  const known = VIEWS.find(([key]) => key === name);
  return known && parts.length <= 3 ? { view: known[1], benchmark, key: name } : null;
}

function tabs() {
  if (!route.benchmark) return null;
  return h("nav", { class: "tabs", "aria-label": "Views", "data-key": "tabs" }, VIEWS.map(([key, , label]) =>
    h("a", { href: link.benchmark(route.benchmark, key), "aria-current": route.key === key && "page" }, label)));
}

function show(...nodes) {
  morph(main, ...[tabs(), ...nodes].flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
}

function showFault(error) {
  const again = h("button", { class: "loud", type: "button", onclick: load }, "Try again");
  show(h("h1", { tabindex: "-1" }, error.title ?? "Something went wrong"), h("p", { class: "about" }, error.message), again,
    h("p", {}, h("a", { href: link.home() }, "All benchmarks")));
}

/** Load the view in hand and show it; where nothing answers, what stands there stays. */
async function load() {
  const shown = route;
  try {
    const found = await shown.view.load(shown, leaving.signal);
    if (shown !== route) return;
    remember(location.hash, found);
    show(shown.view.render(found, shown));
    if (shown.view === home) offer(found);
    connection({ reachable: true });
  } catch (error) {
    if (shown === route && error.name !== "AbortError") failed(error);
  }
}

/** Load again soon: at once, unless that has just been done. */
async function refresh() {
  wanted = true;
  if (resting || document.hidden) return;
  resting = true;
  while (wanted && !document.hidden) {
    wanted = false;
    await load();
    await new Promise((done) => setTimeout(done, REST_MS));
  }
  resting = false;
}

function remember(hash, found) {
  kept.delete(hash);
  kept.set(hash, found);
  if (kept.size > 12) kept.delete(kept.keys().next().value);
}

function failed(error) {
  if (!(error instanceof ApiError)) console.error(error);
  if (error.status === 0) connection({ reachable: false });
  if (error.status === 401) ask();
  else if (error.status !== 0 || !kept.has(location.hash)) showFault(error);
}

async function navigate(first) {
  route = parse(location.hash);
  leaving.abort();
  leaving = new AbortController();
  stopFollowing();
  if (!route) {
    route = { view: home };
    showFault({ title: "No such page", message: "The address of this page means nothing here." });
    return;
  }
  document.title = `${route.view.title(route)} · rankwatch`;
  const before = kept.get(location.hash);
  if (before) show(route.view.render(before, route));
  else show(h("p", { class: "loading", "data-key": "loading" }, "Loading…"));
  main.setAttribute("aria-busy", String(!before));
  stopFollowing = route.benchmark ? follow(route.benchmark, { onMove: refresh, onChange, onStream }) : poll(refresh);
  const mine = route;
  await load();
  if (mine !== route) return;
  if (!first) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  if (route.benchmark) offer(await summaries().catch(() => []));
}

/** Offer the benchmarks at the top; with one benchmark there is nothing to choose. */
function offer(found) {
  if (route.view === home && found.length === 1) {
    location.replace(link.benchmark(found[0].benchmark));
    return;
  }
  at("choose").hidden = found.length < 2;
  const options = found.map((b) => h("option", { value: b.benchmark, "data-key": b.benchmark }, isolated(b.benchmark)));
  morph(at("benchmark"), ...(route.benchmark ? options : [h("option", { value: "" }, "Choose a benchmark"), ...options]));
  at("benchmark").value = route.benchmark ?? "";
}

function onChange(change) {
  if (change.procedure === "anytime_family") at("announce").textContent = change.sentence;
}

const CONNECTIONS = {
  live: ["Live", ""],
  polling: ["Updating", ""],
  lost: ["Disconnected", "The monitor does not answer. What stands here is what it said last; this page goes on trying."],
};

/** Say how current the page is: `live` while the stream is open, `polling` while it asks again and again. */
function connection(news) {
  Object.assign(connected, news);
  const state = connected.reachable ? connected.by : "lost";
  if (at("connection").dataset.state === state) return;
  at("connection").dataset.state = state;
  [at("connection-text").textContent, at("banner").textContent] = CONNECTIONS[state];
}

const onStream = (open) => connection({ by: open ? "live" : "polling" });

function ask() {
  if (at("ask").open) return;
  stopFollowing();
  at("ask-wrong").textContent = hasToken() ? "That token was not accepted." : "";
  at("ask").showModal();
}

function wire() {
  at("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(at("token").value.trim());
    at("token").value = "";
    at("ask").close();
    navigate(true);
  });
  at("ask").addEventListener("cancel", (event) => event.preventDefault());
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  at("benchmark").addEventListener("change", (event) => {
    if (event.target.value) location.hash = link.benchmark(event.target.value);
  });
  at("theme").addEventListener("click", toggleTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("resize", repaint);
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
    // Without storage the choice lasts until the page is loaded again.
  }
  repaint();
}

/** What is painted, not laid out, has to be painted again; and the button names what it would do. */
function repaint() {
  at("theme").textContent = dark() ? "Light" : "Dark";
  at("theme").setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`);
  for (const painted of main.querySelectorAll("[data-paint]")) painted.paint(painted);
}

wire();
repaint();
navigate(true);
