"""The pair of models that a command line names."""

from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import FAULT, USAGE, stop
from monitor.files.streams.paths import show
from schemas.results.report import BenchmarkReport, PairReport, Report


def choose_pair(
    report: Report, models: tuple[str, str], name: str | None, *, sharing_items: bool = False
) -> tuple[BenchmarkReport, PairReport]:
    """Return a pair and its benchmark; names that fit none, or several, end the command."""
    if models[0] == models[1]:
        stop(f"--pair names {show(models[0])} twice; name two different models", USAGE)
    benchmarks = [b for b in report.benchmarks if name in {None, b.benchmark}]
    if not benchmarks:
        known = first_names([b.benchmark for b in report.benchmarks])
        stop(f"--benchmark {show(name or '')} is not in the files; choose one of {known}", USAGE)
    with_both = [b for b in benchmarks if {m.model for m in b.models} >= set(models)]
    if not with_both:
        known_models = {m.model for b in benchmarks for m in b.models}
        missing = [model for model in models if model not in known_models]
        if not missing:
            stop(
                "no benchmark has results of both models; give the files of both runs",
                USAGE if sharing_items else FAULT,
            )
        hint = name_hint(missing, known_models, "the files have")
        stop(f"--pair: the files have no model {first_names(missing)}; {hint}", USAGE)
    pairs = {b.benchmark: (b, next(p for p in b.pairs if {p.model_a, p.model_b} == set(models))) for b in with_both}
    if sharing_items:
        pairs = {name: (b, p) for name, (b, p) in pairs.items() if p.n}
    if not pairs:
        stop(
            f"--pair: {first_names(models)} share no items in {first_names([b.benchmark for b in with_both])}; compare two that do",
            USAGE,
        )
    if len(pairs) > 1:
        stop(
            f"{len(pairs)} benchmarks have results of both models; choose one with --benchmark: {first_names(list(pairs))}",
            USAGE,
        )
    return next(iter(pairs.values()))
