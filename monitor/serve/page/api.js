// Send requests to the monitor that served the page. The token stays in this tab and travels in a header.

import { byName } from "./format.js";

const BASE = "/api/v1";
const RESPONSE_MS = 30_000;
const SILENCE_MS = 40_000; // the stream sends a heartbeat every 15 s
const TOKEN = "rankwatch-token";

/** A failed request. Status 0: no response arrived. */
export class ApiError extends Error {
  constructor(status, title, detail, errors = []) {
    super(detail ?? title);
    Object.assign(this, { status, title, errors });
  }
}

let memory = null;

function token() {
  try {
    return sessionStorage.getItem(TOKEN) ?? memory;
  } catch {
    return memory;
  }
}

export function setToken(value) {
  memory = value;
  try {
    sessionStorage.setItem(TOKEN, value);
  } catch {
    // Without storage the token lasts until the next reload.
  }
}

export function clearToken() {
  memory = null;
  try {
    sessionStorage.removeItem(TOKEN);
  } catch {
    // There is none then.
  }
}

export const hasToken = () => token() !== null;

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(BASE + path, { cache: "no-store", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The monitor does not respond", "No response from this address. Check that rankwatch is running.");
  }
  if (response.ok || response.status === 304) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ApiError(response.status, problem.title ?? `Error ${response.status}`, problem.detail, problem.errors);
}

const query = (parameters) =>
  new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined)).toString();

/** Whether any answer since it was last set to false is of an earlier state, because the monitor computes the next one. */
export const freshness = { lags: false };

const ANSWERS = 24;
const answers = new Map(); // by address: the last answers with their validators; in memory only, since they may be for the holder of a token

/** Forget every answer: what follows may be for another reader. */
export const forget = () => answers.clear();

/** Get an answer and the cursor of the next page; one that has not changed is not sent again. */
async function getPage(path, parameters, signal) {
  const timeout = AbortSignal.timeout(RESPONSE_MS);
  const address = `${path}?${query(parameters)}`;
  const known = answers.get(address);
  const response = await request(address, { headers: known ? { "If-None-Match": known.tag } : {}, signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
  if (response.headers.has("Rankwatch-Lag")) freshness.lags = true;
  const answer = response.status === 304 ? known : { tag: response.headers.get("ETag"), next: response.headers.get("Rankwatch-Next-Cursor"), data: await response.json() };
  answers.delete(address);
  if (answer.tag) answers.set(address, answer);
  if (answers.size > ANSWERS) answers.delete(answers.keys().next().value);
  return answer;
}

export const get = async (path, parameters = {}, signal = null) => (await getPage(path, parameters, signal)).data;

/** Send a file of results, and get what was stored. Of a refusal, `errors` has an entry for each line that cannot be read. */
export async function sendFile(file, model) {
  const response = await request(`/files?${query({ name: file.name, model: model || null })}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  return response.json();
}

/** Get the certificate of a newcomer, byte by byte as `rankwatch verify` takes it. */
export const certificate = async (benchmark, model) => (await request(`/admissions/certificate?${query({ benchmark, model })}`)).text();

/** Announce that a model of a sentinel was changed on purpose. */
export async function announce(benchmark, model, reason) {
  const record = { change: model, benchmark, ...(reason && { reason }) };
  const response = await request("/events", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify([record]) });
  const [refused] = (await response.json()).rejected;
  if (refused) throw new ApiError(422, "Refused", refused.reason);
}

/** Get whose token the page uses, and what it may do. */
export const caller = () => get("/caller");

/** List the benchmarks, page by page: suites first, then by name. */
export async function summaries(signal) {
  const all = [];
  let cursor = null;
  do {
    const { data, next } = await getPage("/summaries", { cursor }, signal);
    all.push(...data);
    cursor = next;
  } while (cursor);
  return all.sort((x, y) => Boolean(y.members) - Boolean(x.members) || byName(x.benchmark, y.benchmark));
}

/** Get the report of one benchmark with its adjacent pairs: that of the board, which the page has often got already. */
export const report = async (benchmark, signal) => (await board(benchmark, signal)).report;

/** Get a board; the report has the words about it. */
export async function board(benchmark, signal) {
  const answer = await get("/board", { benchmark }, signal);
  return { ...answer, report: { ...answer.report, words: answer.words } };
}

/** Read every pair of a model, page by page. */
export async function allPairs(benchmark, model, signal) {
  const pairs = [];
  let cursor = null;
  do {
    const page = await get("/pairs", { benchmark, model, limit: 1000, cursor }, signal);
    pairs.push(...page.pairs.map((pair, k) => ({ ...pair, need: page.need_notes[k] })));
    cursor = page.next_cursor;
  } while (cursor);
  return pairs;
}

/** Read server-sent events until the stream ends. EventSource cannot send the token header. */
export async function stream(path, parameters, { lastId, onOpen, onEvent, signal }) {
  const headers = { Accept: "text/event-stream" };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const response = await request(`${path}?${query(parameters)}`, { headers, signal: AbortSignal.any([signal, silence.signal]) });
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    clearTimeout(timer);
    if (done) return;
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) parseEvent(block, onEvent);
  }
}

function parseEvent(block, onEvent) {
  const event = { type: "message", id: null, data: [] };
  for (const line of block.split("\n")) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.type = value;
    else if (field === "id") event.id = value;
    else if (field === "data") event.data.push(value);
  }
  if (event.data.length) onEvent({ ...event, data: JSON.parse(event.data.join("\n")) });
}
