"""Bound the size of one command or round trip."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

SLICE: Final = 500
"""Fields or keys in one command."""


def slices(values: Iterable[T]) -> Iterator[list[T]]:
    """Split values into lists of at most `SLICE`."""
    rest = iter(values)
    while part := list(islice(rest, SLICE)):
        yield part
