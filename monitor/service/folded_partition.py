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
from monitor.engine.chunk_fold import ChunkFold, Partition
from monitor.engine.limits import Limits
from monitor.engine.state.changes import Delta
from monitor.engine.state.stored import StoredState
from monitor.instruments import ProcessMetrics
from monitor.state_lock import StateLock, StateTorn
from monitor.store.layout import CommitTimes
from schemas.records.chunks import Chunk
from schemas.records.packed import MOST_CHANGES
from stats.numerics.pairs import pair_count

log = structlog.get_logger()

_Result = TypeVar("_Result")

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
    most_changes = MOST_CHANGES  # and so many verdict changes

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
        self._state = state or StateLock()
        self._process_metrics = process_metrics or ProcessMetrics()
        self.torn = False
        self.committed = 0
        self.last: tuple[int, str] | None = None
        self.commit_times: dict[str, CommitTimes] = {}

    @property
    def readable(self) -> Partition:
        """The state, for those who show it; never while a thread folds into it."""
        if self.torn:
            raise StateTorn
        self._state.check_at_rest()
        return self.partition

    @property
    def off(self) -> int:
        """How far the log is folded, for those who show it."""
        if self.torn:
            raise StateTorn
        return self.partition.off

    async def read_briefly(self, work: Callable[[Partition], _Result]) -> _Result:
        """Run work that takes no turn and hardly any time on the state between two chunks."""
        return await self._state.read_briefly(lambda: work(self.readable))

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
        """Fold a chunk in memory, in a thread: the loops hold no lock, so that the event loop serves others meanwhile."""
        clock = asyncio.get_running_loop().time
        async with self._change():  # also while it is loaded again: no report is of a state between two chunks
            folding, end = ChunkFold(self.partition, chunk), clock() + self.fold_seconds

            def advance() -> Delta | None:
                changes = folding.is_whole or folding.step()
                ends = folding.is_whole or changes >= self.most_changes or clock() >= end
                return folding.finish() if ends else None

            try:
                with self._process_metrics.fold_seconds.time():
                    delta = None
                    while delta is None:
                        delta = await self._state.in_thread(advance)
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
