"""Run each compiled loop once, before anybody waits for it, and check whether the loops are compiled."""

import json
from typing import Any, Final

from monitor.engine.chunk_fold import Partition
from monitor.engine.loop.compiled import cache_folder, mode
from monitor.engine.state.benchmark import Benchmark
from monitor.service.doctor.finding import Finding, ok, warning
from schemas.records.chunks import Chunk

_ITEMS: Final = [str(k) for k in range(4)]
_POLICIES: Final = (
    {"order": "trusted"},
    {"order": "completion", "items": 4},
    {"order": {"policy": "committed", "seed": "s"}, "item_ids": _ITEMS},
    {"order": "completion", "items": 4, "scores": "graded", "missing": "ignorable"},
)
_BATTLE: Final = {"benchmark": "b", "item_id": "0", "model_a": "a", "model_b": "b", "winner": "a"}


def load_loops() -> None:
    """Load the compiled loops: the first event would hold up the event loop for 0.3 s. Without a cache nothing is compiled here."""
    if mode() == "compiled" and (cache_folder() / "complete").is_file():
        run_loops()


def run_loops() -> None:
    """Fold a few events under each policy, and battles."""
    scores = [(item, model) for model in ("a", "b") for item in _ITEMS]
    for policy in _POLICIES:
        events = [{"benchmark": "b", "item_id": item, "model": model, "score": 1} for item, model in scores]
        mixed = {"benchmark": "b", "item_id": "0", "model": "c", "score": 0.5}
        benchmark = _folded({"declare": "b", **policy}, *events, mixed, {"ended": "b"})
        if benchmark.committed is not None:
            benchmark.loop.rebuild(benchmark.item_codes())
    _folded({"declare": "b", "order": "trusted", "repeats": "all"}, _BATTLE, {"ended": "b"})


def _folded(*records: dict[str, Any]) -> Benchmark:
    """Fold records of one benchmark, and return it."""
    partition, encoded = Partition(), [json.dumps(each).encode() for each in records]
    partition.fold(Chunk(0, 0, len(encoded), range(len(encoded)), encoded))
    return partition.benchmarks["b"]


_SUBJECT = "fold"


def check_loops() -> Finding:
    """Return how scores under an order policy are folded."""
    if mode() == "interpreted":
        fact = "the loops over events run as Python, at some 20,000 events a second: Numba is not installed"
        return warning(_SUBJECT, fact, "pip install 'rankwatch[fast]'; verdicts stay the same")
    folder = cache_folder()
    if not (folder / "complete").exists():
        fact = f"the loops over events are not compiled yet, which the first fold waits for; they are kept in {folder}"
        return warning(_SUBJECT, fact, "run python -m monitor.compile_loops once, with this Python")
    return ok(_SUBJECT, "the loops over events are compiled")
