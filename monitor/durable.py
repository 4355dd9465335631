"""Replace a file so that after a crash it has its old contents or the new ones."""

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
