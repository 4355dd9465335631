"""Evidence of 0/1 scores: formulas of b and c, and how many further items certainly leave it below a limit."""

# mypy: disable-error-code="no-any-return,arg-type,return-value"
# Elements of arrays are of any type here; Numba checks them all.

from math import exp, inf, log, log1p

from monitor.engine.loop.compiled import compiled, entry
from monitor.engine.loop.layout import FAR, LN2, TAU, Array, Rule


@entry
def log_e(rule: Rule, b: int, c: int) -> float:
    """Return ln of the e-value of a mixture (`stats.evidence.eprocess`).

    Beta: ln (a)_b + ln (b)_c - ln (a + b)_(b+c) + (b + c) ln 2, by rising factorials; else the mean over the atoms.
    """
    if rule.atoms.shape[1] == 0:
        return rule.table[0, b] + rule.table[1, c] - rule.table[2, b + c]
    return _mean_over(rule.atoms, b, c, 0)


@compiled
def _mean_over(atoms: Array, b: int, c: int, side: int) -> float:
    """Return ln of the mean of e over the atoms; with a side, of those above (1) or below (-1) 1/2, and 0 for the others."""
    most = -inf
    for k in range(atoms.shape[1]):
        if side * atoms[0, k] >= 0:
            most = max(most, b * atoms[0, k] + c * atoms[1, k])
    total = 0.0
    for k in range(atoms.shape[1]):
        if side * atoms[0, k] >= 0:
            total += exp(b * atoms[0, k] + c * atoms[1, k] - most)
    return most + log(total) - log(float(atoms.shape[1]))


@entry
def log_exact(rule: Rule, b: int, c: int, missing: int) -> float:
    """Return -ln of the exact two-sided p at N with every missing item against the leader (`stats.evidence.curtailed`).

    P(X >= lead), X ~ Binomial(lead + trail, 1/2), by its largest term and a sum of falling ones.
    """
    lead, trail = max(b, c), min(b, c) + missing
    if lead <= trail:
        return 0.0
    term = total = 1.0
    for k in range(trail):
        term *= (trail - k) / (lead + 1.0 + k)
        total += term
        if term < total * 1e-17:
            break
    return max(0.0, -LN2 - _log_binomial(rule, lead, trail) - log(total))


@compiled
def _log_binomial(rule: Rule, lead: int, trail: int) -> float:
    """Return ln P(X = lead) by its saddle point (Loader 2000): logarithms of large factorials would lose digits."""
    if trail == 0:
        return -lead * LN2
    n = lead + trail
    t, rest = (lead - trail) / n, rule.table[3]
    far = 0.5 * n * ((1 + t) * log1p(t) + (1 - t) * log1p(-t))
    return rest[n] - rest[lead] - rest[trail] - far + 0.5 * log(n / (TAU * lead * trail))


@compiled
def _log_lower(x: float, y: float) -> float:
    """Return ln of 2^(x + y) times the integral of t^(x-1) (1-t)^(y-1) over (0, 1/2), for x >= y: 1/x sum_k (x + y)_k / (x + 1)_k 2^-k."""
    term = total = 1.0
    k = 0.0
    while term > total * 1e-17:
        term *= 0.5 * (x + y + k) / (x + 1.0 + k)
        total += term
        k += 1.0
    return log(total) - log(x)


@entry
def log_half(rule: Rule, b: int, c: int, side: int) -> float:
    """Return ln of the part of the e-value for one model: theta above 1/2 (1), or below (-1)."""
    if rule.atoms.shape[1] > 0:
        return _mean_over(rule.atoms, b, c, side)
    x, y = (b + rule.a, c + rule.b) if side > 0 else (c + rule.b, b + rule.a)
    if x < y:
        return _log_lower(y, x) - rule.norm
    return log_e(rule, b, c) + log1p(-exp(min(0.0, _log_lower(x, y) - rule.norm - log_e(rule, b, c))))


@compiled
def along(rule: Rule, b: int, c: int, c_worst: int, b_best: int, left: int) -> tuple[float, int]:
    """Return the evidence along a committed order with so many items left, and for whom it is: of the bets, or of the look at the end.

    Each has its share of alpha (`Rule`). For the look, skipped and left items count against the leader.
    """
    evidence, side = _bets(rule, b, c, c_worst, b_best)
    if rule.late == -inf:
        return evidence, side
    evidence += rule.early
    if b > c_worst + left:
        at_end, towards = log_exact(rule, b, c_worst + left, 0) + rule.late, 1
    elif c > b_best + left:
        at_end, towards = log_exact(rule, b_best + left, c, 0) + rule.late, -1
    else:  # the lead may still be lost
        return evidence, side
    return (at_end, towards) if at_end > evidence else (evidence, side)


@compiled
def _bets(rule: Rule, b: int, c: int, c_worst: int, b_best: int) -> tuple[float, int]:
    """Return the evidence of the bets along a committed order, and for whom it is; a skipped item counts at worst for either model."""
    if c_worst == c and b_best == b and rule.symmetric:
        return log_e(rule, b, c), 1 if b >= c else -1
    first, second = log_half(rule, b, c_worst, 1), log_half(rule, b_best, c, -1)
    side = 1 if first >= second else -1
    if c_worst == c and b_best == b:
        return log_e(rule, b, c), side
    return max(first, second) + log1p(exp(-abs(first - second))), side


@compiled
def ahead(rule: Rule, b: int, c: int, missing: int, left: int) -> float:
    """Return evidence under the policy; missing: under completion, else -1; left: what a pair lacks of all items."""
    if missing >= 0:
        return log_exact(rule, b, c, missing)
    evidence = log_e(rule, b, c)
    if rule.late == -inf:
        return evidence
    return max(evidence + rule.early, log_exact(rule, b, c, left) + rule.late)


@compiled
def quiet_scores(rule: Rule, lead: int, trail: int, limit: float) -> int:
    """Return a number of further scores that certainly leave the evidence for one model below a limit, by the worst counts for it.

    A score is one more win, or one item less that it can lose: that is the nearer, until nothing can be lost.
    """
    k = 1
    while True:
        won, lost = lead + max(k - trail, 0), max(trail - k, 0)
        if won > lost and log_exact(rule, won, lost, 0) >= limit:
            return k >> 1
        k *= 2


@compiled
def quiet(rule: Rule, b: int, c: int, missing: int, limit: float) -> int:
    """Return a number of further items that certainly leave the evidence below a limit, at least half of the largest such number."""
    lead, trail, k = max(b, c), min(b, c), 1
    most = missing if missing >= 0 else rule.table.shape[1] - 1 - b - c
    while most > 0:
        wins = min(k, most)
        if missing >= 0 and lead + wins > trail + most - wins and lead + trail + most >= rule.table.shape[1]:
            return k >> 1  # the table follows the items that came, and not those that are declared
        if missing >= 0:
            reaches = log_exact(rule, lead + wins, trail, most - wins) >= limit
        elif rule.symmetric:
            reaches = log_e(rule, lead + wins, trail) >= limit
        else:
            reaches = max(log_e(rule, b + wins, c), log_e(rule, b, c + wins)) >= limit
        if reaches:
            return k >> 1
        if k >= most:
            return FAR if missing >= 0 else most
        k *= 2
    return FAR if missing >= 0 else 0
