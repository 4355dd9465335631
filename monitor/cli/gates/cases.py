"""`gate --per-case`: each case against a floor, by its repeats."""

from collections.abc import Sequence
from typing import NoReturn

from monitor.cli.gates.checks import answers_of, one_benchmark
from monitor.cli.gates.margins import parse_outputs, write_outputs
from monitor.cli.gates.options import GateFormat
from monitor.cli.shared.declared.flags import parse_flags
from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import read_runs, refuse_copies
from monitor.cli.shared.options import DeclareOptions, ScoreOptions
from monitor.files.dated_runs import DatedRuns, Run
from monitor.files.streams.paths import show
from monitor.render.gates.cases import RENDERERS, document
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.tables import group
from monitor.view.gates.cases import judge_cases
from schemas.records.names import natural
from schemas.records.text import shorten


def gate_cases(
    paths: Sequence[str],
    logs: ScoreOptions,
    declared: DeclareOptions,
    floor: float,
    k: int,
    candidates: Sequence[str],
    baseline: str | None,
    benchmarks: Sequence[str],
    form: GateFormat,
    on_undecided: str,
    write: Sequence[str],
    max_rejected: float,
    *,
    equal_runs: bool,
) -> NoReturn:
    """Print which cases reach a floor; the exit code is the verdict."""
    if not 0 < floor < 1:
        stop(f"--per-case {floor:g}: give a share of right answers between 0 and 1, for example 0.8", USAGE)
    if form is not GateFormat.text and form.value not in RENDERERS:
        stop(f"--per-case: is written as text, {', '.join(RENDERERS)}; omit --format {form.value}", USAGE)
    outputs = parse_outputs(write, [*RENDERERS])
    if not paths:
        stop("missing PATH: give the results of the candidate, with several repeats or a file a run", USAGE)
    flags = parse_flags(declared)
    if others := sorted(set(flags.values) - {"alpha"}):
        stop(f"--per-case: takes --alpha of a declaration; omit --{others[0]}", USAGE)
    # Every file is a run: a case has the answers of all of them.
    runs = DatedRuns(str, by_file=True)
    found = read_runs(paths, logs, max_rejected, runs, models=True).sentinels()
    benchmark = one_benchmark("--per-case", benchmarks, sorted({of for of, _ in found}, key=natural))
    models = {model: of for (name, model), (of, _) in found.items() if name == benchmark}
    candidate = _candidate(models, candidates, baseline)
    for model in (candidate, baseline):
        refuse_copies(runs, models.get(model or "", ()), equal_runs=equal_runs)
    answers, old = (_whole(models.get(model, ()), model) for model in (candidate, baseline or ""))
    if not answers:
        stop(f"{show(candidate)} has no score on {shorten(benchmark)}; give results with scores")
    judged = judge_cases(
        benchmark,
        candidate,
        answers,
        floor,
        k,
        flags.of(benchmark).get("alpha", runs.alphas.get(benchmark, 0.05)),
        on_undecided,  # type: ignore[arg-type]  # a value of the option
        baseline=baseline,
        old=old,
        skipped=sum(run.skipped for run in models[candidate]) + runs.rejected,
        conflicts=sum(run.conflicts for run in models[candidate]),
        equal_runs=equal_runs,
    )
    write_outputs((file, RENDERERS[name](judged)) for name, file in outputs)
    if form is GateFormat.text:
        output_console().print(group(document(judged)))
    else:
        text = RENDERERS[form.value](judged)
        print(text, end="" if text.endswith("\n") else "\n")
    raise SystemExit(judged.exit_code)


def _candidate(models: dict[str, list[Run]], candidates: Sequence[str], baseline: str | None) -> str:
    """Return the model to judge; names that fit nothing end the command."""
    for model in (*candidates, *([baseline] if baseline is not None else [])):
        if model not in models:
            stop(f"{show(model)} has no results; {name_hint([model], models, 'the files have')}", USAGE)
    if baseline in candidates:
        stop(f"{show(baseline or '')} is the baseline and a candidate; name two different models", USAGE)
    chosen = [*dict.fromkeys(candidates)] or sorted(models.keys() - {baseline}, key=natural)
    if len(chosen) != 1:
        which = f"choose one with --candidate: {first_names(chosen)}" if chosen else "the files have the baseline alone"
        stop(f"--per-case: judges one model; {which}", USAGE)
    return chosen[0]


def _whole(runs: Sequence[Run], model: str) -> dict[str, list[float]]:
    """Return the answers of each case; a score between 0 and 1 is no right or wrong answer, and ends the command."""
    answers = {case: [*scores] for case, scores in answers_of(runs).items()}
    if odd := next((case for case, scores in answers.items() if not {*scores} <= {0, 1}), None):
        stop(
            f"--per-case: {show(model)} has a score between 0 and 1 on {show(odd)}; it counts right answers, 0 or 1",
            USAGE,
        )
    return answers
