"""A benchmark of many models, posted in one request to a real `watch`: others are answered meanwhile, and a stop does not wait for it."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.commands import PATIENCE, Watch, get, until

SLOW = bool(os.environ.get("RANKWATCH_SLOW"))
MODELS = 5_000 if SLOW else 2_000
MEGABYTES = 4_000 if SLOW else 650
SNAPSHOT_SECONDS = 5.0
TIMED = (sys.executable, "-m", "tests.fault.timed_rankwatch")
LONGEST = 0.2
"""Seconds of processor time that no callback of the event loop may take."""


def post(watch, name, models, **declared):
    """Post the scores of so many models on two items, with a declaration where there is one."""
    declarations = [{"declare": name, **declared}] if declared else []
    scores = (
        {"benchmark": name, "item_id": str(k), "model": f"m{m}", "score": m * (3 + k) % 7 % 2}
        for k in range(2)
        for m in range(models)
    )
    body = "".join(json.dumps(record) + "\n" for record in (*declarations, *scores)).encode()
    request = Request(f"{watch.url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with urlopen(request, timeout=PATIENCE) as answer:
        assert json.load(answer)["accepted"] == 2 * models


def events(watch):
    return {each["benchmark"]: each["events"] for each in json.loads(get(f"{watch.url}/api/v1/summaries")[1])}


def probe(watch):
    """Seconds until the probe answers."""
    begin = time.monotonic()
    assert get(f"{watch.url}/healthz") == (200, "ok\n")
    return time.monotonic() - begin


def page(watch, name):
    """What a page asks for as it opens, and on its tabs."""
    for path in ("board", "pairs", "items", "surprises", "matrix", "next"):
        status, body = get(f"{watch.url}/api/v1/{path}?benchmark={name}")
        assert status in {200, 409, 422}, (path, status, body[:200])  # too many pairs for a matrix; nothing to race


def seconds_of(line):
    return float(line.partition(" ")[0])


@pytest.mark.fault(
    "readers",
    "2,000 models posted in one request",
    "probes are answered meanwhile; no callback of the event loop takes 0.2 s of processor time",
)
def test_others_are_answered_while_a_large_benchmark_is_folded_and_reported(tmp_path):
    callbacks = tmp_path / "callbacks.txt"
    with Watch(tmp_path / "data", command=TIMED, LONG_CALLBACKS=str(callbacks)) as watch:
        watch.line("http://")
        post(watch, "large", MODELS, order={"policy": "trusted"})
        waits = []
        with ThreadPoolExecutor(1) as pool:  # reports wait for the end of a chunk, probes do not
            folded = pool.submit(until, lambda: events(watch).get("large") == 2 * MODELS, "the fold")
            while not folded.done():
                waits.append(probe(watch))
            folded.result()
        assert len(waits) > 1, "the fold held everything up"
        begin = time.monotonic()
        assert get(f"{watch.url}/metrics")[0] == 200
        scrape = time.monotonic() - begin
        status = Path(f"/proc/{watch.process.pid}/status").read_text()
        megabytes = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024
        waits.sort()
        print(
            f"{MODELS:,} models: {len(waits)} probes during the fold, p50 {1e3 * waits[len(waits) // 2]:.0f} ms, at most "
            f"{1e3 * waits[-1]:.0f} ms; /metrics {scrape:.1f} s; {megabytes:,} MB"
        )
        assert megabytes < MEGABYTES
        page(watch, "large")
        time.sleep(max(0.0, begin + SNAPSHOT_SECONDS - time.monotonic()))
        longest = max(callbacks.read_text().splitlines(), default="0 none", key=seconds_of)
        print(f"at most {longest}")
        assert seconds_of(longest) < LONGEST, longest


@pytest.mark.fault("processes", "SIGTERM within a chunk of 2,000 models", "exit 0 within its time; nothing is lost")
def test_a_stop_within_a_large_chunk_ends_in_time_and_loses_nothing(tmp_path):
    with Watch(tmp_path / "data", RANKWATCH_DRAIN_SECONDS="20") as watch:
        post(watch, "large", MODELS)
        begin = time.monotonic()
        assert watch.stop() == 0
        assert time.monotonic() - begin < 20
    with Watch(tmp_path / "data") as watch:
        until(lambda: events(watch) == {"large": 2 * MODELS}, "the rest to be folded")
