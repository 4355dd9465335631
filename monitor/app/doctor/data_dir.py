"""Check the data directory."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from monitor.app.doctor.finding import Finding, fault, ok, warning

_SUBJECT: Final = "data directory"
_FREE_BYTES: Final = 1 << 30


def check_data_dir(folder: Path) -> Iterator[Finding]:
    """Try to write in a directory, or in its nearest existing parent, and check the free space."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.NamedTemporaryFile(dir=existing) as file:
            file.write(b"rankwatch")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield fault(_SUBJECT, f"{folder}: {error.strerror}", "let this user write there, or choose another --data-dir")
        return
    free = shutil.disk_usage(existing).free
    fact = f"{folder}{'' if existing == folder.absolute() else ' (to be created)'}, {free / 1e9:,.1f} GB free"
    if free < _FREE_BYTES:
        yield warning(_SUBJECT, fact, "free some space: on a full disk no more events are accepted")
    else:
        yield ok(_SUBJECT, fact)
