"""`rankwatch gate`: compare models; the exit code is the verdict."""

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, get_args

import typer

from monitor.cli.gates.ages import check_age
from monitor.cli.gates.baselines import stored_baseline
from monitor.cli.gates.cases import gate_cases
from monitor.cli.gates.checks import check
from monitor.cli.gates.gated import NotRunError, RunCall, evaluate_gate
from monitor.cli.gates.margins import (
    check_prices,
    compare,
    hold_for_rerun,
    parse_margin,
    parse_outputs,
    stop_incomplete,
    write_outputs,
)
from monitor.cli.gates.options import (
    CheckOptions,
    Conflicts,
    Expected,
    GateFormat,
    MarginOptions,
    OnUndecided,
    RunOptions,
)
from monitor.cli.gates.readings import has_several_metrics, read_metrics
from monitor.cli.gates.replays import replay_gate
from monitor.cli.shared.declared.flags import parse_flags
from monitor.cli.shared.declared.pairs import choose_pair
from monitor.cli.shared.declared.prices import named_prices, parse_prices
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import (
    Resolution,
    benchmarks_in,
    find_files,
    make_importer,
    parse_epoch,
    read_results,
    stop_refused,
)
from monitor.cli.shared.labels import LabelOptions, check_label_options, check_labelled, read_labels
from monitor.cli.shared.options import (
    DeclareOptions,
    EpochOption,
    InheritOption,
    MaxRejectedOption,
    Paths,
    ScoreOptions,
    option,
)
from monitor.cli.shared.remote.places import StoredPlace
from monitor.files.streams.paths import STDIN, named_path, show
from monitor.render.gates import gate as render
from monitor.render.gates.margin import RENDERERS
from monitor.view.build import build_report
from monitor.view.gates.gate import gate_report
from monitor.view.gates.labels import corrected
from monitor.view.labels import labels_report
from monitor.view.pairs.table import PairTable
from monitor.words.flags import named_flags, pair_with_flags, with_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from monitor.cli.gates.readings import Reading
    from monitor.view.board import BoardView
    from monitor.view.labels import Labels
    from schemas.results.gate import ConflictRule, GateReport


GatePaths = Annotated[list[str] | None, *get_args(Paths)[1:]]


def gate(
    declared: DeclareOptions,
    logs: ScoreOptions,
    question: MarginOptions,
    before: CheckOptions,
    evaluation: RunOptions,
    stored: StoredPlace,
    people: LabelOptions,
    paths: GatePaths = None,
    pair: Annotated[
        tuple[str, str] | None, option("--pair", "the two models: candidate and baseline", metavar="A B")
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        option(
            "--benchmark",
            "benchmark to compare on, if several have both models; with --margin it may be repeated",
            metavar="NAME",
        ),
    ] = None,
    form: Annotated[
        GateFormat,
        typer.Option(
            "--format",
            help="text, json, a JUnit file, or a GitHub annotation; with --margin also markdown, html or svg",
        ),
    ] = GateFormat.text,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    max_rejected: MaxRejectedOption = 0.1,
    conflicts: Annotated[
        Conflicts,
        option(
            "--conflicts",
            "which score counts where an item has several: the worst for the candidate, or the first or last one read",
        ),
    ] = Conflicts.worst,
) -> None:
    """Compare models; the exit code is the verdict.

    Exit 0: decided for A. 4: decided for B. 3: undecided or held. 1: fault. 2: wrong usage. With --margin, exit 0: A is not worse than B by
    more than the margin. 4: A is worse. 3: undecided. There --metric, --scorer and --columns score=NAME may be repeated: each metric is
    compared as a benchmark. The verdict holds at the declared alpha (default 0.05) at one look at
    complete results; with --run you may look however often. Without a declaration, the items in the files are taken as the whole benchmark.

    With --server or --redis-url the scores of the baseline come from the board of a service; the paths are results of candidates.

    With --per-case, exit 0: every case reaches the floor. 4: a case is below it. 3: undecided.

    Example: rankwatch gate results/ --pair candidate baseline --margin 0.02
    """
    check_label_options(people)
    if before.check or before.replay is not None or before.per_case is not None:
        ignored = {
            "--labels": people.labels,
            "--epoch": epoch,
            "--inherit": inherit,
            "--conflicts": conflicts is not Conflicts.worst,
            "--baseline-max-age": question.max_age,
            "--baseline-refresh": question.refresh,
        }
        _check(
            paths or (), pair, benchmark or (), form, question, before, evaluation, stored, logs, declared, max_rejected,
            ignored,
        )  # fmt: skip
    _check_question(question, pair, benchmark, form, before, evaluation)
    if people.labels is not None and (evaluation.run is not None or has_several_metrics(logs)):
        stop("--labels: correct one metric of complete results; omit --run, and name one metric", USAGE)
    from_service = stored.server is not None or stored.redis_url is not None
    if not paths and not (from_service and evaluation.run is not None):
        stop("missing PATH: give the results of the candidate, and of the baseline unless it is on --server", USAGE)
    files = [*(paths or ())]
    if has_several_metrics(logs):
        _check_several_metrics(question, evaluation, files, from_service=from_service)
    baseline = pair[1] if pair is not None else question.baseline or ""
    _check_age(question, baseline, benchmark or (), files, logs, max_rejected, from_service=from_service)
    with ExitStack() as stack:
        if from_service:
            importer = make_importer(logs)
            names = benchmark or (
                sorted(benchmarks_in(find_files(importer, files), importer, max_rejected)) if files else []
            )
            # Ahead of the others: a benchmark begins with the declaration of its board.
            files.insert(0, str(stack.enter_context(stored_baseline(stored, baseline, names))))
        runs = parse_epoch(epoch, inherit=inherit)
        resolution = Resolution(conflicts.value, baseline)
        readings = read_metrics(
            logs,
            lambda chosen: read_results(
                files, max_rejected, chosen, declared, runs, inherit=inherit, resolution=resolution
            ),
        )
    for each in readings:
        stop_refused(each.boards.values())
    boards = readings[0].boards
    labels = read_labels(people, boards, [*(paths or ())], logs, max_rejected)
    if evaluation.run is not None:
        _run(
            boards,
            pair,
            benchmark or [],
            form,
            question,
            evaluation,
            logs,
            declared,
            max_rejected,
            anyway=before.run_anyway,
        )
    if question.margin is None:
        assert pair is not None
        _better(boards, pair, benchmark[0] if benchmark else None, form, conflicts.value, labels)
    else:
        _not_worse(readings, pair, benchmark or [], form, question, conflicts.value, labels)


def _check(
    paths: "Sequence[str]",
    pair: tuple[str, str] | None,
    benchmarks: "Sequence[str]",
    form: GateFormat,
    question: MarginOptions,
    before: CheckOptions,
    evaluation: RunOptions,
    stored: StoredPlace,
    logs: ScoreOptions,
    declared: DeclareOptions,
    max_rejected: float,
    ignored: "Mapping[str, object]",
) -> NoReturn:
    cases = before.per_case is not None
    asked = "--per-case" if cases else "--check" if before.check else "--replay"
    refused = {
        "--pass-k": before.pass_k is not None and not cases,
        "--equal-runs": before.equal_runs and asked == "--check",
        "--margin": question.margin is not None and cases,
        "--check and --replay": cases and (before.check or before.replay is not None),
        **ignored,
        "--run": evaluation.run,
        "--seed": evaluation.seed is not None,
        "--budget": evaluation.budget,
        "--block": evaluation.block,
        "--folder": evaluation.folder != RunOptions.folder,
        "--candidate": question.candidate and before.check,
        "--exact": evaluation.exact or evaluation.expect is not Expected.pass_,
        "--run-anyway": before.run_anyway and not before.check,
        "--on-undecided": question.on_undecided is not OnUndecided.wait and not cases,
        "--rerun": question.rerun,
        "--price": (question.price or question.prices) and before.replay is None,
        "--write": question.write and not cases,
        "--server and --redis-url": stored.server or stored.redis_url,
        "--token-file and --topic": stored.token_file or stored.topic,
        "several metrics": has_several_metrics(logs),
    }
    for flag, value in refused.items():
        if value:
            why = "judges each case of one model, in files" if cases else "looks at the gate before its run, in files"
            stop(f"{asked}: {why}; omit {flag}", USAGE)
    if pair is not None and question.baseline is not None:
        stop(f"{asked}: name the baseline once, with --pair A B or --baseline B", USAGE)
    baseline = question.baseline if pair is None else pair[1]
    candidates = (question.candidate or []) if pair is None else [pair[0]]
    if before.per_case is not None:
        gate_cases(
            paths, logs, declared, before.per_case, before.pass_k or 1, candidates, baseline, benchmarks, form,
            question.on_undecided.value, question.write or (), max_rejected, equal_runs=before.equal_runs,
        )  # fmt: skip
    if before.replay is not None:
        if paths or before.check:
            stop("--replay: takes the archive alone; omit PATH and --check", USAGE)
        replay_gate(
            before.replay, logs, declared, question.margin, candidates, baseline, benchmarks, form, max_rejected,
            parse_prices(question.price or (), question.prices), named_prices(question.price), equal_runs=before.equal_runs,
        )  # fmt: skip
    check(
        paths, logs, declared, question.margin, baseline, benchmarks, form, max_rejected, run_anyway=before.run_anyway
    )


def _check_age(
    question: MarginOptions,
    baseline: str,
    benchmarks: "Sequence[str]",
    files: list[str],
    logs: ScoreOptions,
    max_rejected: float,
    *,
    from_service: bool,
) -> None:
    if question.max_age is None:
        if question.refresh is not None:
            stop("--baseline-refresh: is for --baseline-max-age; add it, for example --baseline-max-age 30d", USAGE)
        return
    if from_service:
        stop("--baseline-max-age: a board keeps no dates of its scores; omit it, or give the baseline as files", USAGE)
    check_age(files, logs, max_rejected, baseline, benchmarks, question.max_age, question.refresh)


def _check_question(
    question: MarginOptions,
    pair: tuple[str, str] | None,
    benchmark: list[str] | None,
    form: GateFormat,
    before: CheckOptions,
    evaluation: RunOptions,
) -> None:
    if before.equal_runs:
        stop("--equal-runs: is for --per-case and --replay; omit it", USAGE)
    if before.pass_k is not None:
        stop("--pass-k: is for --per-case; add it, for example --per-case 0.8", USAGE)
    if before.run_anyway and evaluation.run is None:
        stop("--run-anyway: is for --check and --run; omit it", USAGE)
    if (evaluation.exact or evaluation.expect is not Expected.pass_) and evaluation.run is None:
        stop("--exact: stops an evaluation that the gate runs itself; add --run COMMAND", USAGE)
    if evaluation.expect is not Expected.pass_ and not evaluation.exact:
        stop("--expect: is for --exact; add it, or omit --expect", USAGE)
    if question.margin is None:
        _check_without_margin(question, pair, benchmark, form)
    elif (pair is None) == (question.baseline is None) or (pair and question.candidate):
        stop("--margin: name the models with --pair A B, or with --baseline B and, if you like, --candidate A", USAGE)
    if evaluation.run is not None and (question.margin is None or question.rerun):
        stop("--run: evaluates candidates; give --margin and --pair A B or --candidate A, without --rerun", USAGE)


def _check_without_margin(
    question: MarginOptions, pair: tuple[str, str] | None, benchmark: list[str] | None, form: GateFormat
) -> None:
    given = {
        "--baseline": question.baseline,
        "--candidate": question.candidate,
        "--rerun": question.rerun,
        "--price": question.price,
        "--prices": question.prices,
        "--write": question.write,
        "--on-undecided": question.on_undecided is not OnUndecided.wait,
        f"--format {form.value}": form in {GateFormat.markdown, GateFormat.svg, GateFormat.html},
        "a second --benchmark": len(benchmark or ()) > 1,
    }
    for flag, value in given.items():
        if value:
            stop(f"{flag}: needs --margin, the loss that you accept; add for example --margin 0.02", USAGE)
    if pair is None:
        stop("missing --pair: name the two models, as --pair A B", USAGE)


def _check_several_metrics(
    question: MarginOptions, evaluation: RunOptions, files: list[str], *, from_service: bool
) -> None:
    refused = {
        "are compared with --margin only; add it, for example --margin 0.02, or name one metric": question.margin
        is None,
        "are not available with --run; name one metric, and gate each with a folder of its own": evaluation.run
        is not None,
        "are not available with --server and --redis-url: a board has one metric; name one, or give files": from_service,
        "read the paths once each; give standard input as a file": any(named_path(path)[1] == STDIN for path in files),
    }
    for why, refuse in refused.items():
        if refuse:
            stop(f"several metrics {why}", USAGE)


def _better(
    boards: "Mapping[str, BoardView]",
    pair: tuple[str, str],
    benchmark: str | None,
    form: GateFormat,
    rule: "ConflictRule",
    labels: "Mapping[str, Labels]",
) -> None:
    report = build_report(boards, pairs="all", assert_complete=True, model=pair[0])
    chosen = choose_pair(report, pair, benchmark)
    stop_incomplete(chosen[0])
    if form is not GateFormat.json:
        chosen = named_flags(chosen[0]), pair_with_flags(chosen[1])
    found = None
    if (mine := labels.get(chosen[0].benchmark)) is not None:
        check_labelled(mine, pair)
        table = PairTable.of(boards[chosen[0].benchmark], assert_complete=True)
        found = labels_report(table, mine, "anytime", pair)
    answer = render.answer(*chosen, pair, rule, found)
    render_answer = {
        GateFormat.text: render.as_text,
        GateFormat.json: render.as_json,
        GateFormat.junit: render.as_junit,
        GateFormat.github: render.as_github,
    }[form]
    _print_answer(render_answer(answer) + "\n")
    raise SystemExit(answer.code)


def _not_worse(
    readings: "Sequence[Reading]",
    pair: tuple[str, str] | None,
    benchmarks: list[str],
    form: GateFormat,
    question: MarginOptions,
    rule: "ConflictRule",
    labels: "Mapping[str, Labels]",
) -> None:
    margin = parse_margin(question.margin or "")
    outputs = parse_outputs(question.write or (), [*RENDERERS])
    prices = parse_prices(question.price or (), question.prices)
    candidates, baseline = ([pair[0]], pair[1]) if pair else (question.candidate or [], question.baseline or "")
    comparisons = compare(readings, candidates, baseline, benchmarks, margin, rule)
    for each in comparisons:
        if each.benchmark in labels:
            check_labelled(labels[each.benchmark], (each.candidate, each.baseline))
    boards = readings[0].boards
    tables = {name: PairTable.of(boards[name], assert_complete=True) for name in labels}
    comparisons = corrected(comparisons, tables, labels, margin)
    if question.rerun is not None:
        others = [each for each in comparisons if each.candidate != question.rerun]
        comparisons = others if others and not candidates else comparisons
        comparisons = hold_for_rerun(comparisons, readings, question.rerun)
    check_prices(prices, named_prices(question.price), [each.candidate for each in comparisons], baseline)
    report = gate_report(comparisons, margin, question.on_undecided.value, prices)
    print_gate(report, form, outputs)
    raise SystemExit(report.exit_code)


def _run(
    boards: "Mapping[str, BoardView]",
    pair: tuple[str, str] | None,
    benchmarks: list[str],
    form: GateFormat,
    question: MarginOptions,
    evaluation: RunOptions,
    logs: ScoreOptions,
    declared: DeclareOptions,
    max_rejected: float,
    *,
    anyway: bool,
) -> None:
    candidates, baseline = ([pair[0]], pair[1]) if pair else (question.candidate or [], question.baseline or "")
    candidates = list(dict.fromkeys(candidates))
    if not candidates:
        stop("--run: name the candidate that it evaluates, with --pair A B or --candidate A", USAGE)
    if baseline in candidates:
        stop(f"{show(baseline)} is the baseline and a candidate; name two different models", USAGE)
    prices = parse_prices(question.price or (), question.prices)
    check_prices(prices, named_prices(question.price), candidates, baseline)
    if prices is not None:
        candidates.sort(key=prices.__getitem__)
    if len(benchmarks) > 1:
        stop("--run: evaluates one benchmark; give --benchmark once", USAGE)
    margin = parse_margin(question.margin or "")
    outputs = parse_outputs(question.write or (), [*RENDERERS])
    flags = parse_flags(declared)
    if others := sorted(set(flags.values) - {"alpha"}):
        stop(f"--run: commits to an order of its own; omit --{others[0]}", USAGE)
    call = RunCall(
        evaluation.run or "",
        evaluation.folder,
        evaluation.budget,
        evaluation.block,
        evaluation.seed,
        anyway,
        evaluation.exact,
        evaluation.expect.value,
    )
    name = benchmarks[0] if benchmarks else None
    try:
        found = evaluate_gate(
            boards, candidates, baseline, name, margin, call, logs, max_rejected, until_pass=prices is not None
        )
    except NotRunError as error:
        print_gate(error.report, form if form is not GateFormat.text else None, outputs)
        stop(str(error), USAGE)
    report = gate_report(
        found.comparisons,
        margin,
        question.on_undecided.value,
        prices,
        found.saved,
        found.alpha,
        shares=evaluation.exact,
    )
    print_gate(report, form, outputs)
    raise SystemExit(report.exit_code)


def print_gate(report: "GateReport", form: GateFormat | None, outputs: list[tuple[str, Path]]) -> None:
    """Print the answer of a gate unless there is no format, and write it to files."""
    flags = report.replace(comparisons=[each.replace(reason=with_flags(each.reason)) for each in report.comparisons])

    def text(name: str) -> str:
        return RENDERERS[name](report if name == "json" else flags)

    write_outputs((file, text(name)) for name, file in outputs)
    if form is None:
        return
    _print_answer(text(form.value) + ("" if form in {GateFormat.markdown, GateFormat.svg, GateFormat.html} else "\n"))


def _print_answer(text: str) -> None:
    """Print the answer; the exit code is the verdict, also where the reader of the text has gone."""
    with suppress(BrokenPipeError):
        print(text, end="")
