"""The scores of a board once more, in a random order: what p < .05 at each look would have called, next to anytime verdicts.

Both see the same items at the same looks. The anytime verdicts are those of a committed order whose family is all pairs. It is no verdict:
no order was committed for these scores.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import Floats, Sides
from monitor.view.pairs.table import PairTable
from monitor.words import unavailable
from schemas.results.replay import Replay, ReplayedStep
from stats.evidence.eprocess import log_e_value
from stats.families.error_control import WHOLE, step_down
from stats.fixed_n.mcnemar import exact_p
from stats.numerics.checks import distinct_counts
from stats.numerics.pairs import ranked_pairs

LEVEL: Final = 0.05
_LOOKS: Final = 120
_MOST_MODELS: Final = 100
_MOST_CELLS: Final = 5_000_000  # models and scores up to which a replay takes about a second

_Counts = NDArray[np.int64]


def replay(table: PairTable, seed: int = 0) -> Replay:
    """Replay the scores on the items that all models have, in a random order."""
    benchmark, models = table.benchmark, [table.benchmark.contestants[k].model for k in table.ranking.tolist()]
    right = table.kind.right(table.ranking[:_MOST_MODELS])
    if right is None:
        return Replay(benchmark=benchmark.name, reason=unavailable.NOT_REPLAYED)
    if not 2 <= len(models) <= _MOST_MODELS:
        return Replay(benchmark=benchmark.name, reason=unavailable.replay_of(_MOST_MODELS))
    if not 0 < right.size <= _MOST_CELLS:
        reason = unavailable.TOO_MANY_SCORES if right.size else unavailable.NO_COMMON_ITEM
        return Replay(benchmark=benchmark.name, reason=reason)
    right = right[np.random.default_rng(seed).permutation(len(right))]
    looks = np.unique(np.linspace(0, len(right), _LOOKS + 1)[1:].round().astype(np.int64))
    wins, losses = _counts(right, looks)
    # Many looks and pairs have few distinct counts.
    some_wins, some_losses, place = distinct_counts(wins.ravel(), losses.ravel())
    p = exact_p(some_wins, some_losses)[place].reshape(wins.shape)
    log_e = log_e_value(some_wins, some_losses, benchmark.spec.mixture)[place].reshape(wins.shape)
    lead = np.sign(wins - losses).astype(np.int8)
    peeked, decided = np.where(p < LEVEL, lead, np.int8(0)), _decided(log_e, lead, benchmark.spec.alpha)
    first, second = ranked_pairs(len(models))
    steps = np.flatnonzero(second == first + 1)
    undone = _undone(peeked).sum(axis=0)
    return Replay(
        benchmark=benchmark.name,
        items=len(right),
        looks=looks.size,
        pairs=first.size,
        called=int(((peeked != 0) & (peeked != _before(peeked))).sum()),
        undone=int(undone.sum()),
        undone_pairs=int((undone > 0).sum()),
        decided=int((decided[-1] != 0).sum()),
        steps=[_step(models[first[k]], models[second[k]], looks, peeked[:, k], decided[:, k]) for k in steps.tolist()],
    )


def _counts(right: NDArray[np.bool_], looks: _Counts) -> tuple[_Counts, _Counts]:
    """Return the items that only the first and only the second model of each pair has right, shape (looks, pairs)."""
    first, second = ranked_pairs(right.shape[1])
    only = np.empty((looks.size, right.shape[1], right.shape[1]), np.int64)
    for k, (start, stop) in enumerate(zip([0, *looks.tolist()], looks.tolist(), strict=False)):
        part = right[start:stop].astype(np.float32)
        only[k] = part.T @ (1 - part)
    only = only.cumsum(axis=0)
    return only[:, first, second], only[:, second, first]


def _decided(log_e: Floats, lead: Sides, alpha: float) -> Sides:
    """Return the side that is decided family-wise at each look, shape (looks, pairs); a decision is never withdrawn."""
    weights = np.full(lead.shape[1], WHOLE // lead.shape[1])
    sides = np.zeros(lead.shape, np.int8)
    for k, evidence in enumerate(np.maximum.accumulate(log_e, axis=0)):
        sides[k] = sides[k - 1] if k else 0
        fresh = step_down(evidence, weights, WHOLE, alpha).pair
        fresh = fresh[sides[k, fresh] == 0]
        sides[k, fresh] = lead[k, fresh]
    return sides


def _before(sides: Sides) -> Sides:
    return np.concatenate([np.zeros_like(sides[:1]), sides[:-1]])


def _undone(sides: Sides) -> NDArray[np.bool_]:
    """Return the looks at which a call is withdrawn."""
    before = _before(sides)
    return np.asarray((before != 0) & (before != sides))


def _step(model_a: str, model_b: str, looks: _Counts, peeked: Sides, decided: Sides) -> ReplayedStep:
    """Return one step down the ranking."""
    ends = np.flatnonzero(np.diff(peeked, append=np.int8(9)))
    starts = np.concatenate([[0], ends[:-1] + 1])
    stretches = [
        (int(looks[start]), int(looks[end + 1]) if end + 1 < looks.size else None, int(peeked[start]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        if peeked[start]
    ]
    at = int((decided != 0).argmax())
    return ReplayedStep(
        model_a=model_a,
        model_b=model_b,
        called=stretches,
        undone=int(_undone(peeked[:, None]).sum()),
        decided_at=int(looks[at]) if decided[at] else None,
        decided_side=int(decided[-1]),
    )
