"""The monitor, wired: log -> fold -> store -> relay, and the surfaces that read the state."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog
from faust.types import TP
from prometheus_client import CollectorRegistry

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.ingest.dead_letters import DeadLetterFile
from monitor.ingest.limit import TooManyRejected
from monitor.logs.filelog import FileLog, LogError
from monitor.logs.worker import WorkerApp, make_app
from monitor.publish.feed_file import FeedFile
from monitor.publish.relay import Relay
from monitor.serve.board import Board
from monitor.serve.metrics import StateCollector
from monitor.serve.web import WebServer, make_web
from monitor.settings import LOOPBACK, Settings
from monitor.store.connection import Retries
from monitor.store.embedded import EmbeddedValkey
from monitor.store.errors import StaleState, StoreError
from monitor.store.redis_store import RedisStore
from schemas.changes import VerdictChange

log = structlog.get_logger()

PARTITION = 0
"""The embedded default has one partition."""

_SERVER_LOOK_SECONDS = 0.5


def start_faults() -> tuple[type[Exception], ...]:
    """Return what can go wrong from outside, and says itself what to do."""
    return (LogError, StoreError, TooManyRejected, OSError, ValueError)


class Monitor:
    """The embedded default: one process that owns a data directory.

    Use it as an async context manager. What is appended to `log` is folded, committed, relayed and served.

    Parameters
    ----------
    settings : Settings
    on_change : callable, optional
        Called with each verdict change after it has been relayed.
    on_chunk : callable, optional
        Called with the partition after each chunk has been committed.
    serve : bool
        Whether to serve HTTP.
    """

    log: FileLog
    partition: Partition
    store: RedisStore

    def __init__(
        self,
        settings: Settings,
        *,
        on_change: Callable[[VerdictChange], None] | None = None,
        on_chunk: Callable[[Partition], None] | None = None,
        serve: bool = True,
    ) -> None:
        self.settings = settings
        self.board = Board(lambda: [self.partition])
        self._on_change, self._on_chunk = on_change, on_chunk
        self._serve = serve
        self._progress = asyncio.Event()
        self._folding = asyncio.Lock()
        self._cleanup = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []
        self._saved: dict[str, int] = {}
        self._started = False
        self._committed = 0
        self.dead_letters_written = 0
        self.web: WebServer | None = None
        self._valkey: EmbeddedValkey | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._cleanup.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cleanup.aclose()

    # --- start and stop ---------------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        settings = self.settings
        folder = settings.data_dir.absolute()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log = FileLog.open(folder / "log.jsonl")
        self._cleanup.push_async_callback(self.log.close)
        if self.log.bytes_cut:
            log.warning("a torn last line was cut off the log", bytes=self.log.bytes_cut)
        self.store = await self._open_store(folder)
        self._cleanup.push_async_callback(self.store.close)
        await self.store.bind_log(PARTITION, self.log.identity)
        self.dead_letters_path = folder / "dead-letters.jsonl"
        self._dead_letters = DeadLetterFile(self.dead_letters_path)
        self._cleanup.callback(self._dead_letters.close)
        await self._load()
        self._relay = Relay(self.store, PARTITION, FeedFile(folder / "verdicts.jsonl"), self._on_change)
        await self._relay.drain()

        self._faust = self._make_faust(folder / "log.jsonl")
        await self._faust.start()
        self._cleanup.push_async_callback(self._stop_folding)
        self._tasks += [asyncio.create_task(self._relay.run()), asyncio.create_task(self._snapshots())]
        if self._serve:
            await self._start_web()
        self._started = True

    async def _open_store(self, folder: Path) -> RedisStore:
        retries = Retries(deadline=self.settings.start_seconds)
        url = self.settings.redis_url
        if url is not None:
            return await RedisStore.open(url.get_secret_value(), self.settings.topic, retries=retries)
        self._valkey = valkey = EmbeddedValkey(folder)
        await valkey.start()
        self._cleanup.push_async_callback(valkey.stop)
        return await RedisStore.open(
            valkey.options, self.settings.topic, retries=replace(retries, sleep=self._wait_for_valkey)
        )

    async def _wait_for_valkey(self, seconds: float) -> None:
        """Wait before the server is tried again, unless it has ended: then it will not come back."""
        self._check_valkey()
        await asyncio.sleep(seconds)

    def _check_valkey(self) -> None:
        if self._valkey is not None and not self._valkey.running:
            raise StoreError(
                f"the embedded Valkey has ended (its last words: {self._valkey.directory / 'valkey.log'}): start again; what is in the "
                "log is neither lost nor counted twice"
            )

    def _make_faust(self, path: Path) -> WorkerApp:
        app = make_app(path.as_uri(), self.settings.topic, app_id="rankwatch")
        app.file_log = self.log

        async def stored_offsets(partitions: set[TP]) -> Mapping[TP, int]:
            return dict.fromkeys(partitions, max(self.partition.off, self.log.first_offset))

        async def fold(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
            async for chunk in stream:
                await self._fold(chunk)

        app.stored_offsets = stored_offsets
        app.agent(app.chunks, name="fold")(fold)
        return app

    async def _start_web(self) -> None:
        registry = CollectorRegistry()
        registry.register(StateCollector(self.board, lambda: {PARTITION: self.log.durable_end}))
        token = self.settings.token.get_secret_value() if self.settings.token else None
        web = make_web(self.board, registry, self._waiting_for, token=token, loopback=self.settings.host in LOOPBACK)
        self.web = WebServer(web, self.settings.host, self.settings.port)
        self._cleanup.push_async_callback(self.web.stop)
        await self.web.start()

    async def _stop_folding(self) -> None:
        # Stopping Faust cancels the agent wherever it waits: let the chunk in hand be committed first.
        self._faust.flow_control.suspend()
        async with self._folding:
            await self._faust.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._relay.drain()
        await self._save_pairs()

    def _waiting_for(self) -> str | None:
        if not self._started:
            return "starting"
        late = self.behind > self._faust.chunk_bytes
        return f"catching up: {self.behind:,} bytes of the log are not folded yet" if late else None

    # --- the way of a chunk -----------------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        self.partition = Partition.restore(await self.store.load(PARTITION))
        if self.partition.off == 0:
            self.partition.off = self.log.first_offset
        self.log.check_offset(self.partition.off)
        self._committed = self.partition.off
        self._saved = {name: benchmark.off for name, benchmark in self.partition.benchmarks.items()}

    async def _fold(self, chunk: Chunk) -> None:
        async with self._folding:
            await self._fold_chunk(chunk)

    async def _fold_chunk(self, chunk: Chunk) -> None:
        if chunk.start != self.partition.off:
            return  # read before a seek; what follows from the stored offset is on its way
        delta = self.partition.fold(chunk)
        if delta.dead_letters:
            self.dead_letters_written += self._dead_letters.write(delta.dead_letters)
        try:
            await self.store.commit(delta)
        except StaleState as error:
            log.warning("the stored state has moved: loading it again", reason=str(error))
            await self._load()
            await self._faust.consumer.seek_wait(dict.fromkeys(self._faust.consumer.assignment(), self.partition.off))
            return
        if any(benchmark.changes for benchmark in delta.benchmarks):
            self._relay.wake()
        self._committed = delta.off
        self._progress.set()
        if self._on_chunk is not None:
            self._on_chunk(self.partition)

    async def _snapshots(self) -> None:
        while True:
            await asyncio.sleep(self.settings.snapshot_seconds)
            await self._save_pairs()

    async def _save_pairs(self) -> None:
        """Save the pair sums of benchmarks that have moved: a restart then need not rebuild them."""
        for name, benchmark in list(self.partition.benchmarks.items()):
            if self._saved.get(name) != benchmark.off:
                snapshot = benchmark.snapshot()
                await self.store.save_pairs(PARTITION, benchmark.key, snapshot)
                self._saved[name] = snapshot.off

    @property
    def behind(self) -> int:
        """Bytes of the log that are not folded and committed yet."""
        return self.log.durable_end - self._committed

    @property
    def rejected(self) -> int:
        """Records that could not be read, in whichever benchmark."""
        return self.partition.counters["rejected"] + sum(
            b.counters["rejected"] for b in self.partition.benchmarks.values()
        )

    # --- waiting ----------------------------------------------------------------------------------------------------------------------

    async def caught_up(self) -> None:
        """Wait until everything that is in the log now has been folded, committed and relayed; raise what stops the fold."""
        target = self.log.durable_end
        failed = asyncio.create_task(self.failed())
        try:
            while self._committed < target:
                self._progress.clear()
                moved = asyncio.create_task(self._progress.wait())
                done, _ = await asyncio.wait({moved, failed}, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
                if failed in done:
                    failed.result()
        finally:
            failed.cancel()
        await self._relay.drain()

    async def failed(self) -> None:
        """Wait until the fold, the relay or the embedded Valkey fails, and raise the reason."""
        ends = [asyncio.create_task(self._faust.wait_failed()), asyncio.create_task(self._valkey_gone()), *self._tasks]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends[:2]:
                task.cancel()
        for task in done:
            task.result()

    async def _valkey_gone(self) -> None:
        while True:
            self._check_valkey()
            await asyncio.sleep(_SERVER_LOOK_SECONDS)
