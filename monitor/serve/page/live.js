// Keeps the page current: one stream of server-sent events for the benchmark in view; where it breaks, polling until it is back.

import { stream } from "./api.js";

const POLL_MS = 2000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15000;

/** Ask again and again until the returned function is called. */
export function poll(ask) {
  const timer = setInterval(ask, POLL_MS);
  return () => clearInterval(timer);
}

/**
 * Follow a benchmark until the returned function is called.
 *
 * onMove: something has changed, or may have.   onChange: a verdict has.   onStream: whether the stream is open.
 */
export function follow(benchmark, { onMove, onChange, onStream }) {
  const abort = new AbortController();
  const { signal } = abort;
  let lastId = null;
  let stopPolling = poll(onMove);

  function onOpen() {
    stopPolling();
    onStream(true);
    onMove();
  }

  function onEvent({ type, id, data }) {
    if (id) lastId = id;
    if (type === "change") onChange(data);
    onMove();
  }

  async function run() {
    let wait = FIRST_RETRY_MS;
    while (!signal.aborted) {
      const began = performance.now();
      // However a stream ends, the answer is the same: poll, and try again after a while.
      await stream("/changes/stream", { benchmark }, { lastId, onOpen, onEvent, signal }).catch(() => {});
      if (signal.aborted) return;
      stopPolling();
      stopPolling = poll(onMove);
      onStream(false);
      onMove();
      if (performance.now() - began > LAST_RETRY_MS) wait = FIRST_RETRY_MS;
      await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random())));
      wait = Math.min(2 * wait, LAST_RETRY_MS);
    }
  }

  run();
  return () => {
    abort.abort();
    stopPolling();
  };
}
