"""The pair of models that a command line names."""

from collections.abc import Iterable
from difflib import get_close_matches

from monitor.cli.shared.errors import FAULT, USAGE, stop
from monitor.ingest.files.paths import show
from schemas.report import BenchmarkReport, PairReport, Report

_LISTED_NAMES = 10


def choose_pair(
    report: Report, models: tuple[str, str], name: str | None, *, unshared: int = FAULT
) -> tuple[BenchmarkReport, PairReport]:
    """Return a pair and its benchmark; names that fit none, or several, end the command.

    Parameters
    ----------
    report : Report
        Of all pairs.
    models : (str, str)
    name : str or None
        Of the benchmark.
    unshared : int
        Exit code if each model has results, but in no benchmark both.
    """
    if models[0] == models[1]:
        stop(f"--pair names {show(models[0])} twice; name two different models", USAGE)
    benchmarks = [b for b in report.benchmarks if name in {None, b.benchmark}]
    if not benchmarks:
        known = _join(b.benchmark for b in report.benchmarks)
        stop(f"--benchmark {show(name or '')} is not in the files; choose one of {known}", USAGE)
    with_both = [b for b in benchmarks if {m.model for m in b.models} >= set(models)]
    if len(with_both) > 1:
        names = _join(b.benchmark for b in with_both)
        stop(f"{len(with_both)} benchmarks have results of both models; choose one with --benchmark: {names}", USAGE)
    if not with_both:
        known_models = sorted({m.model for b in benchmarks for m in b.models})
        missing = [model for model in models if model not in known_models]
        if not missing:
            stop("no benchmark has results of both models; give the files of both runs", unshared)
        similar = [match for model in missing for match in get_close_matches(model, known_models, 3)]
        hint = f"did you mean {_join(similar)}?" if similar else f"the files have {_join(known_models)}"
        stop(f"--pair: the files have no model {_join(missing)}; {hint}", USAGE)
    benchmark = with_both[0]
    return benchmark, next(p for p in benchmark.pairs if {p.model_a, p.model_b} == set(models))


def _join(names: Iterable[str]) -> str:
    shown = [show(name) for name in names]
    rest = len(shown) - _LISTED_NAMES
    return ", ".join(shown[:_LISTED_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")
