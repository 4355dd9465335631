"""The way of an event through the pairs of 0/1 scores, as plain loops over arrays: `fold` at the end is where to begin to read.

An event gives a model a score of an item. For every model that has the item already: count, and where something may close, look at the
evidence, and close the latch whose threshold is met. So a verdict is a function of the log by construction; nothing here knows chunks.

*Layout.* Pair (i, j), i < j, has index j (j - 1) / 2 + i, and each sum of pairs is an array. The pairs of a model with all that came before
it are next to each other: an event reads one row of the score matrix and adds to stretches of memory.

*Alarms.* Evidence is convex in (b, c), so among all ways that some further items may go it is largest where one model wins all of them.
`calm` counts down a number of items that certainly closes nothing; only at 0 the pair is looked at. Any other meeting is an addition.

*Step-down by a heap.* A pair needs evidence + ln(alpha weight) >= ln(open weight) of its family (`stats.families.error_control`). Pairs
within `MARGIN` of that wait in a heap, the nearest first; the others are looked through again when the need has fallen by the margin.

The functions are compiled by Numba where it is installed (`monitor.engine.loop.compiled`); they allocate nothing and know no object.
"""

# mypy: disable-error-code="no-any-return,arg-type,return-value"
# Elements of arrays are of any type here; Numba checks them all.

from math import ceil, inf, log, sqrt

import numpy as np

from monitor.engine.loop.bets import (
    bet,
    lead_of,
    log_e_of_bets,
    open_items,
    quiet_items,
    set_missing,
    weighed,
)
from monitor.engine.loop.compiled import compiled, entry, mode
from monitor.engine.loop.evidence import ahead, along, log_e, log_exact, quiet, quiet_scores
from monitor.engine.loop.layout import (
    ABSENT,
    ANYTIME,
    AT,
    BETS,
    CLOSED,
    COMMITTED,
    COMPLETION,
    DECIDED,
    FAMILY,
    FAR,
    FIRST,
    FREE,
    IGNORES,
    JOINED,
    LARGE,
    LIVE,
    MARGIN,
    MET,
    NAN,
    NOBODY,
    ONE,
    OUT,
    PENDING,
    RAISED,
    READY,
    REVERSED,
    SETTLED,
    SKIPPED,
    SMALL,
    STAGE,
    TIE,
    TOLERANCE,
    UNIT_OF,
    USED,
    WANTED,
    WHOLE,
    ZERO,
    Array,
    Rows,
    Rule,
    State,
    Step,
)
from schemas.records.scores import SCORE_UNIT

# --- families -----------------------------------------------------------------------------------------------------------------------------


@compiled
def members(pair: int) -> tuple[int, int]:
    """Return (i, j) of a pair."""
    j = int((1 + sqrt(8.0 * pair + 1)) / 2)
    if j * (j - 1) // 2 > pair:
        j -= 1
    return pair - j * (j - 1) // 2, j


@compiled
def family_of(models: Array, i: int, j: int) -> int:
    """Return the family of a pair: twice the newer epoch, and one more where only one model has it (`PairState.families`)."""
    newer = i if models[0, i] >= models[0, j] else j
    return 2 * models[1, newer] + (models[0, i] != models[0, j])


@compiled
def _belongs(state: State, pair: int, family: int) -> bool:
    """Return whether a pair is of a family, whether it has a place there or not."""
    if state.need.shape[1] == 2:  # all models have one epoch
        return family == 0
    i, j = members(pair)
    return family_of(state.models, i, j) == family


@entry
def weight_at(capacity: int, place: int) -> int:
    """Return the weight of a place in a family, out of WHOLE (`stats.families.error_control.place_weights`).

    1/capacity; or a quarter of 1 / (k (k - 1)^2) + ln 20.5 / ((j + 20) ln^2 (j + 20)), where k models have at least j pairs, times two.
    """
    if place <= 0:
        return 0
    if capacity > 0:
        return WHOLE // capacity if place <= capacity else 0
    k, index = ceil((1 + sqrt(1.0 + 8.0 * place)) / 2) * 1.0, place + 20.0
    return int((0.25 * (1 / k / (k - 1) / (k - 1) + log(20.5) / (index * log(index) ** 2))) * (2.0 * WHOLE))


@compiled
def _share(rule: Rule, pair: int, state: State) -> float:
    """Return ln(alpha weight) of a pair that has weight."""
    return log(float(weight_at(rule.capacity, state.place[pair]))) - rule.limit


@compiled
def _near(rule: Rule, state: State, pair: int, family: int) -> float:
    """Return the evidence from which on a pair may be near its threshold in the family; infinite without a place in it."""
    near = state.near[pair]
    if near == 0:
        near = np.float32(inf)
        if weight_at(rule.capacity, state.place[pair]) > 0:
            near = np.float32(max(rule.limit, state.floor[FAMILY, family] - _share(rule, pair, state)) - 1e-5)
        state.near[pair] = near
    return near


@compiled
def _side(state: State, claim: int, pair: int) -> int:
    """Return what a claim has latched of a pair."""
    return state.family[pair] if claim == FAMILY else state.settled[pair]


@compiled
def _merge(state: State, one: int, other: int) -> int:
    """Put one heap of entries below the first of another; return the first of both."""
    if one == 0 or other == 0:
        return one + other
    if state.score[one] < state.score[other]:
        one, other = other, one
    state.link[2, other] = state.link[1, one]
    state.link[1, one] = other
    return one


@compiled
def _push(state: State, claim: int, family: int, pair: int, score: float) -> None:
    """Put a pair into a heap; lower entries of it stay, and count for nothing once it has closed."""
    count, link = state.count, state.link
    entry = count[FREE]
    if entry > 0:
        count[FREE] = link[2, entry]
    else:
        count[USED] += 1
        entry = count[USED]
    count[LIVE] += 1
    state.score[entry] = score
    link[0, entry], link[1, entry], link[2, entry] = pair, 0, 0
    state.root[claim, family] = _merge(state, state.root[claim, family], entry)
    if score >= state.need[claim, family] - TOLERANCE:
        count[READY] = 1


@compiled
def _pop(state: State, claim: int, family: int) -> int:
    """Take the first entry out of a heap, and return its pair: its children are merged by twos, then into one."""
    link, top = state.link, state.root[claim, family]
    entry, twos = link[1, top], 0
    while entry > 0:
        second = link[2, entry]
        rest = link[2, second] if second > 0 else 0
        link[2, entry] = 0
        if second > 0:
            link[2, second] = 0
        both = _merge(state, entry, second)
        link[2, both] = twos
        twos, entry = both, rest
    first = 0
    while twos > 0:
        rest = link[2, twos]
        link[2, twos] = 0
        first, twos = _merge(state, first, twos), rest
    state.root[claim, family] = first
    link[2, top] = state.count[FREE]
    state.count[FREE] = top
    state.count[LIVE] -= 1
    return link[0, top]


@compiled
def _raise(rule: Rule, state: State, claim: int, pair: int, family: int, evidence: float, side: int) -> bool:
    """Keep evidence above all before it, and return whether it is; a pair without a place needs infinite evidence."""
    peaks = state.peak if claim == FAMILY else state.bound
    known = abs(peaks[pair]) if peaks.size > 0 else 0.0
    if _side(state, claim, pair) != 0 or evidence <= known or evidence < rule.limit - TOLERANCE:
        return False
    if claim == FAMILY:
        if _near(rule, state, pair, family) == inf:
            return False
        _keep(state, pair, evidence, side)
    elif evidence < inf and weight_at(rule.capacity, state.place[pair]) == 0:
        return False
    elif peaks.size > 0:
        peaks[pair] = evidence if side > 0 else -evidence
    return True


@compiled
def _offer(rule: Rule, state: State, claim: int, pair: int, family: int, evidence: float) -> None:
    """Put a pair whose evidence has risen into the heap of its family if it is near its threshold."""
    if claim == FAMILY and evidence < _near(rule, state, pair, family):
        return
    weight = weight_at(rule.capacity, state.place[pair])
    score = evidence + log(float(weight)) - rule.limit if weight > 0 else evidence
    if score >= state.floor[claim, family]:
        _push(state, claim, family, pair, score)


@compiled
def _keep(state: State, pair: int, evidence: float, side: int) -> None:
    """Keep the largest evidence of a pair in its family."""
    state.peak[pair] = evidence if side > 0 else -evidence
    if state.mark[pair] == 0:
        state.mark[pair] = 1
        state.raised[state.count[RAISED]] = pair
        state.count[RAISED] += 1


@compiled
def _waits(rule: Rule, state: State, claim: int, pair: int) -> float:
    """Return what is compared with ln(open weight), of an open pair with evidence; minus infinity for any other."""
    peaks = state.peak if claim == FAMILY else state.bound
    if peaks.size == 0 or peaks[pair] == 0 or _side(state, claim, pair) != 0 or state.closed[pair]:
        return -inf
    if weight_at(rule.capacity, state.place[pair]) == 0:
        return -inf
    evidence = abs(peaks[pair])
    if claim == FAMILY and rule.policy == COMPLETION:  # evidence never falls, so it is computed where it matters
        _refresh(rule, state, pair)
        evidence = abs(peaks[pair])
    return evidence + _share(rule, pair, state)


@compiled
def _has_evidence(state: State, pair: int) -> bool:
    """Return whether a pair may wait for a threshold: without evidence it cannot, as no pair of a new board does."""
    return (state.peak.size > 0 and state.peak[pair] != 0) or (state.bound.size > 0 and state.bound[pair] != 0)


@compiled
def _refresh(rule: Rule, state: State, pair: int) -> None:
    """Compute the peak of a waiting pair under completion."""
    now = present(rule, state, pair, rule.items - state.n[pair])
    if now.evidence > abs(state.peak[pair]):
        _keep(state, pair, now.evidence, now.side)


@compiled
def _lower(rule: Rule, state: State, claim: int, family: int) -> bool:
    """Lower the floor to a margin below the need, and put the pairs that are near now into the heap; return whether they had room."""
    old, new = state.floor[claim, family], state.need[claim, family] - MARGIN
    for pushes in (False, True):
        near = 0
        for pair in range(_pairs(state)):
            if not _belongs(state, pair, family):
                continue
            score = _waits(rule, state, claim, pair)
            if new <= score < old:
                near += 1
                if pushes:
                    _push(state, claim, family, pair, score)
            if pushes and claim == FAMILY:
                state.near[pair] = 0
                if score > -inf:
                    _alert(state, pair)
        if state.count[LIVE] + near >= state.score.size:
            state.count[WANTED] = state.count[LIVE] + near + 1
            return False
        if not pushes:
            state.floor[claim, family] = new
    return True


@compiled
def _pairs(state: State) -> int:
    """Return how many pairs the models have."""
    models = state.models.shape[1]
    return models * (models - 1) // 2


@compiled
def _alert(state: State, pair: int) -> None:
    """Let the next shared item of a pair be looked at."""
    state.calm[pair] = 0
    if state.prefix.sums.shape[0] > 0:
        state.prefix.sums[pair, 5] = 0


# --- changes ------------------------------------------------------------------------------------------------------------------------------


@compiled
def _step(n: int, b: int, c: int, missing: int, evidence: float, side: int) -> Step:
    return Step(np.int64(n), np.int64(b), np.int64(c), np.int64(missing), float(evidence), np.int64(side))


@compiled
def _add(state: State, out: Rows, when: int, pair: int, claim: int, kind: int, step: Step, threshold: float) -> None:
    """Write a change."""
    size = state.count[OUT]
    row, real = out[0][size], out[1][size]
    row[0], row[1], row[2], row[3], row[4] = when, pair, claim, kind, step.side
    row[5], row[6], row[7], row[8] = step.n, step.b, step.c, step.missing
    real[0], real[1] = step.evidence, threshold
    state.count[OUT] = size + 1


@compiled
def _reverse(rule: Rule, state: State, out: Rows, when: int, pair: int, step: Step) -> None:
    """Record that the other model leads since a decision; the threshold in the family is that after the event.

    Where skips count at worst, the evidence may still be for the model that no longer leads.
    """
    step = _step(step.n, step.b, step.c, step.missing, step.evidence, _sign(step.b - step.c))
    if state.alone[pair] * (step.b - step.c) < 0 and abs(state.alone[pair]) == 1:
        state.alone[pair] *= 2
        _add(state, out, when, pair, ANYTIME, REVERSED, step, rule.limit)
    if state.family[pair] * (step.b - step.c) < 0 and abs(state.family[pair]) == 1:
        state.family[pair] *= 2
        _add(state, out, when, pair, FAMILY, REVERSED, step, NAN)


@compiled
def _met(rule: Rule, state: State, pair: int) -> float:
    """Return the evidence that a decided pair would need now in its family."""
    i, j = members(pair)
    weight = weight_at(rule.capacity, state.place[pair])
    left = state.open[FAMILY, family_of(state.models, i, j)] + weight
    return log(float(max(left, 1))) - _share(rule, pair, state) if weight > 0 else inf


@compiled
def _decide(rule: Rule, state: State, out: Rows, when: int, pair: int, family: int, step: Step) -> bool:
    """Decide a pair on its own where its evidence suffices; return whether it has risen for the family."""
    if step.side == 0 or step.evidence < rule.limit - TOLERANCE:
        return False
    if state.alone[pair] == 0:
        state.alone[pair] = step.side
        _add(state, out, when, pair, ANYTIME, DECIDED, step, rule.limit)
    return _raise(rule, state, FAMILY, pair, family, step.evidence, step.side)


# --- a look at a pair ---------------------------------------------------------------------------------------------------------------------


@compiled
def _limit(rule: Rule, state: State, pair: int, family: int) -> float:
    """Return the evidence from which on something may close: on its own, or near its threshold in the family, or above its peak."""
    if state.alone[pair] == 0:
        limit = rule.limit
    elif state.family[pair] != 0:
        return inf
    else:
        limit = float(_near(rule, state, pair, family))
        if limit < inf and state.peak[pair] == 0:
            limit = rule.limit
    if rule.policy != COMPLETION and state.family[pair] == 0 and state.peak[pair] != 0:
        limit = min(limit, abs(state.peak[pair]))
    return limit - TOLERANCE


@compiled
def lead(rule: Rule, state: State, pair: int) -> int:
    """Return by how much the first model of a pair leads, in units of the rule."""
    return lead_of(rule, state, pair) if rule.graded else np.int64(state.b[pair] - state.c[pair])


@compiled
def _steady(rule: Rule, state: State, pair: int, leading: int) -> int:
    """Return how many further items certainly reverse no decision of a pair, given its lead; negative if one is reversed."""
    alone, family = np.int64(state.alone[pair]), np.int64(state.family[pair])
    one = alone * leading // rule.unit if abs(alone) == 1 else FAR
    return min(one, family * leading // rule.unit if abs(family) == 1 else FAR)


@compiled
def present(rule: Rule, state: State, pair: int, missing: int) -> Step:
    """Return where a pair is by the order of arrival; missing: under completion, else -1."""
    n, b, c = state.n[pair], state.b[pair], state.c[pair]
    if rule.graded:
        set_missing(state, pair, missing)
        now, side = log_e_of_bets(state.bets, pair, missing, 0)
        leading = lead_of(rule, state, pair)
        return _step(n, leading, 0, max(missing, 0), now, side if missing >= 0 else _sign(leading))
    if missing > 0 and rule.known:
        i, j = members(pair)
        missing = _slack(rule, state, i, j) + b - c if b >= c else _slack(rule, state, j, i) + c - b
    return _step(n, b, c, max(missing, 0), ahead(rule, b, c, missing, rule.items - n), _sign(b - c))


@compiled
def _slack(rule: Rule, state: State, i: int, j: int) -> int:
    """Return how far the first of two models is from leading on all items, if everything open went against it: 0 is level.

    It then has right what it has right now, and the other all but what that has wrong now.
    """
    return rule.items - state.tally[1, i] - state.tally[0, j]


@compiled
def _sign(number: int) -> int:
    """Return 1, -1 or 0."""
    return 1 if number > 0 else -1 if number < 0 else 0


@compiled
def _missing(rule: Rule, state: State, pair: int) -> int:
    """Return what is missing of a pair under completion, else -1."""
    if rule.policy != COMPLETION:
        return -1
    return 0 if state.count[IGNORES] != 0 and _judged(state, pair) else rule.items - state.n[pair]


@compiled
def _judged(state: State, pair: int) -> bool:
    """Return whether a pair is judged at once: at the end of runs, or under a new declaration."""
    i, j = members(pair)
    return state.models[2, i] != 0 and state.models[2, j] != 0


@compiled
def _by_arrival(rule: Rule, state: State, out: Rows, when: int, pair: int, family: int) -> int:
    """Look at the evidence in the order of arrival; return how many further items certainly change nothing, negative if the next may."""
    missing = _missing(rule, state, pair)
    leading, rest = lead(rule, state, pair), FAR
    steady = _steady(rule, state, pair, leading) if missing < 0 else FAR
    if state.alone[pair] != 0 and state.family[pair] != 0 and steady >= 0:
        return steady
    step = present(rule, state, pair, missing)
    if steady < 0:
        _reverse(rule, state, out, when, pair, step)
    if _decide(rule, state, out, when, pair, family, step):
        _offer(rule, state, FAMILY, pair, family, step.evidence)
    limit = _limit(rule, state, pair, family)
    if limit < inf and step.evidence >= limit:
        rest = 0
    elif limit < inf and rule.graded:
        rest = quiet_items(state, pair, missing, step.evidence, limit)
    elif limit < inf and rule.known:
        i, j = members(pair)
        b, c = np.int64(state.b[pair]), np.int64(state.c[pair])
        rest = quiet_scores(rule, b, _slack(rule, state, i, j) + b, limit)
        rest = min(rest, quiet_scores(rule, c, _slack(rule, state, j, i) + c, limit))
    elif limit < inf:
        rest = quiet(rule, state.b[pair], state.c[pair], missing, limit)
    return max(-1, min(rest, _steady(rule, state, pair, leading) if missing < 0 else FAR))


@compiled
def _open(rule: Rule, state: State, pair: int) -> int:
    """Return a number of further items after which it is certainly not known who leads on all of them; negative where it is known."""
    if rule.graded:
        return open_items(rule, state, pair)
    n, leading = state.n[pair], abs(state.b[pair] - state.c[pair])
    if rule.known:
        i, j = members(pair)
        room = min(_slack(rule, state, i, j), _slack(rule, state, j, i))  # a score of either takes away 1 at most
        return -1 if room < 0 or (n == rule.items and leading == 0) else max(0, room - 1)
    room = rule.items - n - leading
    # A shared item brings certainty nearer by at most 2.
    return -1 if room < 0 or (n == rule.items and leading == 0) else max(0, room - 1) >> 1


@compiled
def _look(rule: Rule, state: State, out: Rows, when: int, pair: int, i: int, j: int, shared: bool) -> None:
    """Look at a pair after a score: its place in the family, its evidence by arrival, and whether it is certain; set the alarm."""
    rest, family, meets = FAR, family_of(state.models, i, j), shared and state.n[pair] == 1
    state.count[MET] += meets
    if state.closed[pair]:
        state.calm[pair] = FAR
        return
    if meets and (state.joins.size == 0 or state.joins[pair]):
        state.registered[family] += 1
        state.place[pair] = state.registered[family]
        state.joined[state.count[JOINED]] = pair
        state.count[JOINED] += 1
    if rule.policy != COMMITTED and rule.decides:
        rest = _by_arrival(rule, state, out, when, pair, family)
    if rule.items > 0 and state.settled[pair] == 0 and rule.decides:
        rest = min(rest, _certain(rule, state, pair, family))
    state.calm[pair] = rest + 1


@compiled
def _certain(rule: Rule, state: State, pair: int, family: int) -> int:
    """Offer a pair for which it is known who leads on all items; return a number of further items that leave it unknown."""
    rest = _open(rule, state, pair)
    if rest >= 0:
        return rest
    if _raise(rule, state, SETTLED, pair, family, inf, 1):
        _offer(rule, state, SETTLED, pair, family, inf)
    return FAR


# --- a committed order --------------------------------------------------------------------------------------------------------------------


@compiled
def _stride(sums: Array, x: int, y: int) -> None:
    """Add an item of the prefix to the sums of a pair."""
    sums[0] += x >= ZERO and y >= ZERO
    sums[1] += x == ONE and y == ZERO
    sums[2] += x == ZERO and y == ONE
    sums[3] += x in (ZERO, SKIPPED) and y in (ONE, SKIPPED)
    sums[4] += x in (ONE, SKIPPED) and y in (ZERO, SKIPPED)


@compiled
def _bet(capital: Array, d: int, lead: int, left: int) -> float:
    """Bet for one model on the next of so many items of the order, given the sum of its differences before it; return its half of e.

    If the sum of all is 0, the mean of those left is -lead / left (`stats.evidence.settled`).
    """
    mean = min(1.0, max(-1.0, lead * (1.0 / left)))
    surprise, cap, total, due = d + mean, 1 / max(1 - mean, 0.5), 0.0, (left - 1) & 63 == 0
    for k in range(7):
        now = capital[k]
        if now != LARGE:
            now *= max(1 + min(BETS[k], cap) * surprise, 0.0)
            if due:
                now = LARGE if now > LARGE else 0.0 if now < SMALL else now
            capital[k] = now
        total += now
    return total * (0.5 / 7)


@compiled
def _walk(
    rule: Rule,
    state: State,
    out: Rows,
    when: int,
    pair: int,
    i: int,
    j: int,
    k: int,
    low: int,
    high: int,
    looks: bool,
    bets: bool,
) -> None:
    """Take a pair along the places [low, high) of the order, which both models now have.

    Of the pair with partner k the event keeps: the sums before it, where the walk began, and the largest e of the bets, for whom it is, and
    n, b and c there.
    """
    prefix, family = state.prefix, family_of(state.models, i, j)
    sums, x, y, capital, step = (
        prefix.sums[pair],
        prefix.column[i],
        prefix.column[j],
        prefix.capital[pair],
        prefix.step[k],
    )
    step[5], step[6] = low, -1.0
    for at in range(5):
        step[at] = sums[at]
    looks, risen = looks and not state.closed[pair], False
    bets = bets and not state.closed[pair] and state.settled[pair] == 0 and abs(state.bound[pair]) < inf
    for at in range(low, high):
        lows, highs, left = sums[1] - sums[3], sums[4] - sums[2], x.size - at
        _stride(sums, x[at], y[at])
        if bets:
            d, up = sums[1] - sums[3], sums[4] - sums[2]
            first, second = _bet(capital[0], d - lows, lows, left), _bet(capital[1], highs - up, -highs, left)
            if d >= left or -up >= left:  # certain, even if all skips go the other way
                first, second = (inf, 0.0) if d >= left else (0.0, inf)
            if first + second > step[6]:
                step[6], step[7] = first + second, 1 if first >= second else -1
                step[8], step[9], step[10] = sums[0], sums[1], sums[2]
        if looks and at + 1 >= sums[5]:
            n, b, c = sums[0], sums[1], sums[2]
            evidence, side = along(rule, b, c, sums[3], sums[4], left - 1)
            now = _step(n, b, c, at + 1 - n, evidence, side)
            _reverse(rule, state, out, when, pair, now)
            risen |= _decide(rule, state, out, when, pair, family, now)
            sums[5] = at + 1 + _rest(rule, state, pair, family, left - 1)
    if risen:  # once an event, however many steps it takes: so many entries have room
        _offer(rule, state, FAMILY, pair, family, abs(state.peak[pair]))
    if bets and step[6] > 1 and _raise(rule, state, SETTLED, pair, family, log(step[6]), int(step[7])):
        _offer(rule, state, SETTLED, pair, family, log(step[6]))


@compiled
def _rest(rule: Rule, state: State, pair: int, family: int, left: int) -> int:
    """Return how many places on a pair must be looked at again. Skips only lower evidence, so b and c alone give a bound."""
    b, c = state.prefix.sums[pair, 1], state.prefix.sums[pair, 2]
    limit, rest = _limit(rule, state, pair, family), FAR
    if limit < inf:
        bets, at_end = limit - rule.early, limit - rule.late
        rest = quiet(rule, b, c, -1, bets) if log_e(rule, b, c) <= bets else 0
        if at_end < inf and rest > 0:
            rest = min(rest, quiet(rule, b, c, left, at_end) if log_exact(rule, b, c, left) <= at_end else 0)
    return max(0, min(rest, _steady(rule, state, pair, b - c))) + 1


@compiled
def _grown(state: State, i: int, j: int, model: int, item: int) -> int:
    """Return the partner of the event's model if the prefix of a pair has grown at this event, at place `item`; else -1."""
    prefix, k = state.prefix, i if model == j else j
    there = model in (i, j)
    return (
        k if there and prefix.reached[model] > item and prefix.reached[k] > item and prefix.step[k, 5] == item else -1
    )


@compiled
def _again(
    rule: Rule, state: State, pair: int, model: int, item: int, threshold: float, after: int, side: int
) -> tuple[Step, bool]:
    """Walk a pair again along what its prefix gained at the event.

    Return its first step, if any, beyond a place at which the evidence meets a threshold, or with a `side` the lead is against that; else
    its state, with its largest evidence so far and for whom that is. And whether there was such a step.
    """
    i, j = members(pair)
    prefix, peak = state.prefix, state.peak[pair]
    k, end, sums = _grown(state, i, j, model, item), min(prefix.reached[i], prefix.reached[j]), prefix.along
    if k >= 0:
        for at in range(5):
            sums[at] = int(prefix.step[k, at])
        for at in range(item, end):
            _stride(sums, prefix.column[i, at], prefix.column[j, at])
            if at + 1 > after and side * (sums[1] - sums[2]) <= min(0, -abs(side)):
                left = prefix.column.shape[1] - at - 1
                evidence, towards = along(rule, sums[1], sums[2], sums[3], sums[4], left)
                if evidence >= threshold - TOLERANCE:
                    return _step(sums[0], sums[1], sums[2], at + 1 - sums[0], evidence, towards), True
    n, b, c = prefix.sums[pair, 0], prefix.sums[pair, 1], prefix.sums[pair, 2]
    return _step(n, b, c, end - n, abs(peak), 1 if peak > 0 else -1), False


@compiled
def _advance(rule: Rule, state: State, out: Rows, when: int, model: int, item: int, decides: bool) -> None:
    """Move the prefix of a model past a new cell, and take along the pairs whose prefixes grow."""
    prefix = state.prefix
    column, new = prefix.column[model], prefix.reached[model]
    if item != new:
        return
    while new < column.size and column[new] != ABSENT:
        new += 1
    prefix.reached[model] = new
    for k in range(state.models.shape[1]):
        high = min(new, prefix.reached[k])
        if k != model and high > item:
            i, j = min(k, model), max(k, model)
            _walk(rule, state, out, when, j * (j - 1) // 2 + i, i, j, k, item, high, decides, decides)


# --- step-down ----------------------------------------------------------------------------------------------------------------------------


@compiled
def _meets(rule: Rule, state: State, pair: int, model: int, item: int) -> bool:
    """Return whether a pair takes a step at the event."""
    if model == UNIT_OF:
        return pair == item
    if model == NOBODY:
        return _judged(state, pair)
    i, j = members(pair)
    if rule.graded:
        return model in (i, j) and state.values[item, i] >= 0 and state.values[item, j] >= 0
    return model in (i, j) and state.cells[item, i] >= ZERO and state.cells[item, j] >= ZERO


@compiled
def _decided_at(rule: Rule, state: State, pair: int, model: int, item: int, threshold: float) -> Step:
    """Return the pair's own step at the event if that meets the threshold; or else its state, with its largest evidence so far."""
    missing, peak = _missing(rule, state, pair), state.peak[pair]
    if missing >= 0 or _meets(rule, state, pair, model, item):
        now = present(rule, state, pair, missing)
        if now.evidence >= min(threshold - TOLERANCE, abs(peak)) and now.side != 0:
            return now
    # Under completion evidence never falls: a larger one is of runs that ended with nothing missing.
    leading = lead(rule, state, pair)
    b, c = (leading, np.int64(0)) if rule.graded else (np.int64(state.b[pair]), np.int64(state.c[pair]))
    return _step(state.n[pair], b, c, 0, abs(peak), 1 if peak > 0 else -1)


@compiled
def _settled_at(rule: Rule, state: State, pair: int, model: int, item: int, threshold: float) -> Step:
    """Return the step by which a pair is certain; or the largest bet of the event if it meets the threshold; or else the largest so far."""
    i, j = members(pair)
    n, b, c = state.n[pair], state.b[pair], state.c[pair]
    if _open(rule, state, pair) < 0:
        leading = lead(rule, state, pair)
        side = _sign(leading) if leading != 0 else TIE
        if rule.graded:
            return _step(n, leading, 0, rule.items - n, inf, side)
        return _step(n, b, c, rule.items - n, inf, side)
    prefix = state.prefix
    k = _grown(state, i, j, model, item)
    if k >= 0:
        step = prefix.step[k]
        if (step[6] > 0 and log(step[6]) >= threshold - TOLERANCE) or step[6] == inf:
            return _step(step[8], step[9], step[10], rule.items - int(step[8]), log(step[6]), step[7])
    n, b, c = prefix.sums[pair, 0], prefix.sums[pair, 1], prefix.sums[pair, 2]
    peak = state.bound[pair]
    return _step(n, b, c, rule.items - n, abs(peak), 1 if peak > 0 else -1)


@compiled
def _close(rule: Rule, state: State, out: Rows, when: int, pair: int, claim: int, model: int, item: int) -> int:
    """Close the latch of a pair that has met its need, at the event; return its weight."""
    weight = weight_at(rule.capacity, state.place[pair])
    i, j = members(pair)
    threshold = state.need[claim, family_of(state.models, i, j)] - _share(rule, pair, state) if weight > 0 else inf
    if claim == SETTLED:
        step = _settled_at(rule, state, pair, model, item, threshold)
        state.settled[pair] = step.side
        _add(state, out, when, pair, SETTLED, CLOSED, step, threshold)
        return weight
    follows = rule.policy == COMMITTED and not _judged(state, pair)
    if follows:
        step, _ = _again(rule, state, pair, model, item, threshold, 0, 0)
    else:
        step = _decided_at(rule, state, pair, model, item, threshold)
    state.family[pair] = step.side
    _add(state, out, when, pair, FAMILY, DECIDED, step, threshold)
    if follows:  # the event may have taken it further, and against the decision
        later, turned = _again(rule, state, pair, model, item, -inf, step.n + step.missing, step.side)
        if turned:
            _reverse(rule, state, out, when, pair, later)
    _alert(state, pair)
    return weight


@compiled
def _step_down(rule: Rule, state: State, out: Rows, when: int, claim: int, model: int, item: int) -> bool:
    """Close the latches of a claim after an event, round by round: each lowers the thresholds of the others.

    Return False if that needs more room: then call it again.
    """
    count = state.count
    for family in range(state.need.shape[1]):
        while True:
            if state.need[claim, family] - TOLERANCE < state.floor[claim, family] and not _lower(
                rule, state, claim, family
            ):
                return False
            while state.root[claim, family] > 0:
                if state.score[state.root[claim, family]] < state.need[claim, family] - TOLERANCE:
                    break
                if count[OUT] + 3 > out[0].shape[0]:
                    return False
                pair = _pop(state, claim, family)
                if _side(state, claim, pair) == 0 and not state.closed[pair]:
                    count[PENDING] += _close(rule, state, out, when, pair, claim, model, item)
            if count[PENDING] == 0:
                break
            state.open[claim, family] -= count[PENDING]
            count[PENDING] = 0
            state.need[claim, family] = log(float(max(state.open[claim, family], 1)))
    return True


# --- an event -----------------------------------------------------------------------------------------------------------------------------


@compiled
def _meet(row: Array, n: Array, gained: Array, calm: Array, other: int, every: bool, known: bool) -> bool:
    """Add a score to the pairs of its model with earlier ones; return whether one of them must be looked at.

    `every`: whether items on which both are alike bring anything nearer; `known`: whether items of one model do, once they share one.
    """
    due, one = np.int32(0), np.int32(known)
    for k in range(row.size):
        there, differs = np.int32(row[k] >= ZERO), np.int32(row[k] == other)
        n[k] += there
        gained[k] += differs
        nearer = there | (one & np.int32(n[k] > 0))
        calm[k] -= nearer if every else differs
        due |= (calm[k] - np.int32(1)) & -nearer
    return due < 0


@compiled
def _meet_later(row: Array, n: Array, gained: Array, calm: Array, m: int, other: int, every: bool, known: bool) -> bool:
    """Add a score to the pairs of its model with later ones, as `_meet` does; their sums are not next to each other."""
    due = False
    for k in range(m + 1, row.size):
        if row[k] >= ZERO or known:
            pair = k * (k - 1) // 2 + m
            n[pair] += row[k] >= ZERO
            gained[pair] += row[k] == other
            calm[pair] -= (every or row[k] == other) and n[pair] > 0
            due |= calm[pair] <= 0 and n[pair] > 0
    return due


if mode() == "interpreted":  # numpy goes through some 30 models faster than Python

    def _meet(row: Array, n: Array, gained: Array, calm: Array, other: int, every: bool, known: bool) -> bool:
        """Do the same."""
        there, differs = row >= ZERO, row == other
        n += there
        gained += differs
        nearer = there | (known & (n > 0))
        calm -= nearer if every else differs
        return bool((nearer & (calm <= 0)).any())

    def _meet_later(
        row: Array, n: Array, gained: Array, calm: Array, m: int, other: int, every: bool, known: bool
    ) -> bool:
        """Do the same."""
        k = m + 1 + np.flatnonzero((row[m + 1 :] >= ZERO) | known)
        pair, differs = k * (k - 1) // 2 + m, row[k] == other
        n[pair] += row[k] >= ZERO
        gained[pair] += differs
        calm[pair] -= (every | differs) & (n[pair] > 0)
        return bool(((calm[pair] <= 0) & (n[pair] > 0)).any())


@compiled
def _enter(rule: Rule, state: State, out: Rows, when: int, m: int, x: int, s: int) -> None:
    """Give a model a score: meet every model that has the item, and look at the pairs whose alarm is due."""
    row, known = state.cells[x], rule.known
    n, b, c, calm = state.n, state.b, state.c, state.calm
    low, high, other, every = m * (m - 1) // 2, m * (m + 1) // 2, ZERO if s == ONE else ONE, rule.items > 0
    due = _meet(row[:m], n[low:high], (c if s == ONE else b)[low:high], calm[low:high], other, every, known)
    models = state.models.shape[1]
    due |= _meet_later(row[:models], n, b if s == ONE else c, calm, m, other, every, known)
    row[m] = s
    if known:
        state.tally[s - ZERO, m] += 1
    if due:
        for k in range(models):
            i, j = min(k, m), max(k, m)
            pair, shared = j * (j - 1) // 2 + i, row[k] >= ZERO
            if k != m and calm[pair] <= 0 and (shared or (known and n[pair] > 0)):
                _look(rule, state, out, when, pair, i, j, shared)


@compiled
def _has_room(state: State, out: Rows) -> bool:
    """Return whether there is room for what one event may bring, and write down how much the heaps need."""
    count, models = state.count, state.models.shape[1]
    room = min(out[0].shape[0] - count[OUT] - 4 * models, state.joined.size - count[JOINED] - models)
    if room < 0 or state.score.size - count[LIVE] <= 2 * models:
        count[WANTED] = count[LIVE] + 2 * models + 1
        return False
    count[FIRST] = count[OUT]
    return True


@compiled
def _finish(rule: Rule, state: State, out: Rows, when: int, model: int, item: int) -> bool:
    """Close the latches that an event brings to their thresholds; return False if that needs more room: then call it again."""
    count = state.count
    while count[READY] != 0 and count[STAGE] <= SETTLED:
        if not _step_down(rule, state, out, when, count[STAGE], model, item):
            return False
        count[STAGE] += 1
    count[STAGE] = count[READY] = 0
    for k in range(count[FIRST], count[OUT]):
        if out[1][k, 1] != out[1][k, 1]:  # not a number yet
            out[1][k, 1] = _met(rule, state, out[0][k, 1])
    return True


@compiled
def _enter_code(rule: Rule, state: State, out: Rows, when: int, m: int, x: int, s: int) -> None:
    """Give a model a score of 0 or 1, or a skip; along a committed order, take the pairs with it as far as they get."""
    if s == SKIPPED:
        state.cells[x, m] = s
    else:
        _enter(rule, state, out, when, m, x, s)
    if rule.policy == COMMITTED:
        place = state.prefix.place[x]
        state.prefix.column[m, place] = s
        _advance(rule, state, out, when, m, place, True)


@compiled
def _enter_value(rule: Rule, state: State, out: Rows, when: int, m: int, x: int, value: int) -> None:
    """Give a model a graded score: bet on its difference to that of every model that has the item."""
    row, bets = state.values[x], state.bets
    row[m] = value
    for k in range(row.size if value >= 0 else 0):
        if k == m or row[k] < 0:
            continue
        i, j = min(k, m), max(k, m)
        pair = j * (j - 1) // 2 + i
        state.n[pair] += 1
        state.b[pair] += row[i] == SCORE_UNIT and row[j] == 0
        state.c[pair] += row[i] == 0 and row[j] == SCORE_UNIT
        difference = weighed(bets, x, row[i] - row[j])
        bet(state, pair, difference)
        if bets.size.size > 0:
            bets.shared[pair, bets.cluster[x]] += 1
        state.calm[pair] -= rule.items > 0 or difference != 0
        if state.calm[pair] <= 0:
            _look(rule, state, out, when, pair, i, j, True)


@compiled
def _enter_unit(rule: Rule, state: State, out: Rows, when: int, pair: int, difference: int) -> None:
    """Let a pair bet on a unit of battles."""
    state.n[pair] += 1
    state.b[pair] += difference > 0
    state.c[pair] += difference < 0
    if rule.graded:
        bet(state, pair, difference)
    state.calm[pair] -= difference != 0
    if state.calm[pair] <= 0:
        i, j = members(pair)
        _look(rule, state, out, when, pair, i, j, True)


@entry
def fold(rule: Rule, state: State, item: Array, model: Array, value: Array, when: Array, until: int, out: Rows) -> None:
    """Fold what comes in the order of the log, up to an event; stop where more room is needed, and go on when called again.

    The value is a code of 0/1 scores, a graded score in units (negative for a skip), or the difference of a unit of battles: that has
    `UNIT_OF` as its model and the pair as its item. `when` is the number of each in its batch.
    """
    count = state.count
    while count[AT] < until:
        t = count[AT]
        x, m, s = item[t], model[t], value[t]
        if count[STAGE] == 0:
            if not _has_room(state, out):
                return
            if m == UNIT_OF:
                _enter_unit(rule, state, out, when[t], x, s)
            elif rule.graded:
                _enter_value(rule, state, out, when[t], m, x, s)
            else:
                _enter_code(rule, state, out, when[t], m, x, s)
            count[STAGE] = 1
        if not _finish(rule, state, out, when[t], m, state.prefix.place[x] if rule.policy == COMMITTED else x):
            return
        count[AT] = t + 1


# --- apart from events --------------------------------------------------------------------------------------------------------------------


@entry
def judge(rule: Rule, state: State, out: Rows) -> bool:
    """Judge the pairs of marked models as they are now; return False if that needs more room: then call it again."""
    count = state.count
    while count[AT] < _pairs(state):
        if not _has_room(state, out):
            return False
        pair = count[AT]
        i, j = members(pair)
        if state.n[pair] > 0 and _judged(state, pair) and not state.closed[pair]:
            family = family_of(state.models, i, j)
            step = present(rule, state, pair, _missing(rule, state, pair))
            _reverse(rule, state, out, 0, pair, step)
            if _decide(rule, state, out, 0, pair, family, step):
                _offer(rule, state, FAMILY, pair, family, step.evidence)
            if rule.items > 0 and state.settled[pair] == 0:
                _certain(rule, state, pair, family)
        count[AT] = pair + 1
    count[STAGE] = max(count[STAGE], 1)
    count[FIRST] = 0
    return _finish(rule, state, out, 0, NOBODY, -1)


@entry
def fill(rule: Rule, state: State) -> bool:
    """Compute what is open of each family, and put the pairs near their needs into empty heaps; return False if these need more room."""
    count = state.count
    count[LIVE] = count[USED] = count[FREE] = count[PENDING] = 0
    for family in range(state.need.shape[1]):
        for claim in (FAMILY, SETTLED):
            state.root[claim, family], state.open[claim, family] = 0, WHOLE
    waits = False
    for pair in range(_pairs(state)):
        waits = waits or _has_evidence(state, pair)
        if state.family[pair] != 0 or state.settled[pair] != 0:
            i, j = members(pair)
            family = family_of(state.models, i, j)
            weight = weight_at(rule.capacity, state.place[pair])
            state.open[FAMILY, family] -= weight if state.family[pair] != 0 else 0
            state.open[SETTLED, family] -= weight if state.settled[pair] != 0 else 0
    for family in range(state.need.shape[1]):
        for claim in (FAMILY, SETTLED):
            state.need[claim, family] = log(float(max(state.open[claim, family], 1)))
            state.floor[claim, family] = inf if waits else state.need[claim, family] - MARGIN
            if waits and not _lower(rule, state, claim, family):
                return False
    count[READY] = 0
    return True


@entry
def refresh(rule: Rule, state: State, touched: Array) -> None:
    """Compute the peaks of the waiting pairs of some models under completion."""
    for j in range(touched.size):
        for i in range(j):
            pair = j * (j - 1) // 2 + i
            waits = state.peak[pair] != 0 and state.family[pair] == 0 and not state.closed[pair]
            if waits and (touched[i] or touched[j]):
                _refresh(rule, state, pair)


@entry
def advance(rule: Rule, state: State, model: Array, place: Array, code: Array, out: Rows) -> None:
    """Move the prefixes of a committed order past new cells, where nothing decides."""
    for t in range(model.size):
        state.prefix.column[model[t], place[t]] = code[t]
        _advance(rule, state, out, t, model[t], place[t], False)


@entry
def rebuild(rule: Rule, state: State, out: Rows, bets: bool) -> None:
    """Walk all prefixes again from their columns, and bet again on what is not settled."""
    prefix = state.prefix
    for j in range(state.models.shape[1]):
        column, new = prefix.column[j], 0
        while new < column.size and column[new] != ABSENT:
            new += 1
        prefix.reached[j] = new
        for i in range(j):
            _walk(rule, state, out, 0, j * (j - 1) // 2 + i, i, j, i, 0, min(new, prefix.reached[i]), False, bets)
