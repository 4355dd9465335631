"""How much of a fold fits into a slice: a worker serves others in between (`monitor/engine/slices.py`)."""

from math import inf
from typing import Final

from monitor.engine.state.pairs.counts import CHUNK_CELLS
from monitor.engine.state.pairs.pair_state import PairState
from schemas.records.packed import MOST_CHANGES, WIDE

_SECONDS: Final = 0.04  # how long a slice should take

_FIRST_UPDATES: Final = {False: 250_000, True: 50_000}
"""Pair updates in the first slice of a benchmark: whether most pairs share no item yet; giving a pair its place takes longer."""

_BETS: Final = 8  # how many times as long the update of a pair takes that bets on differences of any size

_FEW_NEW: Final = 50_000  # so few pairs without a shared item take no longer than others

_LEAST_EVENTS: Final = 10  # events of the smallest slice: each slice has a cost of its own


PIECE_RECORDS: Final = 6_000
_PIECE_BYTES: Final = 1_500_000
"""Records, and bytes of them, that are decoded and folded at a time. Many small pieces cost more than events that leave the cache."""

_BOARDS: Final = 8
"""A piece of 16 benchmarks is twice as large as others, of 24 three times: each has a cost of its own in it, however few its events."""

_PIECE_CHANGES: Final = 150_000_000
"""Bytes of a piece times its contestants: more could bring many verdict changes at once."""


_WIDE_PIECE_BYTES: Final = 25_000_000  # bytes of a piece of a wide benchmark, times its contestants

_WAITING_PIECE_BYTES: Final = 6_000_000  # the same where one event can decide what many others before it have brought

_SHRINK, _GROW = 0.25, 2.0


class Pace:
    """How much of the fold of each benchmark fits into a slice, from how long its last slices took.

    >>> pace, benchmark = Pace(), PairState("b")
    >>> for model in range(2_500):
    ...     _ = benchmark.add_contestant(f"m{model}", 0)
    >>> pace.events(benchmark)
    20
    >>> pace.took(0.01)
    >>> pace.events(benchmark)
    40
    >>> pace.took(0.4)
    >>> pace.events(benchmark)
    10
    """

    def __init__(self, fold_seconds: float = inf, *, most_pieces: int = 1) -> None:
        self._fold_seconds, self._most_pieces, self._spent, self._slice = fold_seconds, most_pieces, 0.0, 0.0
        self._updates: dict[tuple[str, bool], float] = {}
        self._last: tuple[tuple[str, bool], int] | None = None
        self._boards: dict[str, float] = {}
        """The benchmarks of the piece so far, and how many bytes a piece of each may have."""

    def begin(self) -> None:
        """Begin a fold."""
        self._spent = 0.0

    def piece(self) -> tuple[int, float]:
        """Return how many records, and bytes of them, to decode and fold next, given the benchmarks of those before.

        Only of many benchmarks may these be more than `PIECE_RECORDS`.
        """
        boards, self._boards = self._boards, {}
        times = max(1, min(len(boards) // _BOARDS, self._most_pieces))
        return times * PIECE_RECORDS, min([times * _PIECE_BYTES, *boards.values()])

    def is_enough(self, changes: int) -> bool:
        """Return whether a fold with so many verdict changes is to end, so that they are stored, or so that the state is read."""
        return changes >= MOST_CHANGES or self._spent >= self._fold_seconds

    def events(self, benchmark: PairState) -> int:
        """Return how many of the next events of a benchmark to fold in one slice: each meets every contestant."""
        contestants = max(1, len(benchmark.contestants))
        new = benchmark.pairs - benchmark.met > _FEW_NEW
        self._boards[benchmark.name] = _most_bytes(benchmark, contestants, new=new)
        bets = benchmark.spec.scores == "graded" or benchmark.spec.weights is not None
        updates = self._updates.setdefault((benchmark.name, new), _FIRST_UPDATES[new] / (_BETS if bets else 1))
        self._last, self._slice = ((benchmark.name, new), contestants), 0.0
        return min(max(_LEAST_EVENTS, int(updates) // contestants), CHUNK_CELLS)

    def took(self, seconds: float, *, whole: bool = True) -> None:
        """Record how long the slice took for which `events` was asked last, or a part of it that is not yet the whole."""
        self._spent += seconds
        self._slice += seconds
        if self._last is None or not whole:
            return
        (key, contestants), self._last = self._last, None
        factor = min(max(_SECONDS / max(self._slice, 1e-9), _SHRINK), _GROW)
        self._updates[key] = min(max(self._updates[key] * factor, _LEAST_EVENTS), CHUNK_CELLS * contestants)


def _most_bytes(benchmark: PairState, contestants: int, *, new: bool) -> float:
    """Return how large a piece with a benchmark may be, so that few verdict changes, and few new pairs, come at once."""
    policy = benchmark.spec.order.policy
    if policy == "none" and not new:
        return inf
    if contestants <= WIDE:
        return _PIECE_CHANGES // contestants
    waits = policy in {"committed", "completion"}
    return (_WAITING_PIECE_BYTES if waits else _WIDE_PIECE_BYTES) // contestants


class Whole(Pace):
    """One slice for as much as can be folded at once, and a whole chunk: for callers that serve nobody else."""

    def piece(self) -> tuple[int, float]:
        """Return as much as is folded fastest."""
        return PIECE_RECORDS, _PIECE_BYTES

    def is_enough(self, changes: int) -> bool:  # noqa: ARG002 - as for any
        """Return False."""
        return False

    def events(self, benchmark: PairState) -> int:  # noqa: ARG002 - as for any
        """Return all of it."""
        return CHUNK_CELLS
