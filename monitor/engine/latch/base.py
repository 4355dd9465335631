"""What the loops report: latches that closed, and where their pairs were."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Counts
from stats.numerics.pairs import Index


class Closed(NamedTuple):
    """Latches that closed, in the order of the log; arrays of shape (latches,)."""

    claim: NDArray[np.int8]  # place in CLAIMS
    kind: NDArray[np.int8]  # place in KINDS
    pair: Index
    when: NDArray[np.integer[Any]]  # position of its event in the chunk
    n: Counts
    b: Counts
    c: Counts
    lead: NDArray[np.int64]  # b - c, or the sum of D in units of graded scores, which have no b and c
    missing: Counts
    evidence: NDArray[np.float64]  # that it rests on
    side: NDArray[np.integer[Any]]
    threshold: NDArray[np.float64]

    def rows(self, some: Index) -> "Closed":
        """Return some of the latches."""
        columns: Any = (x[some] for x in self)
        return Closed(*columns)
