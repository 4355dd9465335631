"""Calls of the page: each on a board of 1,000 models in a real `watch`, computed for the state that it shows.

All models answer 26 items in 8 categories, in a trusted order. Ahead of each call a new event of the board is posted and folded, and the
call asks for a state that has it (`at_least`), so that no answer is a kept one. Processor time is that of the process during the call, the
median of some. The longest callback of the event loop is that of all calls of a row, the fold of its events included. Last, events come ten
times a second for some seconds, while one client makes all calls in turn as often as it can: many answers are then as of an earlier offset.
"""

import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

from benchmarks.events import right_answers
from benchmarks.harness import Options, Table
from benchmarks.latency import post
from tests.commands import Watch

NAME, CATEGORIES = "made", 8
TIMED = (sys.executable, "-m", "tests.fault.timed_rankwatch")

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(options: Options) -> Iterator[Table]:
    """Make each call some times."""
    models, items = options.size(1_000, 30), 26
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder:
        callbacks = Path(folder) / "callbacks.txt"
        callbacks.touch()
        with Watch(Path(folder) / "data", command=TIMED, fresh=True, LONG_CALLBACKS=str(callbacks)) as watch:
            board = Board(watch.url, watch.process.pid, callbacks, models, items)
            table = Table(
                f"Calls of the page on {models:,} models x {items} items, {CATEGORIES} categories",
                ["call", "processor ms", "most", "kB", "longest callback, ms"],
                notes=["Longest callback 0: none took 20 ms. Metrics are kept for some time: the most is of new ones."],
            )
            longest = board.fill()
            table.notes.append(f"Longest callback while the board was folded: {longest:.0f} ms.")
            for what, path in calls(models).items():
                taken = [board.call(path) for _ in range(options.size(5, 2))]
                spent = [each for each, _ in taken]
                table.rows.append(
                    (
                        what,
                        round(statistics.median(spent)),
                        round(max(spent)),
                        round(taken[0][1] / 1e3),
                        board.longest(),
                    )
                )
            table.notes.append(board.under_load(list(calls(models).values()), options.size(20, 2)))
            yield table


def calls(models: int) -> dict[str, str]:
    """Return the calls of the page, by what it shows."""
    a, b = f"model-{models // 2:04d}", f"model-{models // 2 + 1:04d}"
    of = f"?benchmark={NAME}"
    api = {
        "list of boards": "summaries",
        "board": f"board{of}",
        "report": f"benchmarks/{NAME}",
        "pairs, by rank": f"pairs{of}",
        "pairs, 1,000 by resolution": f"pairs{of}&sort=resolution_ratio&limit=1000",
        "pairs, decided": f"pairs{of}&status=decided",
        "pairs of a model": f"pairs{of}&model={a}&limit=1000",
        "a pair": f"pairs{of}&model={a}&other={b}&limit=1",
        "path of a pair": f"path{of}&model_a={a}&model_b={b}",
        "matrix": f"matrix{of}",
        "time: verdicts in force": f"moments{of}",
        "time: replay": f"replay{of}",
        "items": f"items{of}&sort=suspicious",
        "items of two models": f"items{of}&model_a={a}&model_b={b}&show=differ",
        "surprises": f"surprises{of}&model={a}",
        "categories": f"categories{of}&baseline={a}",
        "verdict changes": f"changes{of}&newest=true&limit=200",
    }
    return {what: f"/api/v1/{path}" for what, path in api.items()} | {"metrics": "/metrics"}


class Board:
    """The board, as it is served and filled."""

    def __init__(self, url: str, process: int, callbacks: Path, models: int, items: int) -> None:
        self._url, self._process, self._callbacks, self._seen = url, process, callbacks, 0
        self._models, self._items, self._events = models, items, 0
        self._right = right_answers(models, items).astype(int)

    def fill(self) -> float:
        """Post the board; return the longest callback of its fold in milliseconds."""
        post(self._url, [json.dumps({"declare": NAME, "order": "trusted"}).encode()])
        size = self._models * self._items
        for start in range(0, size, 5_000):
            self._post(min(5_000, size - start))
        self._wait()
        while self._is_busy():  # the changes are still being published
            pass
        return self.longest()

    def _is_busy(self) -> bool:
        before = self._spent()
        time.sleep(1)
        return self._spent() - before > 0.1

    def call(self, path: str) -> tuple[float, int]:
        """Change the board, make a call, and return the milliseconds of processor time that it took and its bytes."""
        self._post(1)
        offset = self._wait()
        before = self._spent()
        size = self._get(f"{path}{'&' if '?' in path else '?'}at_least={offset}")
        return 1e3 * (self._spent() - before), size

    def under_load(self, paths: list[str], seconds: float) -> str:
        """Make all calls in turn while events come; return what they took."""
        self.longest()
        took: list[float] = []
        end, done = time.perf_counter() + seconds, Event()

        def send() -> None:
            while not done.wait(0.1):
                self._post(1)

        sender = Thread(target=send)
        sender.start()
        while time.perf_counter() < end:
            for path in paths:
                begin = time.perf_counter()
                self._get(path)
                took.append(1e3 * (time.perf_counter() - begin))
        done.set()
        sender.join()
        took.sort()
        p50, p99 = (took[int(share * len(took))] for share in (0.5, 0.99))
        return (
            f"Under 10 events/s, {len(took):,} calls in turn: p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {took[-1]:.0f} ms; longest "
            f"callback {self.longest():.0f} ms."
        )

    def longest(self) -> int:
        """Return the processor time of the longest callback since the last call, in milliseconds; 0 if all took less than 20."""
        lines = self._callbacks.read_text().splitlines()
        new, self._seen = lines[self._seen :], len(lines)
        return round(1e3 * max((float(line.split()[0]) for line in new), default=0))

    def _post(self, events: int) -> None:
        lines = []
        for k in range(self._events, self._events + events):
            model, item = k // self._items % self._models, k % self._items
            late = k // self._items // self._models * self._items  # items that come after the board is filled
            lines.append(
                json.dumps(
                    {
                        "benchmark": NAME,
                        "model": f"model-{model:04d}",
                        "item_id": str(item + late),
                        "score": int(self._right[model, item]),
                        "cluster": f"category {item % CATEGORIES}",
                    }
                ).encode()
            )
        post(self._url, lines)
        self._events += events

    def _wait(self) -> str:
        """Wait until all is folded, and return the offset."""
        with urllib.request.urlopen(f"{self._url}/api/v1/summaries") as answer:
            if sum(board["events"] for board in json.load(answer)) == self._events:
                return str(answer.headers["Rankwatch-Offset"])
        time.sleep(0.05)
        return self._wait()

    def _get(self, path: str) -> int:
        with urllib.request.urlopen(
            urllib.request.Request(self._url + path, headers={"Accept-Encoding": "gzip"})
        ) as answer:
            return len(answer.read())

    def _spent(self) -> float:
        fields = Path(f"/proc/{self._process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
