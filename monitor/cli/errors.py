"""How a command ends: exit 1 for a fault, 2 for a call that cannot be right; the message says what to do."""

import sys
from typing import NoReturn

FAULT, USAGE = 1, 2


def stop(message: str, code: int = FAULT) -> NoReturn:
    """Print a message on standard error and exit."""
    print(f"rankwatch: {message}", file=sys.stderr)
    raise SystemExit(code)
