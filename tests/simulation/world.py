"""One run: a seed, its actions, and what comes of them."""

import asyncio
import gc
import hashlib
import random
import traceback
import warnings
from dataclasses import dataclass, field
from math import inf

from monitor.log.errors import LogError
from monitor.log.kafka.settings import KafkaSettings
from monitor.settings import Settings
from monitor.store.errors import StateRefused, StoreError
from tests.simulation.clock import Deadlock, Process, VirtualLoop, virtual_time
from tests.simulation.faults import choose, flushes, inject
from tests.simulation.judge import Crashed, Judge, Wrong
from tests.simulation.log import Broker, Group
from tests.simulation.network import Network
from tests.simulation.reader import Reader
from tests.simulation.store import Server, stream_id
from tests.simulation.traffic import traffic
from tests.simulation.worker import Worker, replaced

TOPIC = "events"
VERDICTS = "rankwatch.verdicts"
SETTINGS = Settings(topic=TOPIC, redis_url="redis://store:6379/0", snapshot_seconds=3.0, linger_seconds=0.5)
KAFKA = KafkaSettings(addresses="broker:9092")
QUIET = 16.0
"""Virtual seconds after which no fault lasts any more."""

PATIENCE = 150.0
"""Virtual seconds from then until everything must be folded, stored and published."""

TURN_SECONDS = (None, 0.0, 0.01, 0.1)
"""How long others have their turn before and after each piece of a fold, at most; one of these for each run. None: they have none."""

MOST_CHANGES = (1, 3, 10, inf)
"""Verdict changes after which a fold ends within its chunk, one of these for each run: it has too few for the limit of the program."""


@dataclass
class Result:
    """What came of a run."""

    seed: int
    actions: list
    failure: str | None = None
    judged: bool = False
    """Whether the failure is a judgement, and no crash of the program or of the simulation."""
    injected: dict = field(default_factory=dict)
    refused: int = 0
    checks: int = 0
    published: int = 0
    seconds: float = 0.0
    digest: str = ""


class Slot:
    """A worker, or a reader, that is started again when it ends; `make` makes another one."""

    def __init__(self, world, name, make):
        self._world, self.name, self._make, self.starts, self.worker = world, name, make, 0, None
        self.start()

    def start(self):
        self.starts += 1
        self.since = self._world.loop.now
        self.process = Process(f"{self.name}.{self.starts}")
        self._stopping = asyncio.Event()
        self._world.loop.spawn(self._run(self.process), self.process)

    async def _run(self, process):
        error = None
        try:
            self.worker = self._make()
            async with self.worker as worker:
                failed, stop = asyncio.create_task(worker.failed()), asyncio.create_task(self._stopping.wait())
                await asyncio.wait((failed, stop), return_when=asyncio.FIRST_COMPLETED)
                for task in (failed, stop):
                    task.cancel()
                if failed.done() and not failed.cancelled():
                    failed.result()
        except Exception as raised:  # noqa: BLE001 - the world judges it
            error = raised
        if process.alive:
            self._ended(process, error)

    def _ended(self, process, error):
        process.kill()
        self.worker = None
        self._world.network.forget(process)
        self._world.exited(self, error)
        refused = isinstance(error, LogError | StateRefused)  # it will be again
        self._world.later(20.0 if refused else 2.0, self.start)

    def kill(self, seconds):
        if not self.process.alive:
            return False
        self.process.kill()
        self.worker = None
        self._world.network.forget(self.process)
        self._world.later(seconds, self.start)
        return True

    def stop(self, seconds):
        if not self.process.alive or self.process.frozen or self._stopping.is_set():
            return False
        self._stopping.set()
        return True

    def freeze(self, seconds):
        if not self.process.alive or self.process.frozen:
            return False
        self.process.freeze()
        self._world.later(seconds, self.process.thaw, self._world.loop)
        return True


class World:
    """Everything of one run."""

    topic, verdicts = TOPIC, VERDICTS

    def __init__(self, seed, actions=None, *, operated=True):
        """`operated`: with runs, board changes, quarantines, readers and chunks in parts; without them a seed is what it was before."""
        self.seed, self._operated = seed, operated
        rng = self.rng("world")
        self._partitions, self._workers, self._seconds = rng.randrange(1, 4), rng.randrange(1, 4), rng.choice((20, 60))
        self._readers = self.rng("readers").randrange(2) if operated else 0
        self.most_changes = self.rng("parts").choice(MOST_CHANGES) if operated else inf
        self.turn_seconds = self.rng("turns").choice(TURN_SECONDS) if operated else None
        chosen = choose(self.rng("faults"), self._seconds, self._workers, self._partitions, self._readers)
        flushed = flushes(self.rng("flushes"), self._seconds, self._workers) if operated else []
        chosen = sorted((*chosen, *flushed), key=lambda action: action.time)
        self.actions = chosen if actions is None else actions
        self._unique = 0
        self.trace = []

    def rng(self, name):
        return random.Random(f"{self.seed}:{name}")

    def unique(self):
        self._unique += 1
        return self._unique

    def run(self):
        """Run it to its end; garbage, which differs from run to run, is collected afterwards."""
        collects = gc.isenabled()
        gc.disable()
        with warnings.catch_warnings():
            for kind in (ResourceWarning, RuntimeWarning):  # a killed process closes nothing, and awaits nothing
                warnings.simplefilter("ignore", kind)
            try:
                return self._run()
            finally:
                self.slots = self.readers = self.network = self.loop = self.server = self.broker = self.group = (
                    self.judge
                ) = None
                self._failed = self.logs = None
                gc.collect()
                if collects:
                    gc.enable()

    def _run(self):
        result = Result(self.seed, self.actions)
        self._refused_until = -inf
        """When the server was last started while workers had to refuse the log; its file may have lost that the state was deleted."""
        network = self.network = Network(self.rng("network"))
        loop = self.loop = VirtualLoop(network.connect)
        self.result = result
        self._failed = None
        with virtual_time(loop, self.seed):
            asyncio.set_event_loop(loop)
            try:
                loop.run_until_complete(loop.spawn(self._main()))
            except Wrong as wrong:
                result.failure, result.judged = f"{wrong}", not isinstance(wrong, Crashed)
            except (Deadlock, AssertionError) as error:
                result.failure = f"{type(error).__name__}: {error}"
            finally:
                loop.end()
                asyncio.set_event_loop(None)
        result.checks, result.published, result.seconds = self.judge.checks, len(self.judge.published), loop.now
        result.digest = hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]
        return result

    def later(self, seconds, function, *args):
        """Call something outside of all processes; an error of it is one of the simulation, and ends the run."""
        self.loop.call_later(seconds, self._call, function, args, context=self._outside)

    def _call(self, function, args):
        try:
            function(*args)
        except Exception as error:  # noqa: BLE001 - the loop would drop it
            text = "".join(traceback.format_exception(error)[-8:])
            self.fail(AssertionError(f"the simulation ended with {type(error).__name__}: {error}\n{text}"))

    def judged(self, check):
        """A check whose failure ends the run."""

        def run(*args):
            try:
                check(*args)
            except Wrong as wrong:
                self.fail(wrong)

        return run

    def fail(self, wrong):
        """End the run with a failure."""
        if not self._failed.done():
            self._failed.set_exception(wrong)

    async def _main(self):
        import contextvars

        self._outside = contextvars.copy_context()
        self._failed = self.loop.create_future()
        self.server = Server(lambda: self.judged(self.judge.check_store)())  # noqa: PLW0108 - the judge comes later
        self.network.servers["store"] = self.server
        self.judge = Judge(TOPIC, VERDICTS, self._partitions, self.server)
        self.broker = Broker(self.rng("broker"), self._appended)
        for name in (TOPIC, VERDICTS, f"{TOPIC}.dlq"):
            self.broker.create(name, self._partitions)
        self.judge.log = f"kafka:simulated:{TOPIC}:{self._partitions} partitions, id {self.broker.ids[TOPIC]}"
        self.group = Group(self.loop, self.rng("group"), self._partitions)
        operated = self.rng("operations") if self._operated else None
        for message in traffic(self.rng("traffic"), self._partitions, self._seconds, operated):
            self.later(message.time, self.broker.append, TOPIC, message.partition, message.value, (), message.gap)
        for action in self.actions:
            self.later(action.time, self._inject, action)
        with replaced(self):
            self.slots = [Slot(self, f"worker {number}", self._worker) for number in range(self._workers)]
            self.readers = [Slot(self, f"reader {number}", self._reader) for number in range(self._readers)]
            driver = self.loop.spawn(self._drive())
            await asyncio.wait((driver, self._failed), return_when=asyncio.FIRST_COMPLETED)
            self.note("end")
            for slot in (*self.slots, *self.readers):
                slot.process.kill()
            if self._failed.done():
                self._failed.result()
            driver.result()

    def _worker(self):
        return Worker(SETTINGS, KAFKA, self.judged(self.judge.check_loaded), self.server)

    def _reader(self):
        return Reader(SETTINGS, KAFKA)

    async def _drive(self):
        await asyncio.sleep(self._seconds)
        self.network.cuts.clear()
        self.broker.lost_acks = 0
        self.broker.kills.clear()
        await asyncio.sleep(QUIET)
        end = self.loop.now + (30.0 if self._refused() else PATIENCE)
        while not self._quiet():
            if self.loop.now > end:
                if self._refused():
                    break
                raise Wrong(
                    f"not everything is folded and published after {PATIENCE:.0f} s without faults: {self._state()}"
                )
            await asyncio.sleep(1.0)
        self.check_workers(at_end=True)
        # Of a worker that refuses one partition, the others wait too.
        self.judge.check_end(range(self._partitions) if self._refused() else ())

    def _refused(self):
        """Whether workers have to refuse the log: another topic, or records are gone that are not folded."""
        logs = enumerate(self.broker.topics[TOPIC])
        return self.judge.replaced or any(self.judge.stored_off(number) < log.first for number, log in logs)

    def _state(self):
        ends = [log.end for log in self.broker.topics[TOPIC]]
        return f"{self.judge._seen} of {ends}, {[(slot.name, slot.starts, slot.process.alive) for slot in (*self.slots, *self.readers)]}"

    def _quiet(self):
        keys = self.server.database.keys
        if not self.server.up:
            return False
        for number, log in enumerate(self.broker.topics[TOPIC]):
            meta = keys.get(f"{{{TOPIC}:{number}}}:meta".encode(), {})
            if int(meta.get(b"off", b"0")) != log.end or self._waiting(number):
                return False
        return all(slot.worker is not None and slot.worker.is_current for slot in self.readers)

    def _waiting(self, number):
        """Whether changes wait to be relayed; those whose mark or trim was lost do not."""
        keys = self.server.database.keys
        outbox = keys.get(f"{{{TOPIC}:{number}}}:outbox".encode())
        relayed = keys.get(f"{{{TOPIC}:{number}}}:relays".encode(), {}).get(b"kafka", b"0-0")
        ids = () if outbox is None else (each for each in outbox.ids if each > stream_id(relayed))
        return any(self.judge.waits(number, f"{offset}-{sequence}") for offset, sequence in ids)

    def _appended(self, topic, partition, record):
        self.note(f"{topic}/{partition} {record.offset} {record.value!r:.200}")
        self.judged(self.judge.appended)(topic, partition, record)

    def _inject(self, action):
        if inject(self, action):
            self.result.injected[action.kind] = self.result.injected.get(action.kind, 0) + 1
            self.note(str(action))
        self.judged(self.check_workers)()

    def check_workers(self, *, at_end=False):
        """Compare the states in the memory of all workers and readers; at the end all have to know the key that the server has."""
        for slot in (*self.slots, *self.readers):
            for folded in () if slot.worker is None else slot.worker._folded():
                if hasattr(folded, "partition"):
                    self.judge.check_memory(folded, at_end=at_end)

    def start_store(self):
        """Start the server again."""
        if self._refused():
            self._refused_until = self.loop.now
        self.server.start()
        self.note(f"store started with {len(self.server.file)} bytes")
        self.judge.restarted()

    def exited(self, slot, error):
        """A worker has ended on its own."""
        self.note(f"{slot.process.name} ended: {error!r:.300}")
        if error is None:
            return
        self.result.refused += 1
        if isinstance(error, StateRefused) and self._damage_explains(error):
            if self.judge.replaced:
                return
            self._delete_state()
        elif isinstance(error, LogError | StateRefused):
            refused = self._refused() or slot.since <= self._refused_until  # it may have loaded the state before that
            if not refused or "is damaged" in str(error):
                self.fail(Wrong(f"{slot.process.name} ended with {type(error).__name__}: {error}"))
        elif not isinstance(error, StoreError | LogError | OSError | TimeoutError):
            text = "".join(traceback.format_exception(error)[-8:])
            self.fail(Crashed(f"{slot.process.name} ended with {type(error).__name__}: {error}\n{text}"))

    def _delete_state(self):
        """Do what the message of a damaged state says, as soon as the server answers."""
        if not self.server.up or self.server.stalled:
            self.later(0.1, self._delete_state)
            return
        self.server.execute([b"DEL", *(key for key in self.server.database.keys if b":origins}" not in key)])
        self.judge.forget()

    def _damage_explains(self, error):
        return self.server.flipped or (self.server.dangling and "is damaged" in str(error))

    def note(self, text):
        """Add a line to the trace."""
        self.trace.append(f"{self.loop.now:.6f} {text}")
