"""Serve the boards of all partitions of a Kafka topic: the read side of the service. It writes neither to Redis nor to the group."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from time import monotonic
from typing import Final

import structlog
from aiokafka.errors import KafkaError
from fastapi import FastAPI

from monitor.log.errors import OffsetOutOfRange
from monitor.log.kafka.follower import KafkaFollower
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_producer import KafkaProducer
from monitor.retries import RetryPolicy
from monitor.serve.application import make_application
from monitor.serve.metrics.catalogue import Mode
from monitor.serve.serving import Scrape
from monitor.service.folded_partition import FoldCrashed
from monitor.service.followed_partition import PartitionReader
from monitor.service.freshness import Freshness
from monitor.service.intake import KafkaIntake
from monitor.service.process import ServedProcess, end_tasks, freeze_heap, run_together
from monitor.service.source_topic import SourceGap, SourceTopic, linger
from monitor.settings import Settings
from monitor.store.errors import StoreUnavailable
from monitor.store.state_reader import StateReader, StoredPosition
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner

log = structlog.get_logger()

_COMPARE_STORE_SECONDS: Final = 0.25
_LOAD_TIMES_SECONDS: Final = 1.0
_LOAD_TIMES_REST: Final = 10  # commit times are loaded again after this many times the time that it took
_SEE_ENDS_SECONDS: Final = 0.25
_COMPARE_SET_ASIDE_SECONDS: Final = 5.0
_CHECK_TOPIC_SECONDS: Final = 1.0
_COMPARE_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 1.0
"""How long to wait before something is tried again that a worker, a store or a broker has to do first."""


class Reader(ServedProcess):
    """Folds every partition from the stored state on, and serves the result."""

    mode: Mode = "serve"

    def __init__(self, settings: Settings, kafka: KafkaSettings, benchmarks: str | None = None) -> None:
        shown: Callable[[str], bool] | None = None
        if benchmarks is not None:
            shown = lambda name: fnmatchcase(name, benchmarks)  # noqa: E731
        super().__init__(settings, shown=shown)
        self._reloads, self._key_missing = self.process_metrics.add_reader(self.age)
        self._kafka = kafka
        self._broker_up = self.process_metrics.add_broker()
        self._source = SourceTopic(settings, kafka)
        self._readers: dict[int, PartitionReader] = {}  # the partitions, once all are loaded
        self._follower: KafkaFollower | None = None
        self._freshness = Freshness([])
        self._loading: str | None = "starting"  # why the state cannot be shown, or None
        self._key: OriginKey | None = None
        """Verifies the origins of copies, and signs who sent a request; None before a worker has drawn it."""
        self._secret: bytes | None = None  # the signing key that Redis had when it was asked last
        self._stored: list[StoredPosition] = []
        """How far the store was when it was asked last; empty once that is compared."""
        self._stored_set_aside: list[frozenset[tuple[str, int]]] = []
        """What the store had set aside when it was asked last; empty once that is compared."""

    def _folded(self) -> Sequence[PartitionReader]:
        return list(self._readers.values())

    async def _start(self) -> None:
        settings = self.settings
        async with asyncio.timeout(settings.start_seconds):
            await self._source.require()
        self._freshness = Freshness(list(range(self._source.partitions)))
        assert settings.redis_url is not None, "the command asks for it"
        retries = RetryPolicy(timeout=settings.start_seconds)
        self.store = await StateReader.open(settings.redis_url.get_secret_value(), settings.topic, retries=retries)
        self._cleanup.push_async_callback(self.store.close)
        compression = None if settings.kafka_compression == "none" else settings.kafka_compression
        self._producer = KafkaProducer(
            self._kafka.client_options(), compression=compression, timeout=settings.start_seconds
        )
        await self._cleanup.enter_async_context(self._producer)
        self._cleanup.push_async_callback(self._stop_following)
        await self._start_web()
        self._tasks.append(asyncio.create_task(self._follow()))

    async def _stop_following(self) -> None:
        await end_tasks(self._tasks)

    async def _follow(self) -> None:
        """Load every partition, and fold its log until cancelled."""
        source = self._source
        key = self._key = self._writes.key = OriginKey(await self._wait_for_secret(), source.identity)
        async with KafkaFollower(
            self._kafka, self.settings.topic, source.partitions, source.topic, key, self._compare_with_log
        ) as follower:
            readers = {}
            for number in range(source.partitions):
                readers[number] = await self._load(follower, self._new_reader(number))
            follower.begin({number: reader.partition.off for number, reader in readers.items()})
            self._readers, self._follower, self._loading = readers, follower, None
            freeze_heap()
            log.info("all partitions loaded", partitions=len(readers))
            asked = self._ask_store(), self._load_times(), self._ask_set_aside()
            await run_together(self._fold_all(follower), *asked, self._see_ends(follower), self._check_topic(follower))

    async def _fold_all(self, follower: KafkaFollower) -> None:
        """Fold what follows, as long as it is what the store folds."""
        while True:
            await self._compare_with_store(follower)
            await self._fold_next(follower)

    def _new_reader(self, number: int) -> PartitionReader:
        return PartitionReader(
            number,
            self.store,
            owner=lambda benchmark: owner(benchmark, self._source.partitions),
            process_metrics=self.process_metrics,
            state=self._state,
        )

    async def _wait_for_secret(self) -> bytes:
        """Wait for the signing key, which the first worker draws: without it, copies of misrouted events cannot be recognized."""
        while True:
            secret = await self._find_secret()
            if secret is not None:
                return secret
            self._loading = f"waiting for a worker: {self.store.no_origin_secret}"
            await asyncio.sleep(_WAIT_SECONDS)

    async def _find_secret(self) -> bytes | None:
        secret = await self.store.find_origin_secret()
        self._key_missing.set(secret is None)
        return secret

    def _take_key(self, secret: bytes | None) -> bool:
        """Take the signing key that Redis has; return whether it is another one: what was folded with the last one is then loaded again."""
        # While Redis has none, this reader goes on with the one that it has, which a worker writes back.
        assert self._key is not None
        if secret is None or secret == self._key.secret:
            return False
        self._key.take(secret)
        return True

    async def _load(self, follower: KafkaFollower, reader: PartitionReader) -> PartitionReader:
        """Load a partition from the store; wait while the log begins after the end of the stored state."""
        number, source = reader.number, self._source
        self._loading = f"loading partition {number}"
        while True:
            try:
                await self.store.check_log(number, source.identity)
                await reader.load()
                first = (await follower.first_offsets())[number]
                await source.check_last_record(number, reader.last, first)
            except (KafkaError, TimeoutError, StoreUnavailable) as error:
                self._loading = f"loading partition {number}: Redis or the brokers do not answer"
                log.warning("a partition cannot be loaded yet", partition=number, reason=type(error).__name__)
            else:
                if reader.partition.off >= first:
                    return reader
                self._loading = (
                    f"partition {number} begins at offset {first:,}, and the state in Redis has only got to "
                    f"{reader.partition.off:,}: the worker reports what to do"
                )
            await asyncio.sleep(_WAIT_SECONDS)

    async def _reload(self, follower: KafkaFollower, numbers: Collection[int], reason: str) -> Collection[int]:
        """Load partitions again, and continue from there; until then nothing is shown. Return which: all, where the signing key is new."""
        log.warning("loading partitions again", partitions=sorted(numbers), reason=reason)
        for number in numbers:
            await self._load(follower, self._readers[number])
        secret = None
        with suppress(StoreUnavailable):  # it is asked for again with the next positions
            secret = await self._find_secret()  # after the states, so that it is not older
        if self._take_key(secret):
            numbers = self._readers.keys()
            for number in numbers:
                await self._load(follower, self._readers[number])
        self._reloads.inc(len(numbers))
        self._secret, self._stored, self._stored_set_aside = None, [], []  # they may be older than what was loaded
        self.reports.clear()
        for number in numbers:
            follower.seek(number, self._readers[number].partition.off)
        self._loading = None
        return numbers

    async def _fold_next(self, follower: KafkaFollower) -> None:
        """Read a few chunks, and fold them."""
        try:
            chunks = await follower.read(self._readers)
        except OffsetOutOfRange as error:
            if error.partition is None:
                raise
            await self._reload(follower, [error.partition], str(error))
            return
        loaded: set[int] = set()
        for chunk in chunks:
            reader = self._readers[chunk.partition]
            if chunk.partition in loaded or chunk.start != reader.partition.off:
                continue  # read before a seek: what is read next begins where the state was loaded
            try:
                reason = None if await reader.fold(chunk) else "the state has another record than this reader has read"
            except FoldCrashed:
                reason = "a record crashes the fold; a worker sets its benchmark aside"
                self._loading = f"partition {chunk.partition}: {reason}"
                await asyncio.sleep(_WAIT_SECONDS)
            if reason is not None:
                loaded.update(await self._reload(follower, [chunk.partition], reason))
        self._freshness.fold({number: reader.partition.off for number, reader in self._readers.items()})

    async def _compare_with_log(self, number: int) -> bool:
        """Compare the last folded record with the log; return False if the brokers do not answer, load again if they differ."""
        follower, reader = self._follower, self._readers[number]
        assert follower is not None
        try:
            async with asyncio.timeout(_COMPARE_SECONDS):
                first = (await follower.first_offsets())[number]
                await self._source.check_last_record(number, reader.last, first)
        except (KafkaError, TimeoutError):
            return False
        except SourceGap as gap:
            await self._reload(follower, [number], str(gap))
        return True

    async def _ask_store(self) -> None:
        """Ask repeatedly for the signing key, and then how far the store is: a key that is new is not of an older state."""
        while True:
            await asyncio.sleep(_COMPARE_STORE_SECONDS)
            with suppress(
                StoreUnavailable
            ):  # the log is the truth; what is folded meanwhile is reported as unconfirmed
                self._secret = await self._find_secret()
                self._stored = await self.store.positions(list(self._readers))

    async def _load_times(self) -> None:
        """Load the commit times of new verdicts repeatedly; those of a large board take long, so the fold keeps most of the time."""
        took = 0.0
        while True:
            await asyncio.sleep(max(_LOAD_TIMES_SECONDS, _LOAD_TIMES_REST * took))
            start = monotonic()
            with suppress(StoreUnavailable):
                for reader in self._folded():
                    await reader.load_times()
            took = monotonic() - start

    async def _ask_set_aside(self) -> None:
        """Ask repeatedly which benchmarks the store has set aside."""
        while True:
            await asyncio.sleep(_COMPARE_SET_ASIDE_SECONDS)
            with suppress(StoreUnavailable):
                self._stored_set_aside = await self.store.set_aside(list(self._readers))

    async def _compare_with_store(self, follower: KafkaFollower) -> None:
        stored, self._stored = self._stored, []
        set_aside, self._stored_set_aside = self._stored_set_aside, []
        if self._take_key(self._secret):
            await self._reload(follower, self._readers.keys(), "a worker has drawn another signing key")
            return
        for reader, position in zip(self._folded(), stored, strict=False):
            reason = reader.compare(position)
            if reason is not None:
                await self._reload(follower, [reader.number], reason)
        for reader, benchmarks in zip(self._folded(), set_aside, strict=False):
            reason = reader.compare_set_aside(benchmarks)
            if reason is not None:
                await self._reload(follower, [reader.number], reason)

    async def _see_ends(self, follower: KafkaFollower) -> None:
        while True:
            for number in self._readers:
                end = follower.end(number)
                if end is not None:
                    self._freshness.see(number, end[0], monotonic() - end[1])
            self._freshness.fold({number: reader.partition.off for number, reader in self._readers.items()})
            await asyncio.sleep(_SEE_ENDS_SECONDS)

    async def _check_topic(self, follower: KafkaFollower) -> None:
        while True:
            await asyncio.sleep(_CHECK_TOPIC_SECONDS)
            await follower.check_topic()

    def age(self) -> float:
        """Return how long ago the end of the log was seen that is folded, in seconds."""
        return self._freshness.age(monotonic())

    def _waiting_for(self) -> str | None:
        if self._loading is not None:
            return self._loading
        age, bound = self.age(), self.settings.max_stale_seconds
        if age <= bound:
            return None
        ends = self._log_ends()
        lag = sum(max(0, end - self._readers[number].partition.off) for number, end in ends.items())
        if age == float("inf"):
            return f"catching up: {lag:,} records are not folded yet"
        return f"the state is {age:.0f} s old, the limit is {bound:g} s, and {lag:,} records are not folded yet"

    def offsets(self) -> Mapping[int, int]:
        """Return the offset up to which each partition is folded."""
        return {number: reader.partition.off for number, reader in self._readers.items()}

    def refusal(self) -> str | None:
        """Return why no data may be shown, or None."""
        waiting = self._not_ready()
        return None if waiting is None else f"This reader is not ready: {waiting}"

    def _folded_log(self) -> "Reader":
        return self

    def _log_ends(self) -> dict[int, int]:
        follower = self._follower
        if follower is None:
            return {}
        ends = {number: follower.end(number) for number in self._readers}
        return {number: end[0] for number, end in ends.items() if end is not None}

    def _log_partitions(self) -> int:
        return self._source.partitions

    def _application(self, scrape: Scrape) -> FastAPI:
        topic, partitions = self.settings.topic, self._source.partitions
        self._writes = KafkaIntake(self._producer, topic, partitions, self._is_folded, self._kafka)
        self._cleanup.push_async_callback(self._writes.undoes.stop)
        return make_application(self._read_side(scrape, self._writes, topic=topic))

    def _is_folded(self, partition: int) -> bool:
        end = self._log_ends().get(partition)
        return end is not None and self._readers[partition].partition.off >= end

    async def failed(self) -> None:
        """Wait until a needed part fails, and raise its error; a log that cannot be read stays in the metrics for a while first."""
        await linger(super().failed(), self.process_metrics, self.settings.linger_seconds, self._kafka.addresses)

    async def _probe(self) -> None:
        await super()._probe()
        self._broker_up.set(await self._producer.answers())
