"""Load one partition from the store, and fold chunks of its log: what a worker and a reader share."""

import asyncio
import contextlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, TypeVar

import structlog

from monitor.background import in_background
from monitor.engine.chunk_fold import Partition
from monitor.engine.limits import Limits
from monitor.engine.pace import Pace
from monitor.engine.slices import Slices
from monitor.engine.state.changes import Delta
from monitor.engine.state.stored import StoredState
from monitor.instruments import ProcessMetrics
from monitor.state_lock import StateLock, StateTorn
from monitor.store.commit_times import CommitTimes
from schemas.records.chunks import Chunk
from stats.numerics.pairs import pair_count

log = structlog.get_logger()

_PIECES: Final = 4
"""A piece of many benchmarks may have four times as many records as others: as many as a chunk from Kafka."""

_LARGE: Final = 100_000  # pairs of a state; a benchmark counts as a hundred


def _is_large(stored: StoredState) -> bool:
    """Return whether restoring a state takes long enough for others to wait."""
    return sum(100 + pair_count(len(benchmark.contestants)) for benchmark in stored.benchmarks) > _LARGE


class FoldCrashed(Exception):  # noqa: N818 - what happened
    """The engine raised an error that is its own: not of the store, the brokers or the machine."""


class FoldedPartition(ABC):
    """The fold of one partition in memory."""

    partition: Partition  # the state; another object after each load. Who shows it reads `readable`.
    fold_seconds: float  # fold so long at a time, and the piece under way

    def __init__(
        self,
        number: int,
        *,
        owner: Callable[[str], int] | None = None,
        limits: Limits | None = None,
        process_metrics: ProcessMetrics | None = None,
        state: StateLock | None = None,
    ) -> None:
        self.number = number
        self._owner, self._limits = owner, limits
        self._state, self._pace = state or StateLock(), Pace(self.fold_seconds, most_pieces=_PIECES)
        self._process_metrics = process_metrics or ProcessMetrics()
        self.torn = False
        self.committed = 0
        self.last: tuple[int, str] | None = None
        self.commit_times: dict[str, CommitTimes] = {}

    @property
    def readable(self) -> Partition:
        """The state, for those who show it."""
        if self.torn:
            raise StateTorn
        return self.partition

    async def _restore(self, stored: StoredState) -> None:
        """Replace the state in memory by a stored one."""
        self.last = stored.last
        restore = partial(Partition.restore, stored, self._limits, self._owner)
        # The sums of large benchmarks take seconds, in which probes are answered.
        self.partition = await in_background(restore) if _is_large(stored) else restore()
        self.torn = False

    @contextlib.asynccontextmanager
    async def _change(self) -> AsyncIterator[None]:
        """Hold the lock of the state and change it inside the context; an error leaves it torn, unless it was loaded again."""
        async with self._state.change():
            before = self.partition
            try:
                yield
            except BaseException:
                self.torn = self.partition is before
                raise

    @abstractmethod
    async def _go_back(self) -> None:
        """Load the stored state again after a fold that has ended within a chunk."""

    async def _fold(self, chunk: Chunk) -> Delta:
        """Fold a chunk in memory; between its slices others have their turns."""
        async with self._change():  # also while it is loaded again: nobody reads a state between two offsets
            try:
                with self._process_metrics.fold_seconds.time():
                    delta = await in_turns(self.partition.fold_in_slices(chunk, self._pace), self._pace)
            except MemoryError:
                raise  # of the machine, not of a record
            except Exception as error:
                log.error(  # noqa: TRY400 - the locals of a traceback are questions of an evaluation
                    "a chunk crashes the fold",
                    partition=self.number,
                    offset=chunk.start,
                    end=chunk.end,
                    error=repr(error)[:200],
                    place="".join(traceback.format_tb(error.__traceback__)[-2:]),
                )
                await self._go_back()
                raise FoldCrashed from error
            self._process_metrics.chunk_records.observe(delta.records)
            self.last = delta.last or self.last
            return delta


_Result = TypeVar("_Result")

_SECONDS: Final = 0.02  # time after which others get a turn, once the slice has ended; most chunks take less

_TURNS: Final = 8  # passes of the event loop in a turn: a request needs a few from its connection to its answer


async def in_turns(work: Slices[_Result], pace: Pace) -> _Result:
    """Run all slices at their pace, and return the result."""
    clock = asyncio.get_running_loop().time
    end = clock() + _SECONDS
    while True:
        start = clock()
        try:
            whole = next(work)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        now = clock()
        pace.took(now - start, whole=whole)
        if now >= end:
            await _turn()
            end = clock() + _SECONDS


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
