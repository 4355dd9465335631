"""Check the data directory and its log."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from monitor.log.errors import LogError
from monitor.log.file.log import check_log
from monitor.service.doctor.finding import Finding, fault, ok, warning
from monitor.settings import LOG_NAME

_SUBJECT: Final = "data directory"
_FREE_BYTES: Final = 1 << 30


def check_data_dir(folder: Path) -> Iterator[Finding]:
    """Try to write in a directory, or in its nearest existing parent, and check the free space; read the log to its end."""
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
    if (folder / LOG_NAME).exists():
        yield _check_log(folder / LOG_NAME)


def _check_log(path: Path) -> Finding:
    try:
        count, lost = check_log(path)
    except LogError as error:
        return fault("log", "damaged", str(error))
    except OSError as error:
        return fault("log", f"{path}: {error.strerror}", "let this user read it")
    if lost:
        advice = "every benchmark reports that it may be partial; send the events again that you have elsewhere"
        return warning(
            "log", f"{lost:,} bytes were damaged, and given up by `state salvage`; other records: {count:,}", advice
        )
    return ok("log", f"every record matches its checksum; records: {count:,}")
