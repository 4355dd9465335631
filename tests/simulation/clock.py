"""An event loop on virtual time, and processes on it that can be frozen and killed."""

import asyncio
import contextlib
import contextvars
import heapq
import random
import secrets
import time
import uuid
from asyncio import events
from unittest.mock import patch

PROCESS = contextvars.ContextVar("process", default=None)
EPOCH = 1_800_000_000.0
"""The wall clock at virtual time 0."""


class Deadlock(Exception):  # noqa: N818 - a state
    """Nothing is left to happen, but the simulation has not ended."""


class Process:
    """Everything that runs in the context of one simulated process."""

    def __init__(self, name):
        self.name, self.alive, self.frozen, self.skew = name, True, False, 0.0
        self._parked = []
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def admits(self, handle):
        """Whether a callback may run now; a frozen process gets it later, a dead one never."""
        if self.frozen and self.alive:
            self._parked.append(handle)
        return self.alive and not self.frozen

    def freeze(self):
        """Stop it as SIGSTOP does."""
        self.frozen = True

    def thaw(self, loop):
        """Let it continue with everything that was due meanwhile."""
        self.frozen, parked = False, self._parked
        self._parked = []
        loop._ready.extend(parked)

    def kill(self):
        """End it as SIGKILL does: no more code of it runs, not even `finally`."""
        self.alive = False
        self._parked.clear()


class _Handle(events.Handle):
    __slots__ = ()

    def _run(self):
        process = self._context.get(PROCESS)
        if process is None or process.admits(self):
            super()._run()


class _TimerHandle(events.TimerHandle):
    __slots__ = ()

    def _run(self):
        process = self._context.get(PROCESS)
        if process is None or process.admits(self):
            super()._run()


class _NoSelector:
    """Instead of waiting for sockets, moves the time on to the next timer."""

    def __init__(self, loop):
        self._loop = loop

    def select(self, timeout):
        if timeout is None:
            raise Deadlock
        self._loop.now += timeout
        return ()

    def close(self):
        pass


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in a fixed order; time passes only while nothing is ready.

    `connect` is called for each new connection: (protocol, host, port) -> transport.
    """

    def __init__(self, connect=None):
        super().__init__()
        self.now = 0.0
        self._selector = _NoSelector(self)
        self._connect = connect
        self._made = []
        self.errors = []
        """Exceptions that nobody has awaited."""
        self.set_task_factory(self._task)
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self):
        return self.now

    def _task(self, loop, coro, *, context=None):
        task = asyncio.Task(coro, loop=loop, context=context)
        task._log_destroy_pending = False
        self._made.append(task)
        if len(self._made) > 2_000:
            self._made = [task for task in self._made if not task.done()]
        return task

    def _call_soon(self, callback, args, context):
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when, callback, *args, context=None):
        timer = _TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def call_later(self, delay, callback, *args, context=None):
        return self.call_at(self.now + max(0.0, delay), callback, *args, context=context)

    def run_in_executor(self, executor, func, *args):
        """Run at once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - passed on
            future.set_exception(error)
        return future

    async def create_connection(self, protocol_factory, host=None, port=None, **_):
        protocol = protocol_factory()
        return await self._connect(protocol, host, port), protocol

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    def spawn(self, coro, process=None):
        """Start a task in a process, or outside of all."""
        context = contextvars.Context() if process is None else process.context.copy()
        return self.create_task(coro, context=context)

    def end(self):
        """Close everything that has not finished."""
        self._connect = None
        for task in self._made:
            if not task.done():
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self._made.clear()
        self._ready.clear()
        self._scheduled.clear()
        self.close()


@contextlib.contextmanager
def virtual_time(loop, seed):
    """Replace the clocks, the random numbers and the unique ids of this process."""
    rng = random.Random(f"{seed}:library")
    state = random.getstate()
    random.seed(f"{seed}:global")

    def wall():
        process = PROCESS.get()
        return EPOCH + loop.now + (process.skew if process is not None else 0.0)

    def unique():
        return uuid.UUID(int=rng.getrandbits(128), version=4)

    try:
        with (
            patch.object(time, "monotonic", loop.time),
            patch.object(time, "time", wall),
            patch.object(uuid, "uuid4", unique),
            patch.object(secrets, "token_hex", lambda: unique().hex),
        ):
            yield
    finally:
        random.setstate(state)
