"""Lock a file for one process at a time."""

import fcntl
import os


def lock_file(path: str | os.PathLike[str]) -> int | None:
    """Create and lock a file; return its descriptor, or None if another process has it locked.

    Child processes that inherit the descriptor share the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
