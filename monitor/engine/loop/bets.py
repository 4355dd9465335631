"""Bets on differences of any size, of graded scores, clusters with weights, means of repeats, and units of battles.

The log capital of a bet is a whole number (`stats.evidence.graded`), so no order of additions changes it. What a difference adds to the
bets is a row of a table. `stats` computes the rows: loops list the differences that have none.
"""

# mypy: disable-error-code="no-any-return,arg-type,return-value"
# Elements of arrays are of any type here; Numba checks them all.

from math import exp, log, log1p

import numpy as np

from monitor.engine.loop.compiled import compiled, entry, mode
from monitor.engine.loop.layout import KNOWN, NAT, UNIT_OF, WHOLE, Array, Bets, Rule, State

_FAR = 32  # items ahead
_NEAR = 0.3  # so near a limit every item is looked at
_COARSE = np.append(np.exp(-np.arange(40 * 32) / 32), 0.0)
_FINE = np.exp(-np.arange(32) / 1024)
_LAST, _REST = 40 * 32, 2**30 - 1


# --- differences --------------------------------------------------------------------------------------------------------------------------


@compiled
def slot_of(bets: Bets, difference: int) -> int:
    """Return the slot of a difference, or the one to put it into."""
    last = bets.key.size - 1  # a power of two less one
    at = (difference ^ (difference >> 17) ^ (difference >> 31)) & last
    while bets.row[at] >= 0 and bets.key[at] != difference:
        at = (at + 1) & last
    return at


@compiled
def list_difference(state: State, difference: int) -> None:
    """Give a difference a row, if it has none."""
    bets, at = state.bets, slot_of(state.bets, difference)
    if bets.row[at] < 0:
        row = state.count[KNOWN]
        bets.key[at], bets.row[at], bets.known[row] = difference, row, difference
        state.count[KNOWN] = row + 1


@compiled
def weighed(bets: Bets, x: int, difference: int) -> int:
    """Return a difference of an item as it enters the bets."""
    return difference if bets.cluster.size == 0 else np.int64(np.rint(difference * bets.share[bets.cluster[x]]))


@entry
def list_differences(state: State, item: Array, model: Array, value: Array, begin: int) -> int:
    """List the differences of the next events; return the first event whose differences may have no room."""
    values, models, t = state.values, state.models.shape[1], begin
    while t < item.size and state.count[KNOWN] + models <= state.bets.known.size:
        x, m = item[t], model[t]
        if m == UNIT_OF:
            list_difference(state, value[t])
        else:
            for k in range(models):
                if value[t] >= 0 and k != m and values[x, k] >= 0:
                    difference = value[t] - values[x, k]
                    list_difference(state, weighed(state.bets, x, difference if m < k else -difference))
            values[x, m] = value[t]
        t += 1
    for u in range(begin, t):
        if model[u] != UNIT_OF:
            values[item[u], model[u]] = -1  # it comes yet
    return t


@compiled
def bet(state: State, pair: int, difference: int) -> None:
    """Let a pair bet on a difference."""
    bets = state.bets
    bets.lead[pair] += difference
    if difference != 0:
        capital = bets.capital[pair]
        capital += bets.step[bets.row[slot_of(bets, difference)]]


# --- evidence -----------------------------------------------------------------------------------------------------------------------------


@compiled
def lead_of(rule: Rule, state: State, pair: int) -> int:
    """Return the sum of the differences of a pair, 0 where rounding may have made it."""
    lead = state.bets.lead[pair]
    return lead if abs(lead) > rule.rounding * state.n[pair] else np.int64(0)


@compiled
def set_missing(state: State, pair: int, missing: int) -> None:
    """Compute what missing items add at their worst; nothing where they do not count."""
    bets = state.bets
    for k in range(bets.missing.size):
        bets.missing[k] = missing * bets.worst[0, k] if missing > 0 and bets.size.size == 0 else 0
    for c in range(bets.size.size if missing >= 0 else 0):
        left = max(bets.size[c] - bets.shared[pair, c], 0)
        for k in range(bets.missing.size):
            bets.missing[k] += left * bets.worst[c, k]


@compiled
def log_half(bets: Bets, pair: int, side: int, more: int) -> float:
    """Return ln of the half of e for one model, after so many further items at their best for it.

    exp(-d) is a product of two tables and the first terms of its series: differences d of whole numbers are exact.
    """
    size = bets.missing.size
    capital, most, total = bets.capital[pair, side * size : (side + 1) * size], -WHOLE, 0.0
    for k in range(size):
        most = max(most, capital[k] + bets.missing[k] + more * bets.rise[k])
    for k in range(size):
        d = most - capital[k] - bets.missing[k] - more * bets.rise[k]
        x = (d & _REST) * NAT
        total += (
            _COARSE[min(d >> 35, _LAST)] * _FINE[(d >> 30) & 31] * (1 - x * (1 - x * (1 / 2 - x * (1 / 6 - x / 24))))
        )
    return most * NAT + log(total * (0.5 / size))


if mode() == "interpreted":  # 52 steps of Python take as long as 500 of numpy

    def log_half(bets: Bets, pair: int, side: int, more: int) -> float:
        """Return the same."""
        size = bets.missing.size
        capital = bets.capital[pair, side * size : (side + 1) * size] + (bets.missing + more * bets.rise)
        most = capital.max()
        return float(most * NAT + np.log(np.exp((capital - most) * NAT).sum() * (0.5 / size)))

    def set_missing(state: State, pair: int, missing: int) -> None:
        """Compute the same."""
        bets = state.bets
        if bets.size.size == 0:
            bets.missing[:] = max(missing, 0) * bets.worst[0]
        else:
            bets.missing[:] = np.maximum(bets.size - bets.shared[pair], 0) @ bets.worst if missing >= 0 else 0


@compiled
def log_e_of_bets(bets: Bets, pair: int, missing: int, more: int) -> tuple[float, int]:
    """Return the evidence of a pair, or a bound of it after further items, and which half is larger; see `set_missing`.

    Under completion, where items are missing or none is, it is the larger half; else the sum of both.
    """
    first, second = log_half(bets, pair, 0, more), log_half(bets, pair, 1, more)
    side = 1 if first >= second else -1
    if missing >= 0:
        return max(first, second), side
    return max(first, second) + log1p(exp(-abs(first - second))), side


@compiled
def quiet_items(state: State, pair: int, missing: int, now: float, limit: float) -> int:
    """Return a number of further items that certainly leave the evidence below a limit, given the present one; see `set_missing`.

    No bet grows faster than the largest one. The bound is convex in the number of items, so between two numbers it is below its chord.
    """
    bets = state.bets
    most = bets.rise[bets.rise.size - 1] * NAT
    items = int((limit - now) / most)
    if items >= _FAR or limit - now <= _NEAR:
        return items
    then, _ = log_e_of_bets(bets, pair, missing, _FAR)
    if then < limit:
        return _FAR + int((limit - then) / most)
    return max(items, int(_FAR * (limit - now - 1e-9) / (then - now)))


@compiled
def open_items(rule: Rule, state: State, pair: int) -> int:
    """Return a number of further items after which it is certainly not known who leads on all of them; negative where it is known."""
    bets, lead, n, room = state.bets, abs(lead_of(rule, state, pair)), state.n[pair], np.int64(0)
    for c in range(bets.size.size):
        room += max(bets.size[c] - bets.shared[pair, c], 0) * bets.most[c]
    if bets.size.size == 0:
        room = (rule.items - n) * bets.most[0]
    slack = room + rule.rounding * n - lead
    if slack < 0 or (room == 0 and lead == 0):
        return -1
    return max(0, min(slack // (2 * rule.unit + 1), (room - 1) // (rule.unit + 1)))
