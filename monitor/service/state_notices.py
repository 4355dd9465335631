"""Notify one target of states that last, each once, also where a benchmark moves to another worker."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from monitor.engine.chunk_fold import Partition
from monitor.notify.notifier import Notifier
from monitor.notify.states import Due, StateWatch
from monitor.service.folded_partition import FoldedPartition
from monitor.state_lock import StateTorn
from monitor.store.errors import StoreError
from monitor.store.layout import CommitTimes
from monitor.store.redis_store import RedisStore
from monitor.view.from_state import board_view
from monitor.view.news import board_state
from monitor.view.values import BoardState


class StateNotices:
    """Looks at the benchmarks of this process, and sends what is due."""

    # What was accepted is noted in the store, so neither a restart nor the next owner of a benchmark sends it again; a crash in between
    # does, with the same id.

    def __init__(
        self,
        notifier: Notifier,
        watch: StateWatch,
        store: RedisStore,
        partitions: Callable[[], Sequence[FoldedPartition]],
    ) -> None:
        self._notifier, self._watch, self._store, self._partitions = notifier, watch, store, partitions
        self._noted: dict[int, dict[str, str]] = {}  # what this process has noted of each partition

    def change(self, held_seconds: float, stalled_seconds: float) -> None:
        """Take other times, from the next look on."""
        self._watch.change(held_seconds, stalled_seconds)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._watch.look_seconds)
            for folded in self._partitions() if self._watch.watches else ():
                with contextlib.suppress(StoreError, TimeoutError, StateTorn):  # the next look finds the same
                    await self._send(folded)

    async def _send(self, folded: FoldedPartition) -> None:
        noted = await self._notes(folded.number)
        states = await folded.read_briefly(lambda state: _states(state, folded.commit_times))
        due = self._watch.look(f"{self._store.topic}/{folded.number}", states, noted)
        if sent := [each.notification for each in due if each.notification is not None]:
            await self._notifier.announce(sent)
        await self._note(folded.number, due)

    async def _notes(self, partition: int) -> dict[str, str]:
        """Return what is noted, and write back what the store has lost of it."""
        stored = await self._store.notes(partition, self._notifier.target.name)
        ours = self._noted.get(partition, {})
        if lost := {field: value for field, value in ours.items() if field not in stored}:
            await self._store.note(partition, self._notifier.target.name, lost)
        return ours | stored

    async def _note(self, partition: int, due: Sequence[Due]) -> None:
        if due:
            values = {each.field: each.value for each in due}
            self._noted.setdefault(partition, {}).update(values)  # first: the store may not answer
            await self._store.note(partition, self._notifier.target.name, values)


def _states(partition: Partition, commit_times: Mapping[str, CommitTimes]) -> list[BoardState]:
    """Return the state of each benchmark that takes records."""
    return [
        board_state(board_view(benchmark), commit_times[name].last)
        for name, benchmark in partition.benchmarks.items()
        if name in commit_times and partition.boards.refusal(name) is None
    ]
