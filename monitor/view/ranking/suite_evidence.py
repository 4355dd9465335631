"""When a suite has anytime verdicts, over which family, and its evidence along the committed orders of its members."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes
from monitor.engine.state.graded import Capital, Weighting, capital_gained
from monitor.view.board import BoardView
from monitor.view.reasons import held
from schemas.records.declaration import MAX_GRADED_ITEMS, FamilySpec
from schemas.records.scores import ABSENT, ONE, SCORE_UNIT, SKIPPED, ZERO
from schemas.records.suites import Suite
from schemas.results.reasons import Fact, Reason, fact
from stats.evidence.graded import graded_log_e_halves, initial_capital, log_increments
from stats.numerics.pairs import Index, all_pairs
from stats.order import permutation_key

MOST_PAIRS: Final = 100_000  # pairs of a suite with live verdicts at most: each has 832 bytes of capital

MOST_CELLS: Final = 100_000_000
"""The same for pairs times items where a member has graded scores, of which each difference is computed."""

MOST_STEPS: Final = 1_300_000  # the same for pairs times looks along a committed order, about three seconds

_LOOKS: Final = 256
_SLAB_CELLS: Final = 1_000_000


class Terms(NamedTuple):
    """Under what a suite has anytime verdicts."""

    policy: str  # the order policy of all members; "none" where there are no verdicts
    held: list[Fact]  # why there are none; nothing if there are
    family: FamilySpec  # the smallest family that a member declares: a pair of the suite is one of each member
    shares_items: bool = False  # whether the reason is an item that two members have


def terms_of(suite: Suite, members: Mapping[str, BoardView], models: int) -> Terms:
    """Return under what a suite with so many ranked models has live verdicts; `members` are those with scores."""
    shared = [] if suite.distinct else _shared_item(members)
    if shared:
        return Terms("none", shared, FamilySpec(), shares_items=True)
    why = _fault(suite, members) or _beyond(members, models)
    declared = [each.spec.family for each in members.values() if each.spec.family.capacity is not None]
    family = min(declared, key=lambda each: each.capacity or 0, default=FamilySpec())
    if why:
        return Terms("none", [fact(Reason.NO_SUITE_ORDER, because=why)], FamilySpec())
    return Terms(next(iter(members.values())).spec.order.policy, [], family)


def _shared_item(members: Mapping[str, BoardView]) -> list[Fact]:
    """Return that two members have an item of the same id; nothing if none have."""
    known: dict[str, str] = {}
    for name, each in members.items():
        # Not `item_keys`: these are units where items have any.
        ids = dict.fromkeys(each.row_keys.names)
        ids |= dict.fromkeys(each.spec.item_ids or ())
        item = next((item for item in ids if item in known), None)
        if item is not None:
            return [fact(Reason.SHARED_ITEM, members=[known[item], name], item=item)]
        known.update(dict.fromkeys(ids, name))
    return []


def _fault(suite: Suite, members: Mapping[str, BoardView]) -> list[Fact]:
    """Return which member keeps a suite from verdicts, and why; nothing without one."""
    for name in suite.members:
        member = members.get(name)
        if member is None:
            return [fact(Reason.MEMBER_UNSCORED, member=name)]
        policy = member.spec.order.policy
        if policy in {"none", "trusted"}:
            return [fact(Reason.MEMBER_ORDER, member=name, policy=policy)]
        if why := held(member):
            return [fact(Reason.MEMBER_HELD, member=name, because=why)]
    policies = {each.spec.order.policy for each in members.values()}
    return [fact(Reason.MIXED_POLICIES)] if len(policies) > 1 else _tied_orders(members)


def _tied_orders(members: Mapping[str, BoardView]) -> list[Fact]:
    """Return which members put an item of the same id at the same place, so that their orders are not independent."""
    of_seed: dict[str, dict[str, str]] = {}
    for name, each in members.items():
        if each.committed is None or each.spec.order.seed is None:
            continue
        known = of_seed.setdefault(each.spec.order.seed, {})
        ids = each.committed.names(0, each.committed.size)
        item = next((item for item in ids if item in known), None)
        if item is not None:
            return [fact(Reason.SAME_SEED, members=[known[item], name], item=item)]
        known.update(dict.fromkeys(ids, name))
    return []


def _beyond(members: Mapping[str, BoardView], models: int) -> list[Fact]:
    """Return that a suite is too large for verdicts while scores come; nothing if it is not."""
    pairs, items = models * (models - 1) // 2, sum(each.spec.items or 0 for each in members.values())
    graded = any(each.item_values.size > ONE + 1 for each in members.values())
    committed = any(each.committed is not None for each in members.values())
    steps = pairs * min(items, _LOOKS)
    too_many = pairs > MOST_PAIRS or (graded and pairs * items > MOST_CELLS) or (committed and steps > MOST_STEPS)
    return [fact(Reason.SUITE_TOO_LARGE, pairs=pairs, items=items)] if too_many or items > MAX_GRADED_ITEMS else []


def family_places(union: BoardView) -> tuple[NDArray[np.int32], list[Fact]]:
    """Return the places of the pairs of a suite in the declared family, and why they have none; nothing if they have."""
    # The shares of alpha are equal and do not depend on who came first, since there is no order of arrival among benchmarks.
    capacity, place = union.spec.family.capacity, np.zeros(union.pairs, np.int32)
    if capacity is None:
        return place, [fact(Reason.NO_SUITE_FAMILY)]
    pair = np.arange(union.pairs)
    pair = pair[union.in_family(pair)]
    if pair.size > capacity:
        return place, [fact(Reason.SUITE_BEYOND_FAMILY, pairs=int(pair.size), capacity=capacity)]
    place[pair] = 1 + np.arange(pair.size)
    return place, []


class Walk(NamedTuple):
    """Evidence of all pairs along the order of the union, shape (pairs,)."""

    peak: NDArray[np.float64]  # the largest ln e at a look
    side: NDArray[np.int8]  # for whom it was
    capital: Capital  # the capital at the last look, skips at their worst for either side


def walk_committed(union: BoardView, weighting: Weighting, members: Mapping[str, BoardView]) -> Walk:
    """Bet along the order of a suite: the items of all members by their keys; each member's own order is a part of it."""
    # Keys under different seeds are independent and uniform, so this is one random permutation of the union. The prefix of a pair ends
    # before the first item that one of its models lacks. There are `_LOOKS` looks at places fixed in advance, which cost less than one at
    # each item.
    codes, cluster, reach = _in_order(union, weighting, members)
    i, j = all_pairs(codes.shape[1])
    last = np.minimum(reach[i], reach[j])
    capital = initial_capital((i.size,))
    peak, side = np.zeros(i.size), np.ones(i.size, np.int8)
    for start, stop in pairwise(_looks(codes.shape[0])):
        some = np.flatnonzero(last >= stop)
        if not some.size:
            break
        part = slice(start, stop)
        if codes.max(initial=0) <= ONE:
            capital[some] += _gained(codes[part], cluster[part], weighting, i[some], j[some])
        else:
            capital[some] += _gained_by_units(
                codes[part], union.item_values, cluster[part], weighting, i[some], j[some]
            )
        for_first, for_second = graded_log_e_halves(capital[some])
        log_e = np.logaddexp(for_first, for_second) - np.log(2)
        higher = log_e > peak[some]
        peak[some[higher]] = log_e[higher]
        side[some[higher]] = np.where(for_first >= for_second, 1, -1)[higher]
    return Walk(peak, side, capital)


def _looks(items: int) -> list[int]:
    """Return 0 and the numbers of items at which evidence is looked at, the last of which is all of them."""
    step = -(-items // _LOOKS)
    return [*range(0, items, max(step, 1)), items]


def _in_order(
    union: BoardView, weighting: Weighting, members: Mapping[str, BoardView]
) -> tuple[Codes, NDArray[np.int64], Index]:
    """Return the scores of the union in its order, shape (items, models), the cluster of each item, and where each model's prefix ends."""
    place = {contestant.model: k for k, contestant in enumerate(union.contestants)}
    rows, clusters, keys, start = [], [], [], 0
    for name, each in members.items():
        assert each.committed is not None
        assert each.spec.order.seed is not None
        at = each.committed.item_at
        rows.append(np.where(at >= 0, at + start, -1))
        clusters.append(np.full(at.size, weighting.names.index(name)))
        keys += [permutation_key(each.spec.order.seed, item) for item in each.committed.names(0, at.size)]
        start += len(each.item_keys)
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    place_of = np.empty(order.size + 1, np.int64)
    place_of[order], place_of[-1] = np.arange(order.size), order.size
    reach, first = np.full(len(place), order.size), 0
    for each in members.values():
        assert each.committed is not None
        size, reached = each.committed.size, np.zeros(len(place), np.int64)
        for model in place.keys() & each.latest_epoch.keys():
            newest = each.newest(model)
            reached[place[model]] = each.committed.reached[newest]
        reach = np.minimum(reach, place_of[np.where(reached < size, first + reached, -1)])
        first += size
    at = np.concatenate(rows)[order]
    codes = union.item_codes()[at]
    codes[at < 0] = ABSENT
    return codes, np.concatenate(clusters)[order], reach


def _gained(codes: Codes, cluster: NDArray[np.int64], weighting: Weighting, i: Index, j: Index) -> Capital:
    """Return what some items add to the capital of pairs: bets on the first model at the lowest difference, others at the highest."""
    gained = initial_capital((i.size,))
    for k in np.unique(cluster).tolist():
        some = codes[cluster == k]
        right, wrong, skipped = ((some == code).astype(np.float64) for code in (ONE, ZERO, SKIPPED))
        sure, worst = right.T @ wrong, (wrong + skipped).T @ (right + skipped)
        up, down = (log_increments(sign * weighting.unit[k] / SCORE_UNIT) for sign in (1, -1))
        for half, (wins, losses) in enumerate(((sure[i, j], worst[i, j]), (worst[j, i], sure[j, i]))):
            gained[:, half] += wins.astype(np.int64)[:, None] * up[half] + losses.astype(np.int64)[:, None] * down[half]
    return gained


def _gained_by_units(
    codes: Codes, values: NDArray[np.int64], cluster: NDArray[np.int64], weighting: Weighting, i: Index, j: Index
) -> Capital:
    """Return what `_gained` does for scores of any size, as the means of units are."""
    gained, share = initial_capital((i.size,)), weighting.unit[cluster] / SCORE_UNIT
    low, high = values[codes].T, np.where(codes == SKIPPED, SCORE_UNIT, values[codes]).T
    step = max(1, _SLAB_CELLS // max(1, codes.shape[0]))
    for start in range(0, i.size, step):
        a, b = i[start : start + step], j[start : start + step]
        for half, difference in enumerate((low[a] - high[b], high[a] - low[b])):
            weighted = np.rint(difference * share).astype(np.int64)
            gained[start : start + step, half] += capital_gained(weighted)[:, half]
    return gained
