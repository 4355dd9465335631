"""The embedded default: one process that owns a data directory, with its log, its state and its feed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from faust.types import TP

from monitor.app.intake import Declare, FileIntake
from monitor.app.partition_worker import PartitionWorker
from monitor.app.process import MonitorProcess
from monitor.engine.partition import Partition
from monitor.engine.state.delta import DeadLetter
from monitor.ingest.dead_letter_file import DeadLetterFile
from monitor.ingest.files.paths import DATA_MARK
from monitor.logs.faust_app import FaustApp, make_app
from monitor.logs.file_log import FileLog
from monitor.publish.feed_file import FeedFile
from monitor.retries import RetryPolicy
from monitor.settings import LOG_NAME, Settings
from monitor.store.errors import StoreError
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from schemas.changes import VerdictChange

log = structlog.get_logger()

PARTITION = 0
"""The embedded default has one partition."""

_SERVER_LOOK_SECONDS = 0.5


class _Letters:
    """Keeps dead letters in a file, without stopping the event loop for its fsync."""

    def __init__(self, file: DeadLetterFile) -> None:
        self._file = file

    async def keep(self, partition: int, letters: Sequence[DeadLetter]) -> int:  # noqa: ARG002 - there is one
        return await asyncio.to_thread(self._file.write, letters)


class EmbeddedMonitor(MonitorProcess):
    """What is appended to `log` is folded, committed, relayed and served.

    Parameters
    ----------
    settings : Settings
    on_change : callable, optional
        Called with each verdict change after it has been relayed.
    serve : bool
        Whether to serve HTTP.
    declare : callable, optional
        Gives the declaration of a benchmark that begins with events that are posted, and that nobody has declared.
    """

    mode = "watch"
    log: FileLog

    def __init__(
        self,
        settings: Settings,
        *,
        on_change: Callable[[VerdictChange], None] | None = None,
        serve: bool = True,
        declare: Declare | None = None,
    ) -> None:
        super().__init__(settings)
        self._on_change, self._serve, self._declare = on_change, serve, declare
        self._started = False
        self._valkey: EmbeddedValkey | None = None

    # --- start and stop ---------------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        folder = self.settings.data_dir.absolute()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / DATA_MARK).touch()
        self.log = FileLog.open(folder / LOG_NAME)
        self._cleanup.push_async_callback(self.log.close)
        if self.log.bytes_cut:
            log.warning("a torn last line was cut off the log", bytes=self.log.bytes_cut)
        self.store = await self._open_store(folder)
        self._cleanup.push_async_callback(self.store.close)
        await self.store.bind_log(PARTITION, self.log.identity)
        self.dead_letters_path = folder / "dead-letters.jsonl"
        letters = DeadLetterFile(self.dead_letters_path)
        self._cleanup.callback(letters.close)
        feed = FeedFile(folder / "verdicts.jsonl")
        owned = PartitionWorker(
            PARTITION,
            self.store,
            await self._publishers(feed, PARTITION),
            _Letters(letters),
            first_offset=self.log.first_offset,
            listener=self._on_change,
            process_metrics=self.process_metrics,
        )
        self.process_metrics.add_partition(PARTITION)
        await owned.load()
        self.log.check_offset(owned.partition.off)
        self.partitions[PARTITION] = owned
        await owned.relay.drain()

        self._faust = self._make_faust(folder / LOG_NAME)
        await self._faust.start()
        self._cleanup.push_async_callback(self._stop_folding)
        self._tasks += [asyncio.create_task(owned.run_relays()), asyncio.create_task(self._snapshots())]
        if self._serve:
            await self._start_web()
        self._started = True

    async def _open_store(self, folder: Path) -> RedisStore:
        retries = RetryPolicy(timeout=self.settings.start_seconds)
        url = self.settings.redis_url
        if url is not None:
            return await RedisStore.open(url.get_secret_value(), self.settings.topic, retries=retries)
        self._valkey = valkey = EmbeddedValkey(folder)
        await valkey.start()
        self._cleanup.push_async_callback(valkey.stop)
        retries = replace(retries, check=self._check_valkey)
        return await RedisStore.open(valkey.options, self.settings.topic, retries=retries)

    def _check_valkey(self) -> None:
        if self._valkey is not None and not self._valkey.running:
            raise StoreError(
                f"the embedded Valkey has ended (its last words: {self._valkey.directory / 'valkey.log'}): start again; what is in the "
                "log is neither lost nor counted twice"
            )

    def _make_faust(self, path: Path) -> FaustApp:
        app = make_app(path.as_uri(), self.settings.topic, app_id="rankwatch")
        app.file_log = self.log
        owned = self.partitions[PARTITION]

        async def stored_offsets(partitions: set[TP]) -> Mapping[TP, int]:
            return dict.fromkeys(partitions, owned.partition.off)

        async def fold(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
            async for chunk in stream:
                if not await owned.fold(chunk):
                    await app.consumer.seek_wait(dict.fromkeys(app.consumer.assignment(), owned.partition.off))

        app.stored_offsets = stored_offsets
        app.agent(app.chunks, name="fold")(fold)
        return app

    async def _stop_folding(self) -> None:
        # Stopping Faust cancels the agent wherever it waits: let the chunk in hand be committed first.
        self._faust.flow_control.suspend()
        async with self.partitions[PARTITION].busy():
            await self._faust.stop()
        await self._end_tasks()
        await self.partitions[PARTITION].release()

    # --- what is known ----------------------------------------------------------------------------------------------------------------

    @property
    def partition(self) -> Partition:
        """The state."""
        return self.partitions[PARTITION].partition

    @property
    def lag(self) -> int:
        """Bytes of the log that are not folded and committed yet."""
        return self.log.durable_end - self.partitions[PARTITION].committed

    @property
    def dead_letters_written(self) -> int:
        """Dead letters that this process has written."""
        return self.partitions[PARTITION].dead_letters_kept

    def _intake(self) -> FileIntake:
        return FileIntake(self.log, lambda name: name in self.partition.benchmarks, self._declare)

    def _log_ends(self) -> dict[int, int]:
        return {PARTITION: self.log.durable_end}

    def _log_partitions(self) -> int:
        return 1

    def _waiting_for(self) -> str | None:
        if not self._started:
            return "starting"
        late = self.lag > self._faust.chunk_bytes
        return f"catching up: {self.lag:,} bytes of the log are not folded yet" if late else None

    # --- waiting ----------------------------------------------------------------------------------------------------------------------

    async def caught_up(self) -> None:
        """Wait until everything that is in the log now has been folded, committed and relayed; raise what stops the fold."""
        owned = self.partitions[PARTITION]
        moved = asyncio.create_task(owned.moved_beyond(self.log.durable_end))
        failed = asyncio.create_task(self.failed())
        try:
            await asyncio.wait({moved, failed}, return_when=asyncio.FIRST_COMPLETED)
            if not moved.done():
                failed.result()
        finally:
            moved.cancel()
            failed.cancel()
        await owned.relay.drain()

    def _watchers(self) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self._valkey_gone())]

    async def _valkey_gone(self) -> None:
        while True:
            self._check_valkey()
            await asyncio.sleep(_SERVER_LOOK_SECONDS)
