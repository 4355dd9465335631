"""`rankwatch plan`: how many items to collect."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monitor.cli.errors import USAGE, stop

if TYPE_CHECKING:
    from monitor.report.planning import Likeness
    from schemas.report import BenchmarkReport, PairReport


class Wanted(NamedTuple):
    """What was asked for, as it stood on the command line."""

    gap: float | None
    accuracy: float | None
    rho: float | None
    discordance: float | None
    pilot: Path | None
    pair: tuple[str, str] | None
    benchmark: str | None
    items: int | None
    family: int
    design_effect: float | None
    alpha: float
    power: float
    mixture: str


def run(wanted: Wanted, form: str) -> None:
    """Plan and print."""
    from monitor.render.terminal.plan import render_plan
    from monitor.report.planning import plan_items

    likeness, source, gap, effect = _likeness(wanted)
    if gap is None and wanted.items is None:
        stop(
            "say what for: --gap 0.02 for the items that a gap of 2 points needs, --items N for the gap that N items detect",
            USAGE,
        )
    try:
        planned = plan_items(
            likeness,
            gap=gap,
            items=wanted.items,
            family=wanted.family,
            design_effect=effect,
            alpha=wanted.alpha,
            power=wanted.power,
            mixture=wanted.mixture,
        )
    except ValueError as error:
        stop(str(error), USAGE)
    shown = render_plan(planned, source, as_json=form == "json")
    if isinstance(shown, str):
        print(shown)
        return
    from monitor.render.terminal.report import output_console

    output_console().print(shown)


def _likeness(wanted: Wanted) -> "tuple[Likeness, str, float | None, float | None]":
    """Return how alike the models are, who says so, the target gap and the design effect."""
    from monitor.report.planning import Likeness

    ways = [
        wanted.accuracy is not None or wanted.rho is not None,
        wanted.discordance is not None,
        wanted.pilot is not None,
    ]
    if sum(ways) != 1:
        stop(
            "say how alike the two models are, in one way: --accuracy and --rho, --discordance, or --pilot PATH --pair A B",
            USAGE,
        )
    if wanted.pilot is not None:
        return _pilot(wanted, wanted.pilot)
    if wanted.pair is not None or wanted.benchmark is not None:
        stop("--pair and --benchmark choose from a --pilot: give its path too", USAGE)
    if wanted.discordance is not None:
        return Likeness(discordance=wanted.discordance), "as given", wanted.gap, wanted.design_effect
    if wanted.accuracy is None or wanted.rho is None:
        stop(
            "--accuracy and --rho go together: the mean accuracy of the two models, and the correlation of their scores",
            USAGE,
        )
    return Likeness(wanted.accuracy, wanted.rho), "as given", wanted.gap, wanted.design_effect


def _pilot(wanted: Wanted, path: Path) -> "tuple[Likeness, str, float | None, float | None]":
    from monitor.cli.importing import Logs
    from monitor.cli.report import read_results
    from monitor.ingest.files.paths import show
    from monitor.report.build import build_report
    from monitor.report.planning import likeness_of

    if wanted.pair is None:
        stop("--pilot needs --pair A B: which two models are to be compared", USAGE)
    report = build_report([read_results([path], 0.1, Logs())], pairs="all", assert_complete=True)
    benchmark, pair = _found(report.benchmarks, wanted.pair, wanted.benchmark)
    if pair.b is None or pair.c is None:
        stop(f"{benchmark.benchmark}: a plan needs a pilot scored 0 or 1 on shared items", USAGE)
    likeness, gap = likeness_of(pair.n, pair.b, pair.c)
    source = f"{pair.n:,} items of {benchmark.benchmark} in {show(path)}"
    if wanted.gap is None and wanted.items is None:
        if not gap:
            stop(
                f"{pair.model_a} and {pair.model_b} show no gap in the pilot: give --gap, the gap that would matter",
                USAGE,
            )
        source += "; the target is the gap seen there, which a small pilot may well exaggerate"
        return likeness, source, gap, _effect(wanted, pair)
    return likeness, source, wanted.gap, _effect(wanted, pair)


def _effect(wanted: Wanted, pair: "PairReport") -> float | None:
    if wanted.design_effect is not None or pair.cluster is None:
        return wanted.design_effect
    return pair.cluster.design_effect


def _found(
    benchmarks: "list[BenchmarkReport]", names: tuple[str, str], only: str | None
) -> "tuple[BenchmarkReport, PairReport]":
    among = [b for b in benchmarks if only is None or b.benchmark == only]
    if not among:
        stop(f"--benchmark {only}: the pilot holds {', '.join(b.benchmark for b in benchmarks)}", USAGE)
    found = [
        (b, p)
        for b in among
        for p in b.pairs
        if {p.model_a, p.model_b} == set(names) and p.status != "superseded" and p.n
    ]
    if not found:
        models = sorted({m.model for b in among for m in b.models})
        shown = ", ".join(models[:10]) + (", ..." if len(models) > 10 else "")
        stop(f"--pair {' '.join(names)}: no items that both have scores for; the pilot has {shown}", USAGE)
    if len(found) > 1:
        stop(f"--pair {' '.join(names)}: in {', '.join(b.benchmark for b, _ in found)}: choose with --benchmark", USAGE)
    return found[0]
