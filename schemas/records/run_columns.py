"""Columns of run messages, and of files with nothing but scores: of no event an object is made unless somebody asks for it."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from schemas.records.columns import EventColumns, Index, Names, Scores
from schemas.records.events import EventFields
from schemas.records.names import MAX_NAME_LENGTH
from schemas.records.runs import RunFields, decode_clusters, decode_names, decode_scores

_COMMA, _DIGIT_0 = b",0"
_SPACE, _DELETE = b" \x7f"

Score = float | bool | None


class ItemColumn:
    """The items of a run and their clusters. All runs of a benchmark whose message has the same lists share one."""

    def __init__(self, names: Sequence[str], clusters: Sequence[str | None] | None) -> None:
        self.names, self.clusters = names, clusters
        self._known: tuple[dict[str, int], Index] | None = None

    def rows(self, row_of: dict[str, int], part: slice) -> Index:
        """Return the rows of some items, -1 for a new one. Once a benchmark has all of them they are looked up no more."""
        if self._known is not None and self._known[0] is row_of:
            return self._known[1][part]
        rows = np.fromiter(map(row_of.get, self.names, repeat(-1)), np.int64, len(self.names))
        if (rows >= 0).all():
            self._known = row_of, rows
        return rows[part]


class ItemColumns:
    """The lists of items and clusters that were read last, by their JSON: lists that come again are neither decoded nor looked up."""

    _MOST_NAMES: Final = 200_000  # about 30 MB

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[bytes, bytes], ItemColumn] = OrderedDict()
        self._names = 0

    def column(self, items: bytes, clusters: bytes = b"null") -> ItemColumn | None:
        """Return lists of item ids and clusters; None if they need a closer look."""
        key = items, clusters
        known = self._columns.get(key)
        if known is not None:
            self._columns.move_to_end(key)
            return known
        names, labels = decode_names(items), decode_clusters(clusters)
        if not names or labels is None or len(labels) not in {0, len(names)}:
            return None
        column = self._columns[key] = ItemColumn(names, labels or None)
        self._names += len(names)
        while self._names > self._MOST_NAMES:
            _, oldest = self._columns.popitem(last=False)
            self._names -= len(oldest.names)
        return column


@dataclass
class _Run:
    """A run whose columns fit together."""

    benchmark: str
    model: str
    epoch: int
    items: ItemColumn
    scores: Scores
    given: bytes | Sequence[Score]
    run: object = None
    role: object = None

    @cached_property
    def given_scores(self) -> Sequence[Score]:
        """The scores as they were sent, or read."""
        return (decode_scores(self.given) or []) if isinstance(self.given, bytes) else self.given

    def event(self, k: int) -> EventFields:
        """Return one event."""
        clusters = self.items.clusters
        cluster = None if clusters is None else clusters[k]
        return EventFields(
            self.benchmark,
            self.items.names[k],
            self.model,
            self.given_scores[k],
            cluster,
            epoch=self.epoch,
            run=self.run,
            role=self.role,
        )


def are_plain(names: Sequence[str]) -> bool:
    """Return whether names are printable ASCII of a usual length, which needs no closer look."""
    codes = np.frombuffer("".join(names).encode("utf-8", "surrogatepass"), np.uint8)
    printable = ((codes - _SPACE) < _DELETE - _SPACE).all()  # what is below a space wraps around
    return bool(printable) and all(names) and max(map(len, names)) <= MAX_NAME_LENGTH


class RunEvents(EventColumns):
    """Events of a run."""

    def __init__(self, run: _Run, part: slice) -> None:
        self._run, self._part = run, part

    @classmethod
    def of(cls, run: RunFields, columns: ItemColumns) -> "RunEvents | None":
        """Return the events of a run; None if it needs a closer look."""
        items = columns.column(bytes(run.item_ids), bytes(run.clusters))
        scores = _scores(bytes(run.scores))
        if items is None or scores is None or len(items.names) != scores.size:
            return None
        kept = _Run(run.benchmark, run.model, run.epoch, items, scores, bytes(run.scores), run.run, run.role)
        return cls(kept, slice(0, scores.size))

    @classmethod
    def read(
        cls,
        benchmark: str,
        model: str,
        items: Sequence[str],
        scores: Sequence[Score],
        clusters: Sequence[str | None] | None,
    ) -> "RunEvents":
        """Return the events of a run that was read from a file; names and scores are as the fold takes them."""
        try:  # booleans alone are bytes already, which takes a quarter of the time
            values = np.frombuffer(bytes(scores), np.uint8).astype(np.float64)  # type: ignore[arg-type]
        except TypeError:
            values = np.array(scores, np.float64)  # None becomes NaN
        return cls(_Run(benchmark, model, 0, ItemColumn(items, clusters), values, scores), slice(0, len(items)))

    @property
    def benchmark(self) -> str:
        """The benchmark of all of them."""
        return self._run.benchmark

    @property
    def graded(self) -> bool:
        """Whether a score is neither 0 nor 1."""
        scores = self.scores()
        return bool(((scores > 0) & (scores < 1)).any())

    def __len__(self) -> int:
        return int(self._part.stop - self._part.start)

    @overload
    def __getitem__(self, place: int) -> EventFields: ...
    @overload
    def __getitem__(self, place: slice) -> "RunEvents": ...
    def __getitem__(self, place: int | slice) -> "EventFields | RunEvents":
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            first = self._part.start
            return RunEvents(self._run, slice(first + start, first + max(start, stop)))
        return self._run.event(range(self._part.start, self._part.stop)[place])

    @override
    def rows(self, names: Names) -> Index:
        return self._run.items.rows(names.row_of, self._part)

    @override
    def contestants(self, names: Names) -> Index:
        run = self._run
        return np.full(len(self), names.epoch_contestant_of.get((run.model, run.epoch), -1))

    @override
    def scores(self) -> Scores:
        return self._run.scores[self._part]

    @override
    def items(self, places: Index) -> tuple[list[str], list[str | None]]:
        at = (places + self._part.start).tolist()
        names, clusters = self._run.items.names, self._run.items.clusters
        return [names[k] for k in at], [None] * len(at) if clusters is None else [clusters[k] for k in at]

    @override
    def plain(self) -> NDArray[np.bool_] | None:
        return np.zeros(len(self), np.bool_) if self._run.role else None


def _scores(column: bytes) -> Scores | None:
    """Decode the JSON of a list of scores; None if it needs a closer look."""
    # Scores of 0 and 1 are written as one digit each, so that the list is an array already.
    text = np.frombuffer(column, np.uint8)
    digits, between = text[1:-1:2], text[2:-1:2]
    if (
        column.startswith(b"[")
        and len(column) % 2
        and ((digits & ~np.uint8(1)) == _DIGIT_0).all()
        and (between == _COMMA).all()
    ):
        return digits.astype(np.float64) - _DIGIT_0
    scores = decode_scores(column)
    return None if scores is None else np.array(scores, np.float64)  # None becomes NaN
