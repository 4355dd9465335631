// Requests to the monitor that served the page. The token, where one is needed, lives in this tab alone and travels in a header.

const BASE = "/api/v1";
const ANSWER_MS = 30_000;
const SILENCE_MS = 40_000; // the stream says every 15 s that it is alive
const TOKEN = "rankwatch-token";

/** An answer that is not the data: `status` 0 means that nothing answered. */
export class ApiError extends Error {
  constructor(status, title, detail) {
    super(detail ?? title);
    Object.assign(this, { status, title });
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
    // Without storage it lasts until the page is loaded again.
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
    throw new ApiError(0, "The monitor does not answer", "Nothing answered at this address. Is it still running?");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ApiError(response.status, problem.title ?? `Error ${response.status}`, problem.detail);
}

const query = (parameters) =>
  new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined)).toString();

export async function get(path, parameters = {}, signal = null) {
  const patience = AbortSignal.timeout(ANSWER_MS);
  return (await request(`${path}?${query(parameters)}`, { signal: signal ? AbortSignal.any([signal, patience]) : patience })).json();
}

export const summaries = (signal) => get("/summaries", {}, signal);

/** The report of one benchmark with its adjacent pairs. */
export async function report(name, signal) {
  // A name that is a path segment of its own meaning does not survive in a URL; the list has it as well.
  const inPath = name !== "." && name !== "..";
  const found = await get(inPath ? `/benchmarks/${encodeURIComponent(name)}` : "/benchmarks", {}, signal);
  const benchmark = found.benchmarks.find((b) => b.benchmark === name);
  if (!benchmark) throw new ApiError(404, "No such benchmark", `Nothing has come for ${name}.`);
  return benchmark;
}

/** Follow server-sent events; resolves when the stream ends. EventSource could not carry a token. */
export async function stream(path, parameters, { lastId, onOpen, onEvent, signal }) {
  const headers = { Accept: "text/event-stream" };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const silence = new AbortController();
  let patience = setTimeout(() => silence.abort(), SILENCE_MS);
  const response = await request(`${path}?${query(parameters)}`, { headers, signal: AbortSignal.any([signal, silence.signal]) });
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    clearTimeout(patience);
    if (done) return;
    patience = setTimeout(() => silence.abort(), SILENCE_MS);
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
