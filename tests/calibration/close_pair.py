"""Ranks 5 and 6 of MMLU-Pro in committed orders: after how many items the engine settles the pair, and decides it.

The order is a permutation, so only the four counts of the pair matter: 1,680 items that only rank 5 has right, 1,454 that only rank 6 has,
and those on which they agree, as published.
"""

from typing import Final

import numpy as np

from stats import committed_order
from tests.calibration.streams import Board, capacity, listed, packed

SCORES: Final = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], [1_680, 1_454, 5_949, 2_949], axis=0)


def items_needed(seed: str) -> dict[str, int | None]:
    """Return after how many items of a committed order each claim is made, the pair being its own family; None if it is not."""
    ids = listed(len(SCORES))
    board = Board(item_ids=ids, order={"policy": "committed", "seed": seed}, family=capacity(2))
    item = np.repeat(committed_order(seed, ids), 2)
    model = np.tile([0, 1], len(SCORES))
    board.fold(packed((item, model, np.zeros_like(item), SCORES[item, model])))
    needed: dict[str, int | None] = {"settled": None, "anytime_family": None}
    for change in board.benchmark.changes.values():
        if change.procedure in needed and change.kind in {"settled", "decided"}:
            needed[change.procedure] = change.evidence.n
    return needed


def measure(orders: int) -> dict[str, dict[str, float]]:
    """Return the quartiles of the items needed over some orders; an order without the claim counts all items."""
    found = [items_needed(f"seed {k}") for k in range(orders)]
    measured: dict[str, dict[str, float]] = {}
    for claim, label in (("settled", "settled"), ("anytime_family", "decided")):
        items = [each[claim] for each in found]
        quartiles = np.quantile([len(SCORES) if x is None else x for x in items], [0.25, 0.5, 0.75]).tolist()
        columns = dict(zip(("q1", "median", "q3"), quartiles, strict=True))
        measured[label] = {"orders": orders, "reached": sum(x is not None for x in items), **columns}
    return measured
