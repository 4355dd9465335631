"""Argument checks shared by the statistics: each returns float64 arrays or raises a ValueError naming the argument."""

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
