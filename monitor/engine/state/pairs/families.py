"""The families of pairs: who is in which, and with what weight; functions of names, epochs and places."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.records.declaration import FamilySpec
from schemas.records.scores import Contestant
from schemas.results.assumptions import Assumption
from stats.families.error_control import WHOLE, place_weights, step_thresholds
from stats.numerics.pairs import Index, pair_index, pair_members


def declared_pairs(family: FamilySpec, epochs: Mapping[str, Sequence[int]]) -> Index:
    """Return the indices of the declared pairs, in every combination of their epochs."""
    members = [
        (min(p, q), max(p, q))
        for one, other in family.pairs or ()
        for p in epochs.get(one, ())
        for q in epochs.get(other, ())
    ]
    i, j = np.array(members, np.int64).reshape(-1, 2).T
    return pair_index(i, j)


def in_family(
    family: FamilySpec, contestants: Sequence[Contestant], epochs: Mapping[str, Sequence[int]], pair: Index
) -> NDArray[np.bool_]:
    """Return for each pair whether it is in the declared family: all are, unless models or pairs were declared."""
    if family.models is not None:
        named = family.named
        declared = np.array([contestant.model in named for contestant in contestants], bool)
        i, j = pair_members(pair)
        return np.asarray(declared[i] & declared[j])
    return np.ones(pair.shape, bool) if family.pairs is None else np.isin(pair, declared_pairs(family, epochs))


def comparable(contestants: Sequence[Contestant], models: Sequence[str], pair: Index) -> NDArray[np.bool_]:
    """Return for each pair whether its members are different models: two epochs of one model are no hypothesis."""
    if len(models) == len(contestants):
        return np.ones(pair.shape, bool)
    ids = {model: k for k, model in enumerate(models)}
    model = np.array([ids[c.model] for c in contestants], np.int64)
    i, j = pair_members(pair)
    return np.asarray(model[i] != model[j])


def families_of(contestants: Sequence[Contestant], pair: Index) -> Index:
    """Return the family of each pair: twice the newer epoch of its two models, and 1 more where only one model has that epoch."""
    # So scores that are replaced for every model start a family with its own alpha, and pairs of an old and a new epoch, which exist only
    # meanwhile, take no places in it.
    epochs = np.array([contestant.epoch for contestant in contestants], np.int64)
    if not epochs.any():
        return np.zeros(pair.shape, np.int64)
    i, j = pair_members(pair)
    return np.asarray(2 * np.maximum(epochs[i], epochs[j]) + (epochs[i] != epochs[j]))


def by_family(contestants: Sequence[Contestant], pair: Index) -> Iterator[tuple[int, Index]]:
    """Yield each family of some pairs, ascending, and their places among the pairs."""
    family = families_of(contestants, pair)
    if not family.any():
        yield from [(0, np.arange(pair.size))] if pair.size else []
        return
    for each in np.unique(family).tolist():
        yield each, np.flatnonzero(family == each)


def weights_of(place: NDArray[np.integer], capacity: int | None) -> NDArray[np.int64]:
    """Return the weight of each place in a family, out of `stats.families.error_control.WHOLE`; 0 for a pair without a place."""
    return np.where(place > 0, place_weights(np.maximum(place, 1), capacity), 0)


def thresholds_of(
    families: Iterator[tuple[int, Index]],
    weight: NDArray[np.int64],
    decided: NDArray[Any],
    open_weight: Callable[[int], int],
    alpha: float,
) -> NDArray[np.float64]:
    """Return ln 1/alpha_j of pairs by weight, given what is decided of each and open in each family; infinite without weight."""
    # It never exceeds what a decided pair has met.
    threshold = np.full(weight.shape, np.inf)
    for family, own in families:
        share = np.maximum(open_weight(family) + decided[own], 1) / WHOLE
        threshold[own] = step_thresholds(weight[own], WHOLE, alpha) + np.log(share)
    return threshold


def joining(family: FamilySpec) -> Assumption | None:
    """Return what a family-wise verdict assumes of the models that join while results arrive; None where the family is declared.

    >>> joining(FamilySpec()).code
    'joined'
    >>> joining(FamilySpec(policy="capacity", size=45))
    Assumption(code='capacity', number=45, names=())
    >>> joining(FamilySpec(models=("ash", "birch")))
    """
    if family.policy == "spending":
        return Assumption("joined")
    if family.models is not None or family.pairs is not None:
        return None
    return Assumption("capacity", family.size)
