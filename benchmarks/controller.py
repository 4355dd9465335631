"""The controller of a race: the time of an answer to ``GET /api/v1/next``.

A race for the best three models goes on: each look posts the scores that the last answer asked for, waits until they are folded, and asks
again. So no answer comes from a cache. "In process" is the same look without a server, in processor time. Over HTTP an embedded monitor
runs in a process of its own: the time of the request as the client sees it, and the processor time of the server for it.
"""

import json
import os
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.harness import SEED, Options, Table
from benchmarks.latency import EMBEDDED, post, process
from monitor.engine.chunk_fold import Partition
from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import Race
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields

ITEMS = 1_000
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(options: Options) -> Iterator[Table]:
    """Race for some looks."""
    table = Table(
        "An answer to GET /api/v1/next",
        ["models", "looks", "in process, processor ms", "server, processor ms", "request ms, median", "largest"],
        notes=[
            "Median in process; of the server the mean. A request also waits for the other programs of the machine: see the load."
        ],
    )
    for models, looks in ((29, options.size(25, 3)), (options.size(1_000, 60), options.size(4, 3))):
        table.rows.append((models, looks, *map(milliseconds, (in_process(models, looks), *over_http(models, looks)))))
    yield table


def milliseconds(seconds: float) -> float:
    """Round to 0.1 ms."""
    return round(1e3 * seconds, 1)


def declared(models: int) -> dict[str, Any]:
    """Return the declaration of a race."""
    return {
        "declare": "made",
        "item_ids": [f"q{k}" for k in range(ITEMS)],
        "order": {"policy": "committed", "seed": "s"},
        "family": {"models": [f"m{k}" for k in range(models)]},
        "goal": "top:3",
    }


def scores(asked: list[dict[str, Any]], models: int, rng: Random) -> list[dict[str, Any]]:
    """Return the scores that an answer asks for; the models are evenly spread."""
    return [
        {
            "benchmark": "made",
            "item_id": item,
            "model": run["model"],
            "score": int(rng.random() < 0.4 + 0.4 * int(run["model"][1:]) / models),
        }
        for run in asked
        for item in run["items"]
    ]


def in_process(models: int, looks: int) -> float:
    """Return the median seconds of a look."""
    partition, rng, seconds = Partition(), Random(SEED), []
    partition.fold_events([Declaration.model_validate(declared(models))], [], [], 1)
    for _ in range(looks):
        begin = time.process_time()
        answer = Race.of(PairTable(board_view(partition.benchmarks["made"]))).report()
        answer.model_dump_json()
        seconds.append(time.process_time() - begin)
        made = scores([run.model_dump() for run in answer.models], models, rng)
        events = [EventFields("made", each["item_id"], each["model"], float(each["score"])) for each in made]
        partition.fold_events([], events, [], partition.off + len(events))
    return statistics.median(seconds)


def over_http(models: int, looks: int) -> tuple[float, float, float]:
    """Return the mean processor time of the server, and the median and the largest time of a request."""
    rng, events, spent, waited = Random(SEED), 0, 0.0, []
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder, process(EMBEDDED, folder) as (url, number):
        post(url, [json.dumps(declared(models)).encode()])
        for _ in range(looks):
            while sum(board["events"] for board in _get(url, "summaries")) < events:
                time.sleep(0.2)
            begin, before = time.perf_counter(), _processor_time(number)
            answer = _get(url, "next?benchmark=made")
            waited.append(time.perf_counter() - begin)
            spent += _processor_time(number) - before
            made = scores(answer["models"], models, rng)
            events += len(made)
            post(url, [json.dumps(each).encode() for each in made])
    return spent / looks, statistics.median(waited), max(waited)


def _get(url: str, path: str) -> Any:  # noqa: ANN401 - any JSON
    with urllib.request.urlopen(f"{url}/api/v1/{path}") as answer:
        return json.load(answer)


def _processor_time(process: int) -> float:
    """Return the seconds of processor time of a process so far, in ticks of a clock."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
