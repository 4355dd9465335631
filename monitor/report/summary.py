"""How many of the listed pairs each procedure leaves open."""

import numpy as np
from numpy.typing import NDArray

from monitor.report.columns import Column
from monitor.report.pair_table import PairTable
from schemas.report import Decided, PairReport, Resolved, Summary


def summary(table: PairTable, rows: list[PairReport], listed: NDArray[np.int64]) -> Summary:
    """Count what each procedure leaves open among the listed pairs; a procedure that was not computed is left out."""
    column = Column(listed)
    undecided: dict[str, int] = {}
    unresolved: dict[str, int] = {}
    computed = _computed(table, rows)
    for name in Decided.model_fields:
        if name in computed:
            undecided[name] = sum(getattr(row.decided, name) is None for row in rows)
    for name in Resolved.model_fields:
        values = [getattr(row.resolved, name) for row in rows]
        if rows and None not in values:
            unresolved[name] = sum(not value for value in values)
    if rows:
        undecided["bonferroni_adjacent"] = sum(
            side is None and row.adjacent
            for side, row in zip(column.sides(table.decided_fixed["bonferroni_adjacent"]), rows, strict=True)
        )
    if rows:
        flags = table.resolved(table.required_n(table.benchmark.spec.alpha / max(int(table.adjacent.sum()), 1)))
        unresolved["bonferroni_adjacent"] = sum(
            not flag and row.adjacent for flag, row in zip(column.flags(flags), rows, strict=True)
        )
    return Summary(pairs=len(rows), undecided=undecided, unresolved=unresolved)


def _computed(table: PairTable, rows: list[PairReport]) -> set[str]:
    if not rows:
        return set()
    names = {"anytime", "anytime_family", "fixed_n", "bonferroni", "holm", "benjamini_hochberg"}
    if table.bets and (table.benchmark.spec.order.policy != "none" or table.assumed_items is not None):
        names.add("e_bh")
    if any(row.p_clustered is not None for row in rows):
        names.add("clustered")
    return names
