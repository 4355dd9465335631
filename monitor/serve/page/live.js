// Keep the page current: stream server-sent events for the benchmark in view, and poll while the stream is broken.

import { stream } from "./api.js";

const POLL_MS = 2000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15000;

/** Call `onMove` every two seconds until the returned function is called. */
export function poll(onMove) {
  const timer = setInterval(onMove, POLL_MS);
  return () => clearInterval(timer);
}

/**
 * Follow a benchmark until the returned function is called.
 *
 * onMove: the state may have changed. onChange: a verdict has changed. onStream: the stream has opened or closed.
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
      // Whether a stream ends or fails: poll, and reconnect after a while.
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
