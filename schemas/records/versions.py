"""Versions of what is stored."""

from typing import Final

STATISTICS_VERSION: Final = 6
"""Version of everything a latch depends on; a state of another version is refused."""

STATE_VERSION: Final = 12
"""Version of the stored layout."""
