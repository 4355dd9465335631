"""A benchmark at its limit of models: the first two items of 5,000 models, posted to a real `watch` in one request.

While they are folded, one client asks `/healthz` again as soon as it is answered, and another one how far the fold is. Then `/metrics` and
the calls of a page as it opens are made. The longest callback of the event loop, in processor time, and the memory are those of all of it.
"""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from benchmarks.calls import TIMED
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table
from benchmarks.latency import post
from tests.commands import PATIENCE, Watch

NAME, ITEMS = "made", 2
CALLS = ("/metrics", *(f"/api/v1/{path}?benchmark={NAME}" for path in ("board", "pairs", "items", "surprises")))


def measure(options: Options) -> Iterator[Table]:
    """Fold the board some times, each in a new process."""
    models = options.size(5_000, 300)
    table = Table(
        f"First {ITEMS} items of {models:,} models in a trusted order, each row a process of its own",
        ["fold s", "probes", "healthz ms, p50", "healthz ms, most", "longest callback, ms", "metrics s", "MB"],
        notes=["Longest callback 0: none took 20 ms."],
    )
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder:
            callbacks = Path(folder) / "callbacks.txt"
            callbacks.touch()
            with Watch(Path(folder) / "data", command=TIMED, fresh=True, LONG_CALLBACKS=str(callbacks)) as watch:
                table.rows.append(folded(watch, models, callbacks))
    yield table


def folded(watch: Watch, models: int, callbacks: Path) -> tuple[float, ...]:
    """Post the board to a `watch`; return a row of the table."""
    url = watch.url
    begin = time.perf_counter()
    post(url, lines(models))
    waits: list[float] = []
    done = threading.Event()

    def probe() -> None:
        while not done.is_set():
            waits.append(answer_seconds(f"{url}/healthz"))

    prober = threading.Thread(target=probe)
    prober.start()
    while folded_events(url) < ITEMS * models:
        time.sleep(0.05)
    taken = time.perf_counter() - begin
    done.set()
    prober.join()
    metrics = answer_seconds(url + CALLS[0])
    for call in CALLS[1:]:
        answer_seconds(url + call)
    status = Path(f"/proc/{watch.process.pid}/status").read_text(encoding="utf-8")
    megabytes = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1e3
    longest = max((float(line.split()[0]) for line in callbacks.read_text(encoding="utf-8").splitlines()), default=0.0)
    return (
        round(taken, 1),
        len(waits),
        round(1e3 * statistics.median(waits), 1),
        round(1e3 * max(waits), 1),
        round(1e3 * longest),
        round(metrics, 1),
        round(megabytes),
    )


def lines(models: int) -> list[bytes]:
    """Return the declaration and all scores."""
    scores = (
        {"benchmark": NAME, "item_id": str(k), "model": f"m{m}", "score": m * (3 + k) % 7 % 2}
        for k in range(ITEMS)
        for m in range(models)
    )
    return [declaration(NAME, order="trusted"), *(json.dumps(each).encode() for each in scores)]


def folded_events(url: str) -> int:
    """Return how many events of the board are folded."""
    with urlopen(f"{url}/api/v1/summaries", timeout=PATIENCE) as answer:
        return sum(each["events"] for each in json.load(answer))


def answer_seconds(url: str) -> float:
    """Return the seconds until a call is answered, also where it is refused: so many pairs have no matrix."""
    begin = time.perf_counter()
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            answer.read()
    except HTTPError as refused:
        if refused.code not in {409, 422}:
            raise
    return time.perf_counter() - begin
