"""Write the scores, or the battles, of a benchmark as records that any rankwatch reads."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np

from monitor.engine.state.battles import JUDGE, ORDER, OUTCOME, PAIR, PROMPT, REPEAT
from monitor.view.board import BattleFacts, BoardView
from schemas.records.declaration import Admitted, Provenance
from schemas.records.events import BattleFields, Ended, EventFields, Winner
from schemas.records.scores import ABSENT, SCORE_UNIT, SKIPPED
from stats.numerics.pairs import pair_members

ROWS_AT_ONCE: Final = 1_000

SENTINEL: Final = (  # why a board that has runs has no rows to write
    "is a sentinel: its scores are in runs, which this does not write; copy them by `rankwatch state export`"
)

_WINNERS: Final[dict[int, Winner]] = {1: "a", -1: "b", 0: "tie"}


def score_lines(benchmark: BoardView, start: int, end: int) -> bytes:
    """Return some rows as JSON lines: ahead of the first one the declaration, after the last one the ends of runs."""
    lines: list[bytes] = []
    if start == 0:
        spec = benchmark.spec.model_copy(
            update={"provenance": _provenance(benchmark), "admissions": _admissions(benchmark)}
        )
        declaration = spec.model_dump(mode="json", exclude_defaults=True)
        if benchmark.declared or declaration:
            lines.append(msgspec.json.encode({"declare": benchmark.name, **declaration}))
    battles = benchmark.battles
    events = _scores(benchmark, start, end) if battles is None else _battles(benchmark, battles, start, end)
    lines += map(msgspec.json.encode, events)
    if end >= benchmark.rows:
        for index in sorted(benchmark.ended):
            model, epoch = benchmark.contestants[index]
            lines.append(
                Ended(ended=benchmark.name, model=model, epoch=epoch).model_dump_json(exclude_none=True).encode()
            )
    return b"".join(line + b"\n" for line in lines)


def all_score_lines(benchmarks: Iterable[BoardView]) -> Iterator[bytes]:
    """Yield benchmarks as JSON lines, in parts."""
    for benchmark in benchmarks:
        for start in range(0, max(1, benchmark.rows), ROWS_AT_ONCE):
            yield score_lines(benchmark, start, start + ROWS_AT_ONCE)


def scores_by_item(benchmark: BoardView, model: str) -> dict[str, float | None]:
    """Return the score of each item that the newest epoch of a model has, the mean of its repeats; None for a skipped one."""
    view = benchmark.described()
    contestant = view.newest(model)
    codes, values = view.item_codes()[:, contestant], view.item_values
    return {
        key.item: None if code == SKIPPED else float(values[code]) / SCORE_UNIT
        for key, code in zip(view.item_keys, codes.tolist(), strict=True)
        if code != ABSENT
    }


def _provenance(benchmark: BoardView) -> Provenance:
    """Return what a reader of the scores alone would not know of them."""
    reading = benchmark.reading
    return benchmark.spec.provenance | Provenance(
        score_choice=benchmark.has_choice,
        begun_again=benchmark.begun_again,
        unread_items=benchmark.unread,
        not_whole=bool(not reading.whole or benchmark.incomplete),
    )


def _admissions(benchmark: BoardView) -> dict[str, Admitted] | None:
    """Return the newcomers of this generation of a board, as they are in the first one of its copy."""
    known = (benchmark.spec.admissions or {}).items()
    return {
        model: each.model_copy(update={"generation": 1})
        for model, each in known
        if each.generation == benchmark.generation
    } or None


def _scores(benchmark: BoardView, start: int, end: int) -> Iterator[EventFields]:
    codes, keys = benchmark.cells().codes[start:end], benchmark.row_keys[start:end]
    values = benchmark.cells().values
    for row, column in np.argwhere(codes != ABSENT).tolist():
        key, contestant, code = keys[row], benchmark.contestants[column], int(codes[row, column])
        score = None if code == SKIPPED else int(values[code]) / SCORE_UNIT
        whole = int(score) if score in {0, 1} else score
        yield EventFields(benchmark.name, key.item, contestant.model, whole, key.cluster, key.repeat, contestant.epoch)


def _battles(benchmark: BoardView, battles: BattleFacts, start: int, end: int) -> Iterator[BattleFields]:
    """Yield the votes on some prompts in the order of the log; the first model of each is the one that was seen first."""
    votes = battles.votes
    votes = votes[(votes[:, PROMPT] >= start) & (votes[:, PROMPT] < end)]
    first, second = pair_members(votes[:, PAIR].astype(np.int64))
    models, prompts = [each.model for each in benchmark.contestants], benchmark.row_keys
    for vote, one, other in zip(votes.tolist(), first.tolist(), second.tolist(), strict=True):
        order, judge = vote[ORDER], vote[JUDGE]
        yield BattleFields(
            benchmark=benchmark.name,
            item_id=prompts[vote[PROMPT]].item,
            model_a=models[one],
            model_b=models[other],
            winner=_WINNERS[vote[OUTCOME]],
            position="a" if order > 0 else "b" if order < 0 else None,
            cluster=None if judge < 0 else battles.judges[judge],
            repeat=vote[REPEAT],
        )
