"""Times on the command line."""

from datetime import datetime

from monitor.cli.shared.errors import USAGE, stop


def since_seconds(text: str) -> float:
    """Return the seconds since 1970 of a time in --since; without an offset from UTC it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        stop(f"--since {text!r} is not a time; use RFC 3339, as 2026-11-23T04:00:00Z", USAGE)
