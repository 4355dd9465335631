"""The question of a gate with a margin: its candidates, their baseline, the margin and prices, from the command line."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from monitor.cli.gates.readings import Reading
from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.files.streams.paths import show
from monitor.view.board import BoardView
from monitor.view.build import ReportView, report_views
from monitor.view.gates.comparison import compare_with_margin
from monitor.view.gates.gate import holm_ratios
from monitor.view.gates.margin import Margin
from monitor.view.gates.reasons import with_facts
from monitor.view.items.hardness import rerun_difference
from monitor.view.kinds.kind import kind_of
from monitor.words.reading import first
from schemas.records.goals import LEAST_MARGIN
from schemas.records.names import natural
from schemas.records.text import shorten
from schemas.results.gate import ConflictRule, GateComparison
from schemas.results.reasons import Reason, fact
from schemas.results.report import BenchmarkReport


def parse_margin(text: str) -> Margin:
    """Parse `0.02`, in score units, or `2%`, of the baseline's score; anything else ends the command."""
    number, relative = (text[:-1], True) if text.endswith("%") else (text, False)
    try:
        size = float(number) / (100 if relative else 1)
    except ValueError:
        size = 0.0
    if not (isfinite(size) and LEAST_MARGIN <= size < 1):
        stop(
            f"--margin {shorten(text)}: give a difference of scores from {LEAST_MARGIN} to below 1 (0.02 is 2 points), or a share of "
            "the baseline's score (2%)",
            USAGE,
        )
    return Margin(size, relative)


def compare(
    readings: Sequence[Reading],
    candidates: Sequence[str],
    baseline: str,
    benchmarks: Sequence[str],
    margin: Margin,
    rule: ConflictRule,
) -> list[GateComparison]:
    """Compare candidates with a baseline on each benchmark that both have; names that fit nothing end the command."""
    views = [
        (view, each.metrics[view.report.benchmark])
        for each in readings
        for view in report_views(each.boards, pairs="all", assert_complete=True, model=baseline)
        if view.report.benchmark in each.metrics
    ]
    known = list(dict.fromkeys(view.report.benchmark for view, _ in views))
    if unknown := [name for name in benchmarks if name not in known]:
        stop(f"--benchmark {show(unknown[0])} is not in the files; choose one of {first_names(known)}", USAGE)
    views = [view for view in views if not benchmarks or view[0].report.benchmark in benchmarks]
    models = {model.model: None for view, _ in views for model in view.report.models}
    runs = "" if len(models) > 1 else "; give the two runs names of their own, as NAME=PATH"
    for flag, name in [("the baseline", baseline), *(("the candidate", name) for name in candidates)]:
        if name not in models:
            stop(f"{flag} {show(name)} has no results; {name_hint([name], models, 'the files have')}{runs}", USAGE)
    if baseline in candidates:
        stop(
            f"{show(baseline)} is the baseline and a candidate; name two different models, or the runs as NAME=PATH",
            USAGE,
        )
    chosen = list(dict.fromkeys(candidates)) or sorted(models.keys() - {baseline}, key=natural)
    if not chosen:
        stop(f"the files have no model but the baseline {show(baseline)}; add the candidate's results", USAGE)
    comparisons = [each for view, metric in views for each in _compare(view, metric, chosen, baseline, margin, rule)]
    if not comparisons:
        stop("no benchmark has results of the baseline and a candidate; give the files of both runs")
    if absent := [name for name in chosen if name not in {each.candidate for each in comparisons}]:
        stop(f"{first_names(absent)} and the baseline have no benchmark in common; give the files of both runs", USAGE)
    return comparisons


def stop_incomplete(report: BenchmarkReport) -> None:
    """End a gate on a benchmark of which a file breaks off, or was refused: its scores are not all there."""
    if report.incomplete:
        stop(f"{report.incomplete}; complete the file, and run the command again")
    if report.refused:
        stop(f"{show(report.refused[0].path)} was refused ({report.refused[0].reason}); {report.refused[0].remedy}")


def _compare(
    view: ReportView, metric: str | None, candidates: Sequence[str], baseline: str, margin: Margin, rule: ConflictRule
) -> list[GateComparison]:
    report = view.report
    here = {model.model for model in report.models}
    name = shorten(report.benchmark) if metric is None else f"{shorten(report.benchmark)} ({shorten(metric)})"
    if baseline not in here:
        if here & set(candidates):
            note(f"{name}: the baseline has no results there, so nothing is compared")
        return []
    stop_incomplete(report)
    check_items(name, view.table.benchmark)
    if absent := [model for model in candidates if model not in here]:
        note(f"{name}: no results of {first_names(absent)}: not compared there")
    pairs = {frozenset((pair.model_a, pair.model_b)): pair for pair in report.pairs if pair.status != "superseded"}
    return [
        compare_with_margin(view.table, pairs[frozenset((model, baseline))], model, baseline, margin, rule).replace(
            metric=metric, notes=first(report)
        )
        for model in candidates
        if model in here
    ]


def check_items(benchmark: str, board: BoardView) -> None:
    """End the command if a margin has no meaning for the scores of a benchmark."""
    if what := kind_of(board).marginless:
        fix = {"weights": "omit --weights, or compare"}.get(what, "compare")
        stop(
            f"{shorten(benchmark)}: a margin is not available with {what}; {fix} two models without a margin (--pair A B)",
            USAGE,
        )


def hold_for_rerun(
    comparisons: Sequence[GateComparison], readings: Sequence[Reading], rerun: str
) -> list[GateComparison]:
    """Hold the comparisons on benchmarks where a second run of the baseline differs from the first by more than the noise of repeats."""
    checked = []
    benchmarks = [
        next(r.boards[each.benchmark] for r in readings if r.metrics.get(each.benchmark, "") == each.metric)
        for each in comparisons
    ]
    models = {contestant.model for benchmark in benchmarks for contestant in benchmark.contestants}
    if rerun in {each.candidate for each in comparisons}:
        stop(f"--rerun {show(rerun)} is the candidate; name another run of the baseline", USAGE)
    if rerun not in models or rerun == comparisons[0].baseline:
        stop(
            f"--rerun {show(rerun)}: name another run of the baseline; the files have {first_names(sorted(models, key=natural))}",
            USAGE,
        )
    ratios = {
        each.where: rerun_difference(benchmark, each.baseline, rerun) / each.alpha
        for each, benchmark in zip(comparisons, benchmarks, strict=True)
        if any(contestant.model == rerun for contestant in benchmark.contestants)
    }
    # Every benchmark is a chance of a false alarm.
    adjusted = dict(zip(ratios, holm_ratios(np.array([*ratios.values()])).tolist(), strict=True)) if ratios else {}
    for name in dict.fromkeys(each.where for each in comparisons if each.where not in adjusted):
        note(f"{shorten(name)}: no results of the second run {show(rerun)}: its noise is not checked there")
    for each in comparisons:
        if each.where not in adjusted:
            checked.append(each)
            continue
        p = min(1.0, adjusted[each.where] * each.alpha)
        of = {"baseline": each.baseline, "rerun": rerun, "p": p, "benchmarks": len(adjusted)}
        if p > each.alpha:
            checked.append(with_facts(each, [*each.facts, fact(Reason.RERUN_AGREES, **of)]))
        else:
            held = with_facts(each, [fact(Reason.RERUN_DIFFERS, **of)])
            checked.append(held.replace(verdict="held"))
    return checked


def check_prices(
    prices: Mapping[str, float] | None, named: Sequence[str], candidates: Sequence[str], baseline: str
) -> None:
    """End the command if a price named on the command line is of no candidate, or a candidate has none; a table may have more models."""
    if prices is None:
        return
    candidates = list(dict.fromkeys(candidates))
    if unknown := [name for name in named if name not in {*candidates, baseline}]:
        stop(
            f"--price {show(unknown[0])}: no candidate has this name; the candidates are {first_names(sorted(candidates, key=natural))}",
            USAGE,
        )
    if absent := sorted(set(candidates) - prices.keys()):
        stop(
            f"{first_names(absent)} {'has' if len(absent) == 1 else 'have'} no price; give one with --price MODEL=PRICE",
            USAGE,
        )


def parse_outputs(entries: Iterable[str], formats: Sequence[str]) -> list[tuple[str, Path]]:
    """Parse `FORMAT=FILE`; a wrong one ends the command."""
    outputs = []
    for entry in entries:
        form, equals, file = entry.partition("=")
        if not equals or not file or form not in formats:
            stop(f"--write {shorten(entry)}: use FORMAT=FILE, where FORMAT is one of {', '.join(formats)}", USAGE)
        outputs.append((form, Path(file)))
    return outputs


def write_outputs(outputs: Iterable[tuple[Path, str]]) -> None:
    """Write texts to files, or to standard output for `-`."""
    for file, text in outputs:
        lines = text if text.endswith("\n") else f"{text}\n"
        try:
            if str(file) == "-":
                sys.stdout.write(lines)
            else:
                file.write_text(lines, encoding="utf-8")
        except OSError as error:
            stop(file_error(error, file))
