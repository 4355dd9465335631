"""The folder of `gate --run`: its plan and its blocks, so that a killed run goes on.

    plan.json               what was committed to before the first block: items in their order, the question, all candidates, the command
    candidates/NAME/        a candidate
        block-0001/items.txt    the ids of a block, one a line
        block-0001/output/      what the command wrote
        block-0001/scores.json  what was read of it: the block is done
        block-0001/assumed.json codes of what its scores assume, if anything
        block-0002.broken-1/    a block that broke off and was evaluated again

A block is evaluated in `block-0001.part` and renamed once its scores are read.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.durable import lock_file, replace_file
from monitor.service.gates.command import EvaluationError, fill_command, run_command
from monitor.service.gates.evaluation import Plan, Scores

_VERSION: Final = 2
_ASSUMED: Final = "assumed.json"
_IN_WORDS: Final = {
    "candidates": "list of candidates",
    "baseline_scores": "set of baseline scores",
    "block": "size of blocks",
}


class Output(NamedTuple):
    """What a command wrote of a block: the candidate's scores, and the codes of what these assume."""

    scores: Scores
    assumed: tuple[str, ...] = ()


class EvaluationFolder:
    """The folder of an evaluation: its plan, and a folder for each candidate."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise EvaluationError(f"{path} is a file; give another --folder") from None
        self._lock = lock_file(path / ".lock")
        if self._lock is None:
            raise EvaluationError(f"{path} is in use by another gate; wait for it, or give another --folder")

    @property
    def begun(self) -> bool:
        """Whether the folder has a plan already."""
        return (self.path / "plan.json").exists()

    def open(
        self, plan: Plan, command: Sequence[str], baseline: Scores, *, seeded: bool, order: str = "committed"
    ) -> Plan:
        """Commit to a plan, or go on with the one in the folder; return it."""
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
            "order": order,
        }
        if not file.exists():
            replace_file(file, json.dumps({**fields, "items": plan.items}, ensure_ascii=False, indent=1).encode())
            return plan
        try:
            kept = {"order": "committed", **json.loads(file.read_text(encoding="utf-8"))}
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
    """The blocks of a candidate."""

    def __init__(self, path: Path, read: Callable[[Path], Output], note: Callable[[str], None]) -> None:
        self.path, self._read, self._note = path, read, note
        path.mkdir(parents=True, exist_ok=True)

    @property
    def broken(self) -> int:
        """How many times a block broke off and was evaluated again."""
        return sum(1 for _ in self.path.glob("block-*.broken-*"))

    @property
    def assumed(self) -> set[str]:
        """The codes of what the scores of the blocks assume."""
        files = [file for file in self.path.glob(f"block-*/{_ASSUMED}") if file.parent.suffix == ""]
        return {code for file in files for code in json.loads(file.read_text(encoding="utf-8"))}

    def done(self) -> list[Scores]:
        """Return the scores of the blocks that are done, in order."""
        blocks: list[Scores] = []
        while (file := self._block(len(blocks) + 1) / "scores.json").exists():
            blocks.append(json.loads(file.read_text(encoding="utf-8")))
        return blocks

    def run(self, command: Sequence[str], candidate: str, number: int, ids: Sequence[str]) -> Scores:
        """Evaluate a block of a candidate, and keep its scores."""
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
        read = self._read(_results(output, number))
        scores = self._of_block(read.scores, ids, number)
        if read.assumed:
            replace_file(part / _ASSUMED, json.dumps(read.assumed).encode())
        replace_file(part / "scores.json", json.dumps(scores, ensure_ascii=False).encode())
        part.rename(final)
        return scores

    def _execute(self, arguments: Sequence[str], stdout: Path | None, number: int) -> None:
        again = "the blocks before are kept: the same call goes on from here"
        try:
            if stdout is None:
                code = run_command(arguments, 2)
            else:
                with stdout.open("wb") as file:
                    code = run_command(arguments, file)
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
