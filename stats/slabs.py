"""Elementwise functions of two large arrays, one slab at a time: temporaries stay in the processor's cache."""

from collections.abc import Callable

import numpy as np

from stats.checks import FloatArray


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
