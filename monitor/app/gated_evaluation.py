"""An evaluation that stops as soon as its gate is decided: blocks of a committed order, kept in a folder, so that a killed run goes on.

    plan.json               what was committed to before the first block: items in their order, the question, all candidates, the command
    candidates/NAME/        a candidate
        block-0001/items.txt    the ids of a block, one a line
        block-0001/output/      what the command wrote
        block-0001/scores.json  what was read of it: the block is done
        block-0002.broken-1/    a block that broke off and was evaluated again

A block is evaluated in `block-0001.part` and renamed once its scores are read.
"""

import hashlib
import json
import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from monitor.durable import replace_file
from monitor.file_lock import lock_file
from monitor.report.gates.along_order import Question, compare_along_order, first_decision
from monitor.report.pairs.counts import Floats
from schemas.records.text import shorten
from schemas.results.gate import GateComparison
from stats.order import committed_order

Scores = Mapping[str, float | None]
"""By item."""

_VERSION: Final = 2
_LEAST_BLOCK: Final = 10
_BLOCKS: Final = 50
_IN_WORDS: Final = {
    "candidates": "list of candidates",
    "baseline_scores": "set of baseline scores",
    "block": "size of blocks",
}
_PLACEHOLDER: Final = re.compile(r"\{(items|ids|output|candidate)\}")


class EvaluationError(ValueError):
    """An evaluation that cannot begin or go on: what is wrong, and what to do."""


def default_block(items: int) -> int:
    """Return the items of a block: a fiftieth of all, and at least 10.

    Examples
    --------
    >>> default_block(1319), default_block(200)
    (27, 10)
    """
    return max(_LEAST_BLOCK, math.ceil(items / _BLOCKS))


@dataclass(frozen=True)
class Plan:
    """What an evaluation commits to before its first block."""

    questions: tuple[Question, ...]
    """One for each candidate, in the order in which they are evaluated."""
    items: tuple[str, ...]
    """In the committed order."""
    seed: str
    block: int

    @classmethod
    def of(cls, questions: Sequence[Question], items: Sequence[str], seed: str, block: int | None = None) -> "Plan":
        """Put items into the order that a seed commits to."""
        order = committed_order(seed, items)
        return cls(tuple(questions), tuple(items[k] for k in order.tolist()), seed, block or default_block(len(items)))


def evaluate_all(
    plan: Plan,
    evaluate_one: Callable[[Question, int | None], GateComparison],
    budget: int | None = None,
    *,
    until_pass: bool = False,
) -> list[GateComparison]:
    """Evaluate candidates one after the other.

    Parameters
    ----------
    plan : Plan
    evaluate_one : callable
        Evaluates a candidate with at most this many items; None is no limit.
    budget : int, optional
        Most items to evaluate, of all candidates.
    until_pass : bool
        Whether the candidates after the first one that passes are not evaluated.
    """
    comparisons: list[GateComparison] = []
    for question in plan.questions:
        cheaper = next((each.candidate for each in comparisons if each.verdict == "pass"), None) if until_pass else None
        left = None if budget is None else max(0, budget - sum(each.n for each in comparisons))
        if cheaper is not None:
            comparisons.append(_not_evaluated(plan, question, f"{shorten(cheaper)} passes and costs no more"))
            continue
        # Blocks that are done cost nothing, so they count under any budget.
        comparison = evaluate_one(question, left)
        spent = left == 0 and not comparison.n
        comparisons.append(_not_evaluated(plan, question, "the budget is spent") if spent else comparison)
    return comparisons


def _not_evaluated(plan: Plan, question: Question, why: str) -> GateComparison:
    nothing = compare_along_order(np.zeros(0), np.zeros(0), len(plan.items), question)
    return nothing.model_copy(update={"reason": f"Not evaluated: {why}."})


def evaluate(
    plan: Plan,
    question: Question,
    baseline: Scores,
    done: Sequence[Scores],
    run_block: Callable[[int, Sequence[str]], Scores],
    budget: int | None = None,
    on_block: Callable[[int, GateComparison], None] | None = None,
) -> GateComparison:
    """Evaluate a candidate block after block until it is decided, the budget is spent or no item is left.

    Parameters
    ----------
    plan : Plan
    question : Question
        Of the candidate.
    baseline : mapping
        Scores of all items.
    done : sequence of mapping
        Scores of the candidate in the blocks that are done.
    run_block : callable
        Evaluates the items of a block: its number, from 1, and the ids.
    budget : int, optional
        Most items to evaluate, those of blocks that are done among them.
    on_block : callable, optional
        Takes the items evaluated so far and the comparison, after each block that leaves the gate open.
    """
    known = _scores_of(plan.items, baseline)
    scores: list[float] = []
    judged = 0
    number, most = 0, min(len(plan.items), budget if budget is not None else len(plan.items))
    while True:
        candidate = np.array(scores)
        if number >= len(done) and first_decision(candidate, known[: candidate.size], question, judged) is not None:
            break
        judged = candidate.size if number >= len(done) else 0
        start = len(scores)
        if start >= most and number >= len(done):
            break
        block = plan.items[start : start + plan.block]
        if number < len(done):
            block_scores = done[number]
            block = tuple(item for item in block if item in block_scores)
        else:
            if number and on_block is not None:
                on_block(start, compare_along_order(candidate, known[:start], len(plan.items), question))
            block = block[: most - start]
            block_scores = run_block(number + 1, block)
        scores += _scores_of(block, block_scores).tolist()
        number += 1
    return compare_along_order(np.array(scores), known[: len(scores)], len(plan.items), question)


def _scores_of(items: Sequence[str], scores: Scores) -> Floats:
    values = (scores.get(item) for item in items)
    return np.array([math.nan if value is None else value for value in values], np.float64)


# --- the command ----------------------------------------------------------------------------------------------------------------------


def parse_command(text: str, *, several: bool = False) -> list[str]:
    """Split a command into its arguments; no shell ever sees it, so an id cannot inject anything.

    Raises
    ------
    EvaluationError
        If it does not take items, or of several candidates not which one to evaluate, or cannot be split.

    Examples
    --------
    >>> parse_command("python run.py --ids {items} --out {output}.jsonl")
    ['python', 'run.py', '--ids', '{items}', '--out', '{output}.jsonl']
    """
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise EvaluationError(f"--run: the command cannot be split ({error}); close its quotes") from None
    used = {match[1] for argument in arguments for match in _PLACEHOLDER.finditer(argument)}
    if not used & {"items", "ids"}:
        raise EvaluationError(
            "--run: the command does not take the items; add {items}, the path of a file with one id a line"
        )
    if several and "candidate" not in used:
        raise EvaluationError(
            "--run: the command does not take the candidate, and there are several; add {candidate}, the name of the one to evaluate"
        )
    if any("{ids}" in argument and argument != "{ids}" for argument in arguments):
        raise EvaluationError("--run: {ids} has to be an argument of its own; it becomes one argument an id")
    return arguments


def fill_command(arguments: Sequence[str], candidate: str, ids: Sequence[str], items: Path, output: Path) -> list[str]:
    """Return the command of a block.

    Raises
    ------
    EvaluationError
        If an id would be taken for an option.
    """
    filled: list[str] = []
    places = {"items": str(items), "output": str(output), "candidate": candidate}
    for argument in arguments:
        if argument == "{ids}":
            if wrong := next((item for item in ids if item.startswith("-")), None):
                raise EvaluationError(
                    f"item {wrong!r} begins with - and would be an option; use {{items}}, a file of ids"
                )
            filled += ids
        else:
            filled.append(_PLACEHOLDER.sub(lambda match: places[match[1]], argument))
    return filled


# --- the folder -----------------------------------------------------------------------------------------------------------------------


class EvaluationFolder:
    """The folder of an evaluation: its plan, and a folder for each candidate.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_file(path / ".lock")
        if self._lock is None:
            raise EvaluationError(f"{path} is in use by another gate; wait for it, or give another --folder")

    def open(self, plan: Plan, command: Sequence[str], baseline: Scores, *, seeded: bool) -> Plan:
        """Commit to a plan, or go on with the one in the folder; return it.

        Raises
        ------
        EvaluationError
            If the folder holds another plan.
        """
        file = self.path / "plan.json"
        question = plan.questions[0]
        fields: dict[str, Any] = {
            "version": _VERSION,
            "benchmark": question.benchmark,
            "baseline": question.baseline,
            "margin": asdict(question.margin),
            "alpha": question.alpha,
            # Each candidate has a share of alpha: one that is exchanged for another would have it twice.
            "candidates": sorted(each.candidate for each in plan.questions),
            "command": list(command),
            "baseline_scores": hashlib.sha256(json.dumps(sorted(baseline.items())).encode()).hexdigest(),
            "seed": plan.seed,
            "block": plan.block,
        }
        if not file.exists():
            replace_file(file, json.dumps({**fields, "items": plan.items}, ensure_ascii=False, indent=1).encode())
            return plan
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            raise EvaluationError(f"{file} is damaged; give another --folder, which begins again") from None
        changed = [name for name, value in fields.items() if kept.get(name) != value and (name != "seed" or seeded)]
        if changed:
            what = ", ".join(_IN_WORDS.get(name, name) for name in changed)
            raise EvaluationError(
                f"{self.path} holds an evaluation with another {what}; give another --folder, or the same question again"
            )
        return replace(plan, items=tuple(kept["items"]), seed=kept["seed"], block=kept["block"])


class CandidateFolder:
    """The blocks of a candidate.

    Parameters
    ----------
    path : Path
    read : callable
        Reads the candidate's scores of the files that a command wrote.
    note : callable
        Takes a sentence for the user.
    """

    def __init__(self, path: Path, read: Callable[[Path], Scores], note: Callable[[str], None]) -> None:
        self.path, self._read, self._note = path, read, note
        path.mkdir(parents=True, exist_ok=True)

    @property
    def broken(self) -> int:
        """How many times a block broke off and was evaluated again."""
        return sum(1 for _ in self.path.glob("block-*.broken-*"))

    def done(self) -> list[Scores]:
        """Return the scores of the blocks that are done, in order."""
        blocks: list[Scores] = []
        while (file := self._block(len(blocks) + 1) / "scores.json").exists():
            blocks.append(json.loads(file.read_text(encoding="utf-8")))
        return blocks

    def run(self, command: Sequence[str], candidate: str, number: int, ids: Sequence[str]) -> Scores:
        """Evaluate a block of a candidate, and keep its scores.

        Raises
        ------
        EvaluationError
            If the command fails, or its output cannot be used.
        """
        final = self._block(number)
        part = final.with_name(f"{final.name}.part")
        if part.exists():
            part.rename(final.with_name(f"{final.name}.broken-{self.broken + 1}"))
        output = part / "output"
        output.mkdir(parents=True)
        items = part / "items.txt"
        items.write_text("".join(f"{item}\n" for item in ids), encoding="utf-8")
        arguments = fill_command(command, candidate, ids, items.resolve(), output.resolve() / "results")
        captured = not any("{output}" in argument for argument in command)
        self._execute(arguments, output / "results.jsonl" if captured else None, number)
        scores = self._of_block(self._read(_results(output, number)), ids, number)
        replace_file(part / "scores.json", json.dumps(scores, ensure_ascii=False).encode())
        part.rename(final)
        return scores

    def _execute(self, arguments: Sequence[str], stdout: Path | None, number: int) -> None:
        again = "the blocks before are kept: the same call goes on from here"
        try:
            if stdout is None:
                code = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode  # noqa: S603 - the user's own command, without a shell
            else:
                with stdout.open("wb") as file:
                    code = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=file, check=False).returncode  # noqa: S603 - same
        except OSError as error:
            raise EvaluationError(
                f"--run: {arguments[0]}: {os.strerror(error.errno or 0)}; check the command"
            ) from None
        if code:
            ended = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise EvaluationError(f"block {number}: the command ended with {ended}; {again}")

    def _of_block(self, scores: Scores, ids: Sequence[str], number: int) -> dict[str, float | None]:
        """Return the scores of a block's items; print what does not count, and what is missing."""
        others = scores.keys() - set(ids)
        if others:
            self._note(f"block {number}: items of the output that are not in the block do not count: {len(others):,}")
        lacking = [item for item in ids if scores.get(item) is None]
        if len(lacking) == len(ids):
            raise EvaluationError(
                f"block {number}: the output has no score of any of its {len(ids)} items; have the command use the ids of the file"
            )
        if lacking:
            some = "1 item" if len(lacking) == 1 else f"{len(lacking):,} items"
            self._note(
                f"block {number}: {some} of {len(ids):,} without a score: at the worst, for example {lacking[0]}"
            )
        return {item: scores.get(item) for item in ids}

    def _block(self, number: int) -> Path:
        return self.path / f"block-{number:04d}"


def _results(output: Path, number: int) -> Path:
    files = [file for file in output.rglob("*") if file.is_file()]
    if not files:
        raise EvaluationError(
            f"block {number}: the command wrote nothing to {{output}}; have it write its results there"
        )
    return files[0] if len(files) == 1 else output
