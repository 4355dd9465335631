"""Replace a file so that after a crash it has its old contents or the new ones; lock a file for one process at a time."""

import fcntl
import os
from pathlib import Path


def replace_file(path: Path, contents: bytes) -> None:
    """Write a file that only its owner may read, durably, and make its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def lock_file(path: str | os.PathLike[str]) -> int | None:
    """Create and lock a file; return its descriptor, or None if another process has it locked."""
    # Child processes that inherit the descriptor share the lock.
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
