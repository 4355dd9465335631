"""Decide between events of one key: the first score counts, and a score fills an earlier skip."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.records.scores import ABSENT, SKIPPED, ZERO

Flags = NDArray[np.bool_]


class ComparedCells(NamedTuple):
    """What becomes of each event; shape (events,) each."""

    writes: Flags  # its score (or skip) enters the matrix: at most one event a key
    arrives: Flags  # it is the first event ever of its key
    duplicate: Flags  # it repeats what was there at that event
    conflict: Flags  # it differs from what was there, and does not fill a skip
    winner: NDArray[np.uint32]  # code that counts for its key after all of these events


def compare_cells(existing: NDArray[np.uint32], code: NDArray[np.uint32], first: Flags, fills: Flags) -> ComparedCells:
    """Decide between events of the same keys, and with what was there before; `fills`: of which keys a score fills a skip."""
    start, group = np.flatnonzero(first), np.cumsum(first) - 1
    before = existing[start]
    arrives = first & (existing == ABSENT)
    winner = np.where(before != ABSENT, before, code[start])
    leads = arrives.copy()
    early = np.zeros(code.size, bool)
    if fills.any():
        place = np.arange(code.size)
        score_at = np.minimum.reduceat(np.where((code >= ZERO) & fills, place, code.size), start)
        filled = np.flatnonzero((before < ZERO) & (score_at < code.size))
        winner[filled] = code[score_at[filled]]
        leads[start[filled]] = False
        leads[score_at[filled]] = True
        # Skips before the first score meet a skip, or nothing.
        early = fills & (before < ZERO)[group] & (code == SKIPPED) & (place < score_at[group])
    against = winner[group].astype(np.uint32)
    met = ~leads & ~arrives
    conflict = met & (against != code) & ~early
    return ComparedCells(leads, arrives, met & ~conflict, conflict, against)
