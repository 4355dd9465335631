"""Elementwise functions of two large arrays, one slab at a time: temporaries stay in the processor's cache."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from stats.checks import FloatArray, IntArray

_SLAB = 8192
P = ParamSpec("P")
R = TypeVar("R", FloatArray, tuple[FloatArray, ...], tuple[FloatArray, FloatArray])


def slabbed(function: Callable[P, R]) -> Callable[P, R]:
    """Let an elementwise function see no more than 8,192 elements of long vectors of one length at a time.

    Its checks and temporaries then stay in the processor's cache: several times as fast. Whatever else it is given it sees whole.
    """

    @wraps(function)
    def in_slabs(*args: P.args, **kwargs: P.kwargs) -> R:
        given: list[Any] = [*args, *kwargs.values()]
        vectors = [x for x in given if isinstance(x, np.ndarray) and x.ndim]
        size = vectors[0].size if vectors else 0
        lists = any(isinstance(x, list | tuple) and len(x) == size for x in given)
        if size <= _SLAB or lists or any(x.shape != (size,) for x in vectors):
            return function(*args, **kwargs)
        call = cast("Callable[..., Any]", function)
        columns: list[FloatArray] = []
        for start in range(0, size, _SLAB):
            at = slice(start, start + _SLAB)
            part = [x[at] if isinstance(x, np.ndarray) and x.ndim else x for x in given]
            result = call(*part[: len(args)], **dict(zip(kwargs, part[len(args) :], strict=True)))
            several = isinstance(result, tuple)
            found = result if several else (result,)
            columns = columns or [np.empty(size) for _ in found]
            for column, values in zip(columns, found, strict=True):
                column[at] = values
        return cast("R", tuple(columns) if several else columns[0])

    return in_slabs


def by_slab(
    function: Callable[[FloatArray, FloatArray], FloatArray], x: FloatArray, y: FloatArray, size: int = 8192
) -> FloatArray:
    """Apply ``function`` to slabs of ``size`` elements of two arrays of one shape, 0-d included; it sees vectors."""
    flat_x, flat_y = x.ravel(), y.ravel()
    out = np.empty(flat_x.shape)
    for start in range(0, out.size, size):
        slab = slice(start, start + size)
        out[slab] = function(flat_x[slab], flat_y[slab])
    return out.reshape(x.shape)


def distinct_counts(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values, ascending, and where each value is among them: counts repeat a lot among pairs.

    Whole numbers, few of them large, are found in a table of flags instead of by sorting.
    """
    few = values.size > 0 and values.max() <= 4 * values.size
    whole = values.astype(np.int64) if few else None
    if whole is None or not np.array_equal(whole, values):
        distinct, index = np.unique(values, return_inverse=True)
        return distinct, index
    seen = np.zeros(int(whole.max()) + 1, bool)
    seen[whole] = True
    return np.flatnonzero(seen).astype(np.float64), (np.cumsum(seen) - 1)[whole]
