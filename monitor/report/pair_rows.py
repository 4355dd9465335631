"""Status, sentence and place of decision of the pairs of a table."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.report.columns import Column
from monitor.report.pair_table import PairTable
from monitor.report.sentences import PairFacts, reason
from monitor.report.statuses import STATUSES, status_codes
from schemas.report import Status

_ASSUMPTIONS: Final = {
    "completion": "the declared number of items is the whole benchmark",
    "committed": "the items are a sample, taken in the order that the seed committed to",
    "trusted": "the arrival order does not depend on outcomes or clusters, as declared",
}


def verdicts(
    table: PairTable,
    listed: NDArray[np.int64],
    columns: dict[str, list[Any]],
    held: str | None,
    names: list[str],
) -> tuple[list[Status], list[str], list[int | None]]:
    """Status, sentence and place of decision of each listed pair."""
    benchmark, contestants = table.benchmark, table.benchmark.contestants
    missing = table.missing
    policy = "completion" if table.assumed_items is not None else benchmark.spec.order.policy
    assumption = (
        f"the {table.assumed_items:,} items found are the whole benchmark"
        if table.assumed_items is not None
        else _ASSUMPTIONS.get(policy)
    )
    latched = {name: Column(listed).sides(sides) for name, sides in table.decided_anytime.items()}
    outside = _outside(table, listed)
    low, high = (np.array(columns[f"gap_family_{end}"], np.float64) for end in ("low", "high"))
    statuses = [STATUSES[code] for code in status_codes(table, listed, held, low, high).tolist()]
    reasons: list[str] = []
    decided_at: list[int | None] = []
    for r, q in enumerate(listed.tolist()):
        side, status = latched["anytime_family"][r], statuses[r]
        left = None if missing is None else int(missing[q])
        reasons.append(
            reason(
                PairFacts(
                    model_a=names[table.a[q]],
                    model_b=names[table.b[q]],
                    status=status,
                    side=side,
                    n=columns["n"][r],
                    discordant=None if columns["b"][r] is None else columns["b"][r] + columns["c"][r],
                    low=columns["gap_family_low"][r],
                    high=columns["gap_family_high"][r],
                    pair_side=latched["anytime"][r],
                    missing=left,
                    items_to_decision=columns["items_to_decision"][r],
                    held=held,
                    gap=columns["gap"][r],
                    assumption=assumption,
                    no_family=outside[r],
                    wins=columns["b"][r],
                    losses=columns["c"][r],
                    policy=policy,
                    turned_at=_turned_at(table, q),
                    epochs=(contestants[table.a[q]].epoch, contestants[table.b[q]].epoch),
                )
            )
        )
        decided_at.append(None if side is None else _decided_at(table, q))
    return statuses, reasons, decided_at


def _outside(table: PairTable, listed: NDArray[np.int64]) -> list[str | None]:
    """Why a pair has no family verdict, or None where it may get one."""
    full = f"pairs that came before it have filled the declared family ({table.benchmark.spec.family.capacity or 0:,})"
    placed = np.isfinite(table.log_family_threshold)
    return [
        (full if table.in_family[q] else "it is not in the declared family") if table.n[q] and not placed[q] else None
        for q in listed.tolist()
    ]


def _decided_at(table: PairTable, q: int) -> int:
    """Shared items at which the pair was decided: of the latch, or of the moment when completeness was asserted."""
    latch = table.benchmark.changes.get(f"{table.pair[q]}:anytime_family:decided")
    return int(table.n[q]) if latch is None else latch.evidence.n


def _turned_at(table: PairTable, q: int) -> int | None:
    """Shared items at which the gap first turned against the family-wise decision, or None."""
    latch = table.benchmark.changes.get(f"{table.pair[q]}:anytime_family:reversed")
    return None if latch is None else latch.evidence.n
