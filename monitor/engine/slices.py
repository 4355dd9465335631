"""Work in slices, between which the event loop of a worker serves others. What is computed does not depend on where they end."""

from collections.abc import Generator
from typing import TypeVar

_Result = TypeVar("_Result")

Slices = Generator[bool, None, _Result]
"""Work that yields after each slice whether the state can be read there, and returns its result after the last."""


def run_slices(work: Slices[_Result]) -> _Result:
    """Run all slices, and return the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
