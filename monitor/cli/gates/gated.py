"""`gate --run`: the baseline, the folder and the command of an evaluation that stops when its gate is decided."""

import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import numpy as np

from monitor.cli.gates.margins import check_items
from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.cli.shared.files import Resolution, read_results
from monitor.cli.shared.options import DeclareOptions, ScoreOptions
from monitor.files.streams.paths import show
from monitor.render.board.site import file_name
from monitor.service.gates.command import EvaluationError, parse_command
from monitor.service.gates.evaluation import Plan, Scores, evaluate, evaluate_all
from monitor.service.gates.folder import CandidateFolder, EvaluationFolder, Output
from monitor.view.board import BoardView
from monitor.view.gates.along_order import Question, questions_of
from monitor.view.gates.exact import ExactQuestion
from monitor.view.gates.gate import not_run
from monitor.view.gates.margin import Margin
from monitor.view.kinds.kind import has_repeats
from monitor.view.reasons import refused
from monitor.view.score_lines import scores_by_item
from monitor.words.assumptions import clauses
from monitor.words.gate_checks import cannot_pass
from monitor.words.gates import evaluated
from monitor.words.numbers import digits_apart, p_value
from monitor.words.order import because
from schemas.records.names import natural
from schemas.records.text import shorten
from schemas.results.assumptions import Assumption, facts, flagged
from schemas.results.gate import GateComparison, GateReport
from schemas.results.gate_check import Attained


@dataclass(frozen=True)
class RunCall:
    """What `gate --run` was called with."""

    command: str
    folder: Path
    budget: int | None
    block: int | None
    seed: str | None
    anyway: bool = False  # go on where only a better candidate can pass
    exact: bool = False  # stop where no missing item can change the verdict of the full run
    expect: Literal["pass", "fail"] = "pass"  # with `exact`: the verdict that comes early


class Evaluated(NamedTuple):
    """What a gate has evaluated itself: the comparisons, the alpha of all of them, and what was evaluated and saved."""

    comparisons: list[GateComparison]
    alpha: float
    saved: str


def evaluate_gate(
    boards: Mapping[str, BoardView],
    candidates: Sequence[str],
    baseline: str,
    benchmark: str | None,
    margin: Margin,
    call: RunCall,
    logs: ScoreOptions,
    max_rejected: float,
    *,
    until_pass: bool = False,
) -> Evaluated:
    """Evaluate candidates one after the other, each until it is decided."""
    chosen = _benchmark(boards, baseline, benchmark)
    if chosen.spec.units is not None:
        stop(
            f"--run: {shorten(chosen.name)} has units of items, and --run bets item by item; evaluate the whole benchmark, and compare it "
            "without --run"
        )
    scores = scores_by_item(chosen, baseline)
    known = {item: score for item, score in scores.items() if score is not None}
    if lacking := len(scores) - len(known):
        items = "1 item" if lacking == 1 else f"{lacking:,} items"
        note(f"{shorten(chosen.name)}: {items} of {len(scores):,} without a score of the baseline: not evaluated")
    if call.exact:
        _check_exact(chosen, margin)
    several = len(candidates) > 1
    broken = 0

    def one(question: Question, left: int | None) -> GateComparison:
        nonlocal broken
        comparison, again = _evaluate(plan, question, known, command, replace(call, budget=left), logs, max_rejected)
        broken += again
        return comparison

    try:
        command = parse_command(call.command, several=several)
    except EvaluationError as error:
        stop(str(error), USAGE)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        folder = EvaluationFolder(call.folder)
        kind = ExactQuestion if call.exact else Question
        history = _history(chosen, baseline, lacking)
        questions = questions_of(chosen.name, candidates, baseline, margin, chosen.spec.alpha, history, kind)
        _check_attainable(questions, known, anyway=call.anyway)
        order = "committed" if not call.exact else "old-right-first" if call.expect == "pass" else "random"
        first = known if order == "old-right-first" else None
        plan = Plan.of(questions, sorted(known), call.seed or secrets.token_hex(8), call.block, first)
        if not call.anyway and not folder.begun:
            _check_budget(questions, [known[item] for item in plan.items], call.budget)
        plan = folder.open(plan, command, known, seeded=call.seed is not None, order=order)
        comparisons = evaluate_all(plan, one, call.budget, until_pass=until_pass)
    except EvaluationError as error:
        stop(str(error))
    except KeyboardInterrupt:
        _note_interrupted()
        raise
    except OSError as error:
        stop(file_error(error, call.folder))
    return Evaluated(comparisons, chosen.spec.alpha, saved(comparisons, len(known), call.budget, broken))


def _check_exact(chosen: BoardView, margin: Margin) -> None:
    """End an exact gate with a relative margin, or with an order for evidence."""
    name = shorten(chosen.name)
    if margin.relative:
        stop("--exact: give the margin in score units, for example --margin 0.02", USAGE)
    if (policy := chosen.spec.order.policy) in {"committed", "trusted"}:
        stop(
            f"--exact: {name} declares the order {policy}, along which evidence is counted; an order that depends on the baseline's scores "
            "must not feed it, so omit --exact",
            USAGE,
        )


class NotRunError(Exception):
    """A gate that ends before its first call, as its report has it."""

    def __init__(self, message: str, report: GateReport) -> None:
        super().__init__(message)
        self.report = report


def _check_attainable(questions: Sequence[Question], known: Mapping[str, float], *, anyway: bool) -> None:
    """End a gate that cannot pass, or that equal answers cannot pass, before its first call."""
    question, baseline = questions[0], np.array([*known.values()])
    found = question.attainable(baseline)
    if found.code == "impossible" or (found.code == "only_wins" and not anyway):
        message = f"{shorten(question.benchmark)}: {cannot_pass(found, question.margin.text)}"
        raise NotRunError(message, not_run(questions, baseline, found))


def _check_budget(questions: Sequence[Question], baseline: Sequence[float], budget: int | None) -> None:
    """End a gate before its first call if its budget is spent before equal answers pass."""
    needed = questions[0].items_to_pass(np.array(baseline))
    if budget is not None and needed is not None and budget < needed:
        raise NotRunError(
            f"--budget {budget:,}: equal answers pass at item {needed:,}, so only a better model could; give --budget {needed} or more, or "
            "add --run-anyway",
            not_run(questions, np.array(baseline), Attained("only_wins", budget, needed)),
        )


def _terminate(number: int, _frame: object) -> NoReturn:
    """End the gate, and its command with it: it would go on alone."""
    _note_interrupted()
    raise SystemExit(128 + number)


def _note_interrupted() -> None:
    note("interrupted; the blocks that are done are kept: the same call goes on from here")


def _evaluate(
    plan: Plan,
    question: Question,
    known: Scores,
    command: Sequence[str],
    call: RunCall,
    logs: ScoreOptions,
    max_rejected: float,
) -> tuple[GateComparison, int]:
    """Evaluate one candidate until it is decided; return the comparison, and how many times a block broke off."""
    who = f"{shorten(question.candidate)}: " if len(plan.questions) > 1 else ""
    noted = set[str]()
    whole = {*known.values()} <= {0, 1}

    def read(path: Path) -> Output:
        worst = Resolution("worst", question.baseline)
        output = read_results([str(path)], max_rejected, logs, DeclareOptions(), part=True, resolution=worst)
        board, model = _written(output, question)
        if model not in (question.candidate, *noted):
            note(
                f"the output names the model {shorten(model)}; its scores count as those of {shorten(question.candidate)}"
            )
        noted.add(model)
        scores = scores_by_item(board, model)
        if call.exact and whole and any(score not in {0, 1, None} for score in scores.values()):
            raise EvaluationError(
                "--exact: the output has scores between 0 and 1, and the baseline 0 and 1 alone; its exact tests take 0 and 1"
            )
        codes = {"repeated": has_repeats(board), "score_choice": _has_several(board)}
        return Output(scores, tuple(code for code, holds in codes.items() if holds))

    folder = CandidateFolder(call.folder / "candidates" / file_name(question.candidate), read, note)
    done = folder.done()
    if done:
        blocks = "1 block is" if len(done) == 1 else f"{len(done):,} blocks are"
        note(f"{who}{show(call.folder)}: {blocks} done and not evaluated again")

    def run(number: int, ids: Sequence[str]) -> Scores:
        return folder.run(command, question.candidate, number, ids)

    def progress(items: int, now: GateComparison) -> None:
        more = digits_apart(p_value, [now.p_not_worse, now.p_worse], [question.alpha])
        not_worse, worse, alpha = (p_value(p, more) for p in (now.p_not_worse, now.p_worse, question.alpha))
        note(
            f"{who}{items:,} of {len(plan.items):,} items: p = {not_worse} of not worse, {worse} of worse; "
            f"decided at p <= {alpha}"
        )

    comparison = evaluate(plan, question, known, done, run, call.budget, progress)
    if codes := {*folder.assumed, *["broken_off"] * bool(folder.broken)}:
        assumed = [*question.assumed, *map(Assumption, codes)]
        comparison = comparison.replace(assumption=clauses(assumed), assumptions=facts(assumed))
    return comparison, folder.broken


def saved(comparisons: Sequence[GateComparison], items: int, budget: int | None, broken: int = 0) -> str:
    """Return how many items were evaluated, and how many were saved."""
    done, candidates = sum(each.n for each in comparisons), len(comparisons)
    undecided = any(each.decided_at_n is None for each in comparisons)
    spent = budget is not None and done >= budget and undecided
    return evaluated(done, items * candidates, candidates, spent=spent, broken=broken)


def _history(benchmark: BoardView, baseline: str, lacking: int) -> list[Assumption]:
    """Return what is assumed of the scores of the baseline, which lacks one of some items: these are not evaluated."""
    return flagged(
        begun_again=benchmark.begun_again,
        repeated=has_repeats(benchmark),
        score_choice=_has_several(benchmark),
        rescored=benchmark.latest_epoch[baseline] > 0,
        baseline_items=lacking > 0,
    )


def _has_several(benchmark: BoardView) -> bool:
    """Return whether some item had several scores of a model, nulls that were filled among them."""
    return benchmark.has_choice or benchmark.counters["conflicts"] + benchmark.counters["filled"] > 0


def _benchmark(boards: Mapping[str, BoardView], baseline: str, name: str | None) -> BoardView:
    benchmarks = {each.name: each for each in boards.values() if any(c.model == baseline for c in each.contestants)}
    if not benchmarks:
        models = {c.model for each in boards.values() for c in each.contestants}
        stop(f"the baseline {show(baseline)} has no results; {name_hint([baseline], models, 'the files have')}", USAGE)
    known = first_names(sorted(benchmarks, key=natural))
    if name is not None and name not in benchmarks:
        stop(f"--benchmark {show(name)}: the baseline has no results there; choose one of {known}", USAGE)
    if name is None and len(benchmarks) > 1:
        stop(f"the baseline has results of {len(benchmarks)} benchmarks; choose one with --benchmark: {known}", USAGE)
    chosen = benchmarks[name] if name is not None else next(iter(benchmarks.values()))
    check_items(chosen.name, chosen)
    if chosen.incomplete:
        stop(f"{chosen.incomplete}; complete the file, and run the command again")
    if reasons := refused(chosen):
        stop(because(reasons) or "")
    return chosen


def _written(output: Mapping[str, BoardView], question: Question) -> tuple[BoardView, str]:
    """Return where the output of a block has the scores of the candidate; the only model and benchmark may have other names."""
    benchmarks = {each.name: each for each in output.values() if each.contestants}
    chosen = benchmarks.get(question.benchmark) or (next(iter(benchmarks.values())) if len(benchmarks) == 1 else None)
    if chosen is None:
        others = first_names(sorted(benchmarks, key=natural))
        raise EvaluationError(f"the output has no results of {question.benchmark}, but of {others}")
    models = list(dict.fromkeys(each.model for each in chosen.contestants))
    model = question.candidate if question.candidate in models else models[0]
    if model == question.baseline or (model != question.candidate and len(models) > 1):
        others = f"{first_names(models)}; name one of them in --pair or --candidate"
        raise EvaluationError(f"the output has no results of {question.candidate}, but of {others}")
    if len(chosen.epochs[model]) > 1:
        raise EvaluationError(f"the output has scores of {shorten(model)} in several epochs; write those of one run")
    return chosen, model
