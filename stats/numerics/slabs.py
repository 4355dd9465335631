"""Elementwise functions of two large arrays, one slab at a time: temporaries stay in the processor's cache."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray

_SLAB = 12_288
P = ParamSpec("P")
R = TypeVar("R", FloatArray, tuple[FloatArray, ...], tuple[FloatArray, FloatArray])


def slabbed(function: Callable[P, R]) -> Callable[P, R]:
    """Let an elementwise function see no more than 12,288 elements of long arrays of one shape at a time.

    Its checks and temporaries then stay in the processor's cache: several times as fast. It sees all other arguments whole.
    """

    @wraps(function)
    def in_slabs(*args: P.args, **kwargs: P.kwargs) -> R:
        given: list[Any] = [*args, *kwargs.values()]
        arrays = [x for x in given if isinstance(x, np.ndarray) and x.ndim]
        size, shape = (arrays[0].size, arrays[0].shape) if arrays else (0, ())
        lists = any(isinstance(x, list | tuple) and len(x) == shape[-1] for x in given) if shape else False
        if size <= _SLAB or lists or any(x.shape != shape for x in arrays):
            return function(*args, **kwargs)
        call = cast("Callable[..., Any]", function)
        given = [x.ravel() if isinstance(x, np.ndarray) and x.ndim else x for x in given]
        columns = np.empty((0, size))
        for start in range(0, size, _SLAB):
            at = slice(start, start + _SLAB)
            part = [x[at] if isinstance(x, np.ndarray) and x.ndim else x for x in given]
            result = call(*part[: len(args)], **dict(zip(kwargs, part[len(args) :], strict=True)))
            several = isinstance(result, tuple)
            found = result if several else (result,)
            if not start:
                columns = np.empty((len(found), size))  # one block: the system hands out large ones in large pages
            for column, values in zip(columns, found, strict=True):
                column[at] = values
        columns = columns.reshape(-1, *shape)
        return cast("R", tuple(columns) if several else columns[0])

    return in_slabs


def by_slab(
    function: Callable[[FloatArray, FloatArray], FloatArray], x: FloatArray, y: FloatArray, size: int = _SLAB
) -> FloatArray:
    """Apply ``function`` to slabs of ``size`` elements of two arrays of one shape, 0-d included; it sees vectors."""
    flat_x, flat_y = x.ravel(), y.ravel()
    out = np.empty(flat_x.shape)
    for start in range(0, out.size, size):
        slab = slice(start, start + size)
        out[slab] = function(flat_x[slab], flat_y[slab])
    return out.reshape(x.shape)


def distinct_counts(x: IntArray, y: IntArray) -> tuple[IntArray, IntArray, npt.NDArray[np.int32]]:
    """Return the distinct pairs of two columns of counts, and the place of each row among them.

    A function of both columns then takes as long as there are distinct pairs: of millions of rows of small counts, few. Columns whose
    counts are so large that looking for equal ones would not pay are returned unchanged.

    Examples
    --------
    >>> x, y, place = distinct_counts(np.array([1, 0, 1, 1]), np.array([1, 0, 1, 0]))
    >>> x.tolist(), y.tolist(), place.tolist()
    ([0, 1, 1], [0, 0, 1], [2, 0, 2, 1])
    """
    width = int(y.max()) + 1 if y.size else 1
    cells = (int(x.max()) + 1) * width if x.size else 0
    if cells > x.size:
        return x, y, np.arange(x.size, dtype=np.int32)
    cell = x * width + y
    seen = np.zeros(cells, np.int32)
    seen[cell] = 1
    distinct = np.flatnonzero(seen)
    seen[distinct] = np.arange(distinct.size)
    return distinct // width, distinct % width, seen[cell]


def by_distinct(function: Callable[[FloatArray], FloatArray], values: FloatArray) -> FloatArray:
    """Apply an elementwise function of numbers >= 0, of any shape, to the distinct ones, ascending: counts often repeat among pairs.

    Whole numbers, few of them large, are found and looked up in a table instead of by sorting.
    """
    few = values.size > 0 and values.max() <= 4 * values.size
    whole = values.astype(np.intp) if few else None
    if whole is None or not np.array_equal(whole, values):
        distinct, index = np.unique(values, return_inverse=True)
        return function(distinct)[index]
    table = np.zeros(int(whole.max()) + 1)
    table[whole] = 1
    seen = np.flatnonzero(table)
    table[seen] = function(seen.astype(np.float64))
    return table.take(whole)
