"""`gate --check`: what a gate can know before its first call."""

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from monitor.cli.gates.margins import parse_margin
from monitor.cli.gates.options import GateFormat
from monitor.cli.shared.declared.flags import parse_flags
from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.files import read_runs
from monitor.cli.shared.options import DeclareOptions, ScoreOptions
from monitor.files.dated_runs import DatedRuns, Run
from monitor.files.streams.paths import show
from monitor.render import markdown
from monitor.render.gates import check as render
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.tables import group
from monitor.view.gates.check import Answers, Known, check_gate
from schemas.records.names import natural
from schemas.records.text import shorten
from schemas.results.gate_check import GateCheck

_FORMATS = (GateFormat.text, GateFormat.json, GateFormat.markdown)
_FLAGS = ("alpha", "items", "repeats")


def check(
    paths: Sequence[str],
    logs: ScoreOptions,
    declared: DeclareOptions,
    margin: str | None,
    baseline: str | None,
    benchmarks: Sequence[str],
    form: GateFormat,
    max_rejected: float,
    *,
    run_anyway: bool,
) -> NoReturn:
    """Print what a gate can show; exit with 2 where equal answers cannot pass."""
    size = absolute_margin("--check", margin)
    if form not in _FORMATS:
        stop(f"--check: is written as {', '.join(each.value for each in _FORMATS)}; omit --format {form.value}", USAGE)
    flags = parse_flags(declared)
    if others := sorted(set(flags.values) - set(_FLAGS)):
        stop(f"--check: takes --alpha, --items and --repeats of a declaration; omit --{others[0]}", USAGE)
    # Every file is a run: what differs between two of them is noise, not a conflict.
    runs = DatedRuns(str, by_file=True)
    known = _known(read_runs(paths, logs, max_rejected, runs, models=True), baseline, benchmarks) if paths else None
    name = known.benchmark if known else one_benchmark("--check", benchmarks, benchmarks or [""])
    given = flags.of(name)
    number = given.get("repeats")
    if number == "all":
        stop("--repeats all: --check needs the number of repeats of one run", USAGE)
    found = check_gate(known, size, given.get("alpha", runs.alphas.get(name, 0.05)), given.get("items"), number)
    _print(found, form)
    raise SystemExit(0 if run_anyway and found.attainable == "only_wins" else found.exit_code)


def absolute_margin(flag: str, text: str | None) -> float:
    """Return a margin in score units; a share of an unknown score ends the command."""
    if text is None:
        stop(f"{flag}: needs --margin, the loss that you accept; add for example --margin 0.02", USAGE)
    margin = parse_margin(text)
    if margin.relative:
        stop(f"{flag} {text}: give the margin in score units, for example --margin 0.02", USAGE)
    return margin.size


def one_benchmark(flag: str, benchmarks: Sequence[str], names: Sequence[str]) -> str:
    """Return the one benchmark to look at."""
    if unknown := [each for each in benchmarks if each not in names]:
        stop(f"--benchmark {show(unknown[0])} is not in the files; choose one of {first_names(names)}", USAGE)
    if len(chosen := [*dict.fromkeys(benchmarks)] or names) > 1:
        stop(f"{flag}: looks at one benchmark; choose one with --benchmark: {first_names(chosen)}", USAGE)
    return chosen[0]


def _known(runs_read: DatedRuns, baseline: str | None, benchmarks: Sequence[str]) -> Known:
    found = runs_read.sentinels()
    benchmark = one_benchmark("--check", benchmarks, sorted({benchmark for benchmark, _ in found}, key=natural))
    models = sorted((model for name, model in found if name == benchmark), key=natural)
    if baseline is None and len(models) > 1:
        stop(
            f"--check: {shorten(benchmark)} has several models; choose one with --baseline: {first_names(models)}",
            USAGE,
        )
    model = baseline or models[0]
    if model not in models:
        stop(f"the baseline {show(model)} has no results; {name_hint([model], models, 'the files have')}", USAGE)
    runs = found[benchmark, model][0]
    if copy := runs_read.copied(runs):
        note(
            f"{show(copy[0])}: {show(copy[1])} has all that it has; a copy is no run, and shows less noise than there is"
        )
    if not (answers := answers_of(runs)):
        stop(f"the baseline {show(model)} has no score on {shorten(benchmark)}; give results with scores")
    counts = [len(scores) for run in runs for scores in run.fresh.values()]
    others = [answers_of(found[benchmark, other][0]) for other in models if other != model]
    repeats = max(1, round(len(counts) / sum(1 / count for count in counts)))
    return Known(benchmark, model, answers, repeats, [each for each in others if each])


def answers_of(runs: Sequence[Run]) -> Answers:
    """Return the scores of each case, one a run and repeat."""
    answers: dict[str, list[float]] = {}
    for run in runs:
        for item, scores in run.fresh.items():
            answers.setdefault(item, []).extend(each.score for each in scores.values())
    return answers


def _print(found: GateCheck, form: GateFormat) -> None:
    if form is GateFormat.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif form is GateFormat.markdown:
        print(markdown.write(render.document(found)), end="")
    else:
        output_console().print(group(render.document(found)))
