"""Run the monitor in one process over a data directory that holds its log, state and feed."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI
from faust.types import TP

from monitor.crash_points import crash_point
from monitor.engine.chunk_fold import Partition
from monitor.engine.state.changes import record_digest
from monitor.files.dead_letter_file import DeadLetterFile
from monitor.files.declaration_file import Declare
from monitor.files.streams.paths import DATA_MARK
from monitor.log.errors import LogDamaged
from monitor.log.faust_app import FaustApp, make_app
from monitor.log.file.log import FileLog
from monitor.publish.feed_file import FeedFile
from monitor.retries import RetryPolicy
from monitor.serve.application import make_application
from monitor.serve.metrics.catalogue import Mode
from monitor.serve.serving import Scrape
from monitor.service.intake import FileIntake
from monitor.service.owned_partition import LogSpan, Outlets, PartitionWorker
from monitor.service.process import MonitorProcess, end_tasks
from monitor.settings import LOG_NAME, Settings
from monitor.store.errors import StoreError
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import DeadLetter
from schemas.records.operations import BoardChange
from schemas.records.producers import in_packed_record
from schemas.results.changes import AnyChange

log = structlog.get_logger()

PARTITION = 0  # the only partition of a file log

_VALKEY_CHECK_SECONDS = 0.5

_CHECK_RECORDS = 2_000  # records that are checked at a time: others have their turns in between


class EmbeddedMonitor(MonitorProcess):
    """Folds, commits, relays and serves the records appended to `log`."""

    mode: Mode = "watch"
    log: FileLog

    def __init__(
        self,
        settings: Settings,
        *,
        on_change: Callable[[AnyChange], None] | None = None,
        serve: bool = True,
        declare: Declare | None = None,
        watched: Sequence[str] = (),
    ) -> None:
        super().__init__(settings)
        self._on_change, self._serve, self._declare, self._watched = on_change, serve, declare, watched
        self._started = False
        self._folded_is_checked = asyncio.Event()
        self._valkey: EmbeddedValkey | None = None

    async def _start(self) -> None:
        folder = self.settings.data_dir.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OSError(f"{folder} cannot be created ({error.strerror}); choose another --data-dir") from error
        (folder / DATA_MARK).touch(mode=0o600)
        self.log = FileLog.open(folder / LOG_NAME)
        self._cleanup.push_async_callback(self.log.close)
        if self.log.bytes_cut:
            log.warning("cut a torn last line off the log", bytes=self.log.bytes_cut)
        self.store = await self._open_store(folder)
        self._cleanup.push_async_callback(self.store.close)
        await self.store.bind_log(PARTITION, self.log.identity)
        self.dead_letters_path = folder / "dead-letters.jsonl"
        letters = DeadLetterFile(self.dead_letters_path)
        self._cleanup.callback(letters.close)

        async def keep(_: int, new: Sequence[DeadLetter]) -> int:
            return await asyncio.to_thread(letters.write, new)  # it waits for the disk

        feed = FeedFile(folder / "verdicts.jsonl")
        worker = PartitionWorker(
            PARTITION,
            self.store,
            Outlets(
                await self._publishers(feed, PARTITION),
                self._news_publishers(PARTITION),
                self._on_change,
                self.settings.outbox_changes,
            ),
            keep,
            LogSpan(self.log.first_offset, end=self.log.durable_end),
            producer_of=in_packed_record,
            process_metrics=self.process_metrics,
            state=self._state,
        )
        self.process_metrics.add_partition(PARTITION, self.settings.outbox_changes)
        await worker.load()
        self.log.check_offset(worker.partition.off)
        self._check_last_record(worker.last)
        self._tasks.append(asyncio.create_task(self._check_folded(worker.partition.off)))
        self.partitions[PARTITION] = worker
        await worker.relay.drain()

        self._faust = self._make_faust(folder / LOG_NAME)
        await self._faust.start()
        self._cleanup.push_async_callback(self._stop_folding)
        self._tasks += [asyncio.create_task(worker.run_relays()), asyncio.create_task(self._snapshots())]
        if self._serve:
            await self._start_web()
        self._started = True

    def _check_last_record(self, last: tuple[int, str] | None) -> None:
        """Raise `LogDamaged` if the log holds another record where the last one was folded."""
        if last is None:
            return
        offset, digest = last
        chunk = self.log.read(offset, 1)
        if chunk is not None and chunk.lost:
            return  # the state has it
        if chunk is None or record_digest(chunk.records[0]) != digest:
            raise LogDamaged(
                f"{self.log.path} holds another record at byte {offset} than the last one that was folded, because it was replaced by an "
                "older copy and extended; restore it, or delete the state (the folder valkey next to it) to fold this log from its start"
            )

    async def _check_folded(self, end: int) -> None:
        """Read what is folded already, and raise `LogDamaged` where a line does not match: nothing else would read it again."""
        offset = self.log.first_offset
        while offset < end:
            chunk = await asyncio.to_thread(self.log.read, offset, _CHECK_RECORDS)
            assert chunk is not None, "the log is not shorter than what is folded"
            offset = chunk.end
            crash_point("check")
        self._folded_is_checked.set()
        await asyncio.Event().wait()  # a task of a process ends only by raising

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
                f"the embedded Valkey has ended (its log: {self._valkey.directory / 'valkey.log'}); start again; no event is lost or "
                "counted twice"
            )

    def _make_faust(self, path: Path) -> FaustApp:
        app = make_app(path.as_uri(), self.settings.topic, app_id="rankwatch")
        app.file_log = self.log
        worker = self.partitions[PARTITION]

        async def stored_offsets(partitions: set[TP]) -> Mapping[TP, int]:
            return dict.fromkeys(partitions, worker.partition.off)

        async def fold(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
            async for chunk in stream:
                if not await worker.fold(chunk):
                    await app.consumer.seek_wait(dict.fromkeys(app.consumer.assignment(), worker.partition.off))
                await worker.wait_for_room()

        app.stored_offsets = stored_offsets
        app.fold_by(fold)
        return app

    async def _stop_folding(self) -> None:
        # Stopping Faust cancels the agent wherever it waits, so let the current chunk be committed first.
        self._faust.flow_control.suspend()
        self.partitions[PARTITION].ending = True
        try:
            async with asyncio.timeout(0.3 * self.settings.drain_seconds):
                await self.partitions[PARTITION].folding.acquire()
        except TimeoutError:
            log.warning("the current chunk was not finished in time; the next start folds it again")
            await self._faust.stop()
        else:
            try:
                await self._faust.stop()
            finally:
                self.partitions[PARTITION].folding.release()
        await end_tasks(self._tasks)
        await self.partitions[PARTITION].release()

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

    def _application(self, scrape: Scrape) -> FastAPI:
        intake = FileIntake(
            self.log, lambda name: name in self.partition.benchmarks, lambda: self.partition.off, self._declare
        )
        self._cleanup.push_async_callback(intake.undoes.stop)
        for entry in self.partition.boards:
            if (undo := entry.unfinished) is not None:
                change = BoardChange("undo", entry.benchmark, None, undo.producer, undo.since, undo.model)
                intake.go_on(change, self._at_rest)
        return make_application(self._read_side(scrape, intake, self._watched))

    async def _record(self, partition: int, offset: int) -> bytes | None:  # noqa: ARG002 - the log has one
        chunk = self.log.read(offset, 1)
        return None if chunk is None or chunk.lost else chunk.records[0]

    def _log_ends(self) -> dict[int, int]:
        return {PARTITION: self.log.durable_end}

    def _log_partitions(self) -> int:
        return 1

    def _waiting_for(self) -> str | None:
        if not self._started:
            return "starting"
        lag = self.lag
        return f"catching up: {lag:,} bytes of the log are not folded yet" if lag > self._faust.chunk_bytes else None

    async def _at_rest(self) -> PartitionView:
        await self._state.at_rest()
        return PartitionView(self.partition)

    async def caught_up(self) -> None:
        """Wait until the current log is folded, committed and relayed, and at rest; raise the error that stops the fold."""
        worker = self.partitions[PARTITION]
        await self._unless_failed(worker.moved_beyond(self.log.durable_end))
        await worker.relay.drain()
        await self._state.at_rest()

    async def checked(self) -> None:
        """Wait until what was folded at the start is checked; raise `LogDamaged` if it was changed."""
        await self._unless_failed(self._folded_is_checked.wait())

    async def _unless_failed(self, awaited: Coroutine[Any, Any, object]) -> None:
        waiting = asyncio.create_task(awaited)
        failed = asyncio.create_task(self.failed())
        try:
            await asyncio.wait({waiting, failed}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                failed.result()
        finally:
            waiting.cancel()
            failed.cancel()

    def _watchers(self) -> list[asyncio.Task[Any]]:
        return [*super()._watchers(), asyncio.create_task(self._watch_valkey())]

    async def _watch_valkey(self) -> None:
        while True:
            self._check_valkey()
            await asyncio.sleep(_VALKEY_CHECK_SECONDS)
