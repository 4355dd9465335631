"""Start commands by forking a process that has imported everything: importing it again costs each of a thousand commands 2 s of a core.

What starts is a real process with its own streams, environment, signals and exit code. It differs from a fresh interpreter in that its
imports are done, and in that its parent is not the test. With RANKWATCH_SLOW=1,
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
    """Fork for each request; return the command in the process that is to run it, and None at the end of the tests."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is for the tests
    while True:
        head, fds, _, _ = socket.recv_fds(connection, LENGTH, 4)
        if not head:
            return None
        size, request = int.from_bytes(head, "big"), b""
        while len(request) < size:
            request += connection.recv(size - len(request))
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            return _keep(fds, *json.loads(request))
        for fd in fds:
            os.close(fd)


def _keep(fds, command, folder, env):
    """Fork the command; report its process id and how it ended."""
    *streams, report = fds
    child = os.fork()
    if child:
        for fd in streams:
            os.close(fd)
        with contextlib.suppress(BrokenPipeError):
            os.write(report, b"%d\n" % child)
            end = os.waitid(
                os.P_PID, child, os.WEXITED | os.WNOWAIT
            )  # no other process gets its id before its end is reported
            os.write(report, b"%d\n" % (end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
        os._exit(0)
    os.close(report)
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


def main():
    """Import what the commands import, and serve."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy is imported
    for package in (monitor, schemas, stats):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
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
