"""Columns of the pair table as the values of JSON: null where there is no finite number."""

from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.report.pair_table import Sides

_SIDE: Final = {1: "a", -1: "b", 0: None}


def number(value: float) -> float | None:
    """Return a finite number, or None."""
    return float(value) if isfinite(value) else None


class Column:
    """A column of the pair table at the listed pairs, as JSON values: null where there is no finite number."""

    def __init__(self, listed: NDArray[np.int64]) -> None:
        self.listed = listed

    def numbers(self, values: NDArray[Any] | None) -> list[float | None]:
        """Return finite numbers, None elsewhere."""
        if values is None:
            return [None] * self.listed.size
        return [x if isfinite(x) else None for x in np.asarray(values, np.float64)[self.listed].tolist()]

    def counts(self, values: NDArray[Any]) -> list[int]:
        """Return whole numbers."""
        return np.asarray(values)[self.listed].astype(np.int64).tolist()  # type: ignore[no-any-return]

    def sides(self, values: Sides | None) -> list[Any]:
        """Return "a", "b" or None."""
        if values is None:
            return [None] * self.listed.size
        return [_SIDE[x] for x in values[self.listed].tolist()]

    def flags(self, values: NDArray[np.bool_] | None) -> list[bool | None]:
        """Return booleans; None throughout where nothing was computed."""
        if values is None:
            return [None] * self.listed.size
        return values[self.listed].tolist()  # type: ignore[no-any-return]
