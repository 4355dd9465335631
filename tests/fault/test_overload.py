"""A benchmark of many models, posted in one request to a real `watch`: others are answered meanwhile, and a stop does not wait for it."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

from tests.commands import PATIENCE, Watch, get, until

SLOW = bool(os.environ.get("RANKWATCH_SLOW"))
MODELS = 5_000 if SLOW else 2_000
MEGABYTES = 2_000 if SLOW else 500


def post(watch, name, models):
    """Post the scores of so many models on two items."""
    scores = (
        {"benchmark": name, "item_id": str(k), "model": f"m{m}", "score": m * (3 + k) % 7 % 2}
        for k in range(2)
        for m in range(models)
    )
    body = "".join(json.dumps(score) + "\n" for score in scores).encode()
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


def test_others_are_answered_while_a_large_benchmark_is_folded_and_reported(tmp_path):
    with Watch(tmp_path / "data") as watch:
        post(watch, "large", MODELS)
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


def test_a_stop_within_a_large_chunk_ends_in_time_and_loses_nothing(tmp_path):
    with Watch(tmp_path / "data", RANKWATCH_DRAIN_SECONDS="20") as watch:
        post(watch, "large", MODELS)
        begin = time.monotonic()
        assert watch.stop() == 0
        assert time.monotonic() - begin < 20
    with Watch(tmp_path / "data") as watch:
        until(lambda: events(watch) == {"large": 2 * MODELS}, "the rest to be folded")
