"""Names of runs: the date in the name of a file or its folder."""

import re
from pathlib import Path
from typing import Final

_DATE: Final = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])"
    r"(?:[Tt _-]?([01]\d|2[0-3])[-:_.]?([0-5]\d)(?:[-:_.]?([0-5]\d))?)?(?!\d)"
)
_FOLDERS: Final = 3  # folders above a file whose names may have the date of its run


def date_in(text: str) -> str | None:
    """Return the date, and the time of day where there is one, that a name holds.

    >>> date_in("samples_gsm8k_2026-08-01T10-05-00.123"), date_in("run-20260801"), date_in("v1.2")
    ('2026-08-01 10:05:00', '2026-08-01', None)
    """
    match = _DATE.search(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    time = "" if hour is None else f" {hour}:{minute}" + (f":{second}" if second else "")
    return f"{year}-{month}-{day}{time}"


def name_of(file: str) -> str:
    """Return the name of the run that a file holds: the date in its name or its nearest folder, else its own name."""
    path = Path(file)
    names = [path.name, *(parent.name for parent in list(path.parents)[:_FOLDERS])]
    return next((date for date in map(date_in, names) if date is not None), path.name.split(".")[0])
