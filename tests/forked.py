"""Start commands by forking a process that has imported everything: importing it again costs each of a thousand commands 2 s of a core.

What starts is a real process with its own streams, environment, signals and exit code. It differs from a fresh interpreter in that its
imports are done, its compiled loops loaded and its models complete, and in that its parent is not the test. With RANKWATCH_SLOW=1,
and where Python's own settings change, the interpreter is fresh.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading

import monitor
import schemas
import stats
from monitor import crash_points

RANKWATCH = os.path.join(os.path.dirname(sys.executable), "rankwatch")  # noqa: PTH118, PTH120 - a path in a virtual environment
MODULE = [sys.executable, "-m"]
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "OPENBLAS", "OMP")
LENGTH = 8
SLOW = os.environ.get("RANKWATCH_SLOW") == "1"


def start(command, *, fresh=False, **options):
    """Return a `subprocess.Popen` of a command, forked if it is `rankwatch` or `python -m` and nothing asks for a fresh interpreter."""
    env = options.get("env") or os.environ
    same = {k: v for k, v in env.items() if k.startswith(OF_THE_INTERPRETER)} == {
        k: v for k, v in os.environ.items() if k.startswith(OF_THE_INTERPRETER)
    }
    ours = command[0] == RANKWATCH or command[:2] == MODULE
    forked = sys.platform == "linux" and same and ours and not (fresh or SLOW)
    return (Forked if forked else subprocess.Popen)(command, **options)


def run(command, *, timeout, text=True, input=None, **options):  # noqa: A002 - as in `subprocess.run`
    """Run a command to its end as `subprocess.run` does, its output captured."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text, **options) as process:
        try:
            out, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(command, process.returncode, out, errors)


@functools.cache
def _forker():
    """Start the process that forks, once for each process of tests."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


def _end(connection, forker):
    connection.close()
    forker.wait()


class Forked(subprocess.Popen):
    """A process forked by the forker, which reports its end through a pipe."""

    def _execute_child(self, args, _executable, _preexec, _close_fds, _pass_fds, cwd, env, *rest):
        pipes = rest[3:9]  # of stdin, stdout and stderr: the end that is read, and the end that is written
        read, write = os.pipe()
        self._end = os.fdopen(read, "rb")
        request = json.dumps([[*map(os.fspath, args)], os.fspath(cwd or os.getcwd()), dict(env or os.environ)]).encode()  # noqa: PTH109
        streams = [end if end >= 0 else inherited for inherited, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        forker = _forker()
        socket.send_fds(forker, [len(request).to_bytes(LENGTH, "big")], [*streams, write])
        forker.sendall(request)
        os.close(write)
        self.pid = int(self._end.readline())
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, flags):
        if flags & os.WNOHANG and not select.select([self._end], [], [], 0)[0]:
            return 0, 0
        return self.pid, int(self._end.readline())

    def _internal_poll(self, **_):
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid == self.pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode

    def _handle_exitstatus(self, sts, *_, **__):
        self.returncode = sts
        self._end.close()


def serve(connection):
    """Fork for each request, and report how each command ends; return the command in the process that is to run it, and None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is for the tests
    running = {}
    while True:
        for ready in select.select([connection, *running], [], [])[0]:
            if ready is not connection:
                _report_end(ready, running.pop(ready))
                continue
            head, fds, _, _ = socket.recv_fds(connection, LENGTH, 4)
            if not head:
                return None
            size, request = int.from_bytes(head, "big"), b""
            while len(request) < size:
                request += connection.recv(size - len(request))
            *streams, report = fds
            child = os.fork()
            if child == 0:
                connection.close()
                for fd in (report, *running, *running.values()):
                    os.close(fd)
                return _become(streams, *json.loads(request))
            for fd in streams:
                os.close(fd)
            os.write(report, b"%d\n" % child)
            running[os.pidfd_open(child)] = report


def _report_end(process, report):
    """Report how a process ended; no other gets its id before."""
    end = os.waitid(os.P_PIDFD, process, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(BrokenPipeError):
        os.write(report, b"%d\n" % (end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
    os.waitid(os.P_PIDFD, process, os.WEXITED)
    os.close(process)
    os.close(report)


def _become(streams, command, folder, env):
    """Give this process the streams, folder and environment of a command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in streams:
        if fd > 2:
            os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    importlib.reload(crash_points)  # reads the environment when it is imported
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    return command


def _warm_up():
    """Do once what every command does first: load the compiled loops and the parts of Faust, and complete the models of pydantic."""
    from faust.transport import drivers
    from pydantic import BaseModel

    from monitor.log.faust_app import make_app
    from monitor.service.loops import load_loops

    load_loops()
    drivers.by_url("file:///log")
    make_app("file:///log", "events", app_id="warm")
    models = BaseModel.__subclasses__()
    for model in models:
        models += model.__subclasses__()
        model.model_rebuild(raise_errors=False)


def main():
    """Import what the commands import, and serve."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as the command line does
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy is imported
    for package in (monitor, schemas, stats):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    _warm_up()
    assert threading.active_count() == 1, "a fork keeps no other thread"
    gc.collect()
    gc.freeze()
    command = serve(socket.socket(fileno=int(sys.argv[1])))
    if command is not None:
        from monitor.cli import main as rankwatch

        module = command[:2] == MODULE
        sys.argv = command[2:] if module else command
        try:
            runpy.run_module(command[2], run_name="__main__", alter_sys=True) if module else rankwatch()
        except SystemExit as error:
            if isinstance(error.code, str):
                raise
            # Taking down all that was imported would copy it first, for 0.4 s of a core.
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(error.code or 0)


if __name__ == "__main__":
    main()
