"""A closed latch as the entry that leaves the engine: pair in name order, evidence, an id that is the same on every replay."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

import numpy as np

from monitor.engine.latch.base import STATISTICS_VERSION, Crossing
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.graded import GRADED_MIXTURE
from schemas.changes import Evidence, Kind, Procedure, Side, VerdictChange
from schemas.sentences import ASSUMPTIONS, SCOPES
from stats.resolution import required_n, resolution_ratio

_PAIR_BITS: Final = 35
_CODE_BITS: Final = 3
_CODES: Final = {
    ("anytime", "decided"): 0,
    ("anytime_family", "decided"): 1,
    ("anytime", "reversed"): 2,
    ("anytime_family", "reversed"): 3,
    ("anytime", "invalidated"): 4,
    ("anytime_family", "invalidated"): 5,
}


def resolution_ratios(benchmark: Benchmark, crossings: Sequence[Crossing]) -> list[float | None]:
    """Return q = n / N* of each pair at its crossing; None where it does not exist, and for graded scores."""
    if benchmark.graded or not crossings:
        return [None] * len(crossings)
    n, b, c = np.array([(x.n, x.b, x.c) for x in crossings], np.int64).reshape(-1, 3).T
    ratios = resolution_ratio(n, required_n(n, b, c, benchmark.spec.alpha, benchmark.spec.power))
    return [q if q > 0 and isfinite(q) else None for q in ratios.tolist()]


def describe(
    benchmark: Benchmark, crossing: Crossing, ratio: float | None, offset: int, index: int
) -> tuple[str, VerdictChange]:
    """Turn a crossing into its field in the table of latches and the verdict change.

    The id is made of the record's offset, the event's index in the record, the pair and the kind alone: a function of the log. `ratio` is
    the pair's q, of `resolution_ratios`.
    """
    first, second = benchmark.contestants[crossing.i], benchmark.contestants[crossing.j]
    swap = first > second
    a, b_side = (second, first) if swap else (first, second)
    wins, losses = (crossing.c, crossing.b) if swap else (crossing.b, crossing.c)
    side: Side = "a" if (crossing.side > 0) != swap else "b"
    other: Side = "b" if side == "a" else "a"
    decided = crossing.kind == "decided"
    graded = benchmark.graded
    gap = (-1 if swap else 1) * crossing.lead / (crossing.n * (benchmark.unit if graded else 1))
    change = VerdictChange(
        id=_identity(offset, index, crossing.pair, crossing.procedure, crossing.kind),
        benchmark=benchmark.name,
        model_a=a.model,
        model_b=b_side.model,
        epoch_a=a.epoch,
        epoch_b=b_side.epoch,
        kind=_kind(crossing.kind),
        procedure=_procedure(crossing.procedure),
        before=None if decided else other,
        after=side,
        order_policy=benchmark.spec.order.policy,
        mixture=GRADED_MIXTURE if graded else benchmark.spec.mixture,
        statistics_version=STATISTICS_VERSION,
        evidence=Evidence(
            n=crossing.n,
            b=None if graded else wins,
            c=None if graded else losses,
            gap=gap,
            missing=crossing.missing,
            log_e=crossing.log_e,
            log_threshold=crossing.log_threshold,
            resolution_ratio=ratio,
        ),
        sentence=_sentence(benchmark, crossing, (a.model, b_side.model) if side == "a" else (b_side.model, a.model)),
    )
    return f"{crossing.pair}:{crossing.procedure}:{crossing.kind}", change


def describe_invalidated(benchmark: Benchmark, offset: int, index: int, broken: str) -> list[tuple[str, VerdictChange]]:
    """Return the changes, with their fields, by which every decision of a benchmark is taken back at an event."""
    found = []
    for field in [field for field in benchmark.changes if field.endswith(":decided")]:
        pair, procedure, _ = field.split(":")
        decided = benchmark.changes[field]
        update = {
            "id": _identity(offset, index, int(pair), procedure, "invalidated"),
            "kind": "invalidated",
            "before": decided.after,
            "after": None,
            "sentence": f"The decision between {decided.model_a} and {decided.model_b} on {benchmark.name} ({SCOPES[procedure]}) no longer "
            f"counts: {broken}.",
        }
        found.append((f"{pair}:{procedure}:invalidated", decided.model_copy(update=update)))
    return sorted(found, key=lambda entry: (int(entry[0].split(":")[0]), entry[0]))


def _identity(offset: int, index: int, pair: int, procedure: str, kind: str) -> str:
    code = _CODES[procedure, kind]
    return f"{offset}-{(index << (_PAIR_BITS + _CODE_BITS)) | (pair << _CODE_BITS) | code}"


def _kind(kind: str) -> Kind:
    return "decided" if kind == "decided" else "reversed"


def _procedure(procedure: str) -> Procedure:
    return "anytime" if procedure == "anytime" else "anytime_family"


def _sentence(benchmark: Benchmark, crossing: Crossing, ranked: tuple[str, str]) -> str:
    better, worse = ranked
    wins, losses = max(crossing.b, crossing.c), min(crossing.b, crossing.c)
    scope = SCOPES[crossing.procedure]
    assumption = ASSUMPTIONS[benchmark.spec.order.policy]
    if crossing.kind == "reversed":
        by = f"by {_mean_gap(benchmark, crossing)}" if benchmark.graded else f"{wins:,} to {losses:,}"
        return (
            f"The gap on {benchmark.name} has turned after the decision ({scope}): {better} now leads {worse}, {by} on "
            f"{crossing.n:,} shared items. The decision stands as it was made; look at what changed."
        )
    left = ""
    if crossing.missing:
        kind = "skipped" if benchmark.spec.order.policy == "committed" else "missing"
        left = f" even if all {crossing.missing:,} {kind} items went the other way"
    if benchmark.graded:
        return (
            f"{better} is better than {worse} on {benchmark.name}, decided {scope}: on {crossing.n:,} shared items its mean score is "
            f"higher by {_mean_gap(benchmark, crossing)}{left}. Assumes that {assumption}."
        )
    return (
        f"{better} is better than {worse} on {benchmark.name}, decided {scope}: of {crossing.n:,} shared items it alone has {wins:,} "
        f"right, {worse} alone {losses:,}{left}. Assumes that {assumption}."
    )


def _mean_gap(benchmark: Benchmark, crossing: Crossing) -> str:
    return f"{abs(crossing.lead) / (crossing.n * benchmark.unit):.4g}"
