"""Versions of what is stored."""

from typing import Final

STATISTICS_VERSION: Final = 6  # version of everything a latch depends on; a state of another version is refused

STATE_VERSION: Final = 12  # version of the stored layout
