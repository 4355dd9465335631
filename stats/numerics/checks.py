"""Argument checks shared by the statistics: each returns float64 arrays or raises a ValueError naming the argument.

Functions of large arrays go through them one slab at a time: temporaries stay in the processor's cache.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

TOLERANCE = 1e-12
"""Evidence this close below a threshold reaches it: the difference is rounding."""


def finite(**named: npt.ArrayLike) -> list[FloatArray]:
    """Return the named arrays as finite float64 arrays of mutually broadcastable shapes (not yet broadcast)."""
    arrays: list[FloatArray] = []
    for name, value in named.items():
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numeric, got {value!r}") from error
        whole = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
        if not whole and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity; remove or impute missing values first")
        arrays.append(array)
    aligned(**dict(zip(named, arrays, strict=True)))
    return arrays


def aligned(**named: npt.ArrayLike) -> None:
    """Raise ValueError unless the named arrays broadcast together."""
    shapes = {name: np.shape(value) for name, value in named.items()}
    if len(set(shapes.values()) - {()}) <= 1:
        return  # the usual case, which `broadcast_shapes` takes long to see
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"arrays of unequal length: {found} must broadcast together") from error


def non_negative(**named: npt.ArrayLike) -> list[FloatArray]:
    """Return the named arrays as finite, non-negative float64 arrays."""
    arrays = finite(**named)
    for name, array in zip(named, arrays, strict=True):
        if (array < 0).any():
            raise ValueError(f"{name} must be non-negative, got {array.min()}")
    return arrays


def between(low: float, high: float, **named: npt.ArrayLike) -> list[FloatArray]:
    """Return the named arrays as float64 arrays within the closed interval [low, high]."""
    arrays = finite(**named)
    for name, array in zip(named, arrays, strict=True):
        outside = (array < low) | (array > high)
        if outside.any():
            raise ValueError(f"{name} must lie in [{low}, {high}], got {array[outside].flat[0]}")
    return arrays


def level(**named: npt.ArrayLike) -> list[FloatArray]:
    """Return error levels or powers as float64 arrays within the open interval (0, 1)."""
    arrays = finite(**named)
    for name, array in zip(named, arrays, strict=True):
        outside = (array <= 0) | (array >= 1)
        if outside.any():
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {array[outside].flat[0]}")
    return arrays


def paired_counts(n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> list[FloatArray]:
    """Return shared items n and discordant counts b, c as float64 arrays with b + c <= n."""
    items, wins, losses = non_negative(n=n, b=b, c=c)
    if (wins + losses > items).any():
        raise ValueError("b + c must not exceed n: the discordant items are among the shared ones")
    return [items, wins, losses]


def vector(**named: npt.ArrayLike) -> FloatArray:
    """Return the one named array as a finite one-dimensional float64 array."""
    (name,) = named
    (array,) = finite(**named)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array


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
