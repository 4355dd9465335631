"""Evaluation: the statistics of all pairs of a leaderboard from their counts, by procedure, in processor time on one core.

A peer is a function of another library that does the same for one pair: it is called on a sample of pairs and its time multiplied up.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

import stats
from benchmarks.harness import Options, Table, median_seconds, timed

ITEMS = 12_032
COLUMNS = {
    "moments", "required_n", "mde", "resolution_ratio", "chi2_p", "pair_evidence", "anytime_required_n",
    "expected_items_to_decision",
}  # fmt: skip


def counts(pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw counts of pairs from near ties to clear leads: standardised differences up to about 15."""
    rng = np.random.default_rng(0)
    discordant = rng.binomial(ITEMS, rng.beta(2, 8, pairs))
    b = rng.binomial(discordant, np.clip(0.5 + 0.06 * rng.standard_normal(pairs), 0.01, 0.99))
    return np.full(pairs, ITEMS), b, discordant - b


def peers() -> dict[str, tuple[str, Callable[[int, int], object]]]:
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar

    return {
        "chi2_p": ("statsmodels mcnemar", lambda x, y: mcnemar([[0, x], [y, 0]], exact=False, correction=False)),
        "corrected_p": ("statsmodels mcnemar", lambda x, y: mcnemar([[0, x], [y, 0]], exact=False, correction=True)),
        "exact_p": ("scipy binomtest", lambda x, y: binomtest(x, x + y)),
    }


def measure(options: Options) -> Iterator[Table]:
    """Time every function at several numbers of models."""
    sizes = (100, 300, 1_000, 2_000) if not options.quick else (30, 100)
    columns: dict[str, dict[int, float]] = {}
    totals = dict.fromkeys(sizes, 0.0)
    for models in sizes:
        n, b, c = counts(models * (models - 1) // 2)
        for name, call in calls_on(n, b, c).items():
            # A call over millions of pairs warms itself up.
            taken = timed(call, time.process_time) if models >= 1_000 else median_seconds(call, 3, time.process_time)
            columns.setdefault(name, {})[models] = taken
            totals[models] += taken if name in COLUMNS else 0
    loops = looped(sizes[-2], options.size(300, 20))
    table = Table(
        f"All pairs, {ITEMS:,} items, milliseconds of processor time",
        ["what", *(f"K = {models:,}" for models in sizes), f"a loop over pairs at K = {sizes[-2]:,}", "times as long"],
    )
    for name, by_size in columns.items():
        label, whole = loops.get(name, (None, None))
        beside = (f"{label}: {whole:.0f} s", round(whole / by_size[sizes[-2]])) if whole else (None, None)
        table.rows.append((name, *(round(1000 * by_size[models], 1) for models in sizes), *beside))
    table.rows.append(
        ("all columns made of counts", *(round(1000 * totals[models], 1) for models in sizes), None, None)
    )
    yield table
    yield graded(options)
    yield clustered(options)


def calls_on(n: np.ndarray, b: np.ndarray, c: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return every function that is timed, over these counts."""
    _, sd = stats.moments(n, b, c)
    n_star = stats.required_n(n, b, c)
    p, log_e = stats.exact_p(b, c), stats.log_e_value(b, c)
    missing = np.full(b.size, 500)
    threshold, weights = np.full(b.size, np.log(20 * b.size)), stats.family_weights(np.arange(1, b.size + 1), b.size)
    start, differences = (
        stats.settled_start(b.size),
        np.sign(np.arange(4 * b.size, dtype=np.int8).reshape(-1, 4) % 7 - 3),
    )
    return {
        "moments": lambda: stats.moments(n, b, c),
        "required_n": lambda: stats.required_n(n, b, c),
        "resolution_ratio": lambda: stats.resolution_ratio(n, n_star),
        "mde": lambda: stats.mde(n, sd),
        "chi2_p": lambda: stats.chi2_p(b, c),
        "corrected_p": lambda: stats.corrected_p(b, c),
        "exact_p": lambda: stats.exact_p(b, c),
        "mid_p": lambda: stats.mid_p(b, c),
        "log_e_value": lambda: stats.log_e_value(b, c),
        "log_e_value, grid98": lambda: stats.log_e_value(b, c, "grid98"),
        "log_e_halves": lambda: stats.log_e_halves(b, c),
        "pair_evidence": lambda: stats.pair_evidence(b, c),
        "log_completion_bound": lambda: stats.log_completion_bound(b, c, missing),
        "curtailed_side, family-wise": lambda: stats.curtailed_side(b, c, missing, threshold),
        "curtailed_leader_log_p": lambda: stats.curtailed_leader_log_p(b, c, missing),
        "missing_tolerated": lambda: stats.missing_tolerated(b, c),
        "step_down": lambda: stats.step_down(log_e, weights),
        "settled_steps, 4 items": lambda: stats.settled_steps(start, differences, differences, ITEMS),
        "anytime_required_n": lambda: stats.anytime_required_n(n, b, c),
        "expected_items_to_decision": lambda: stats.expected_items_to_decision(n, b, c, np.log(20)),
        "items_to_decision": lambda: stats.items_to_decision(n, b, c, np.log(20)),
        "holm": lambda: stats.holm(p),
        "benjamini_hochberg": lambda: stats.benjamini_hochberg(p),
        "e_bh": lambda: stats.e_bh(log_e),
        "spending_alpha": lambda: stats.spending_alpha(np.arange(1, b.size + 1)),
    }


def looped(models: int, sample: int) -> dict[str, tuple[str, float]]:
    """Return the time of a loop of the peer over all pairs, from a sample of them."""
    _, b, c = counts(models * (models - 1) // 2)
    some = np.random.default_rng(1).integers(0, b.size, sample)
    return {
        name: (
            label,
            median_seconds(lambda one=one: [one(int(b[i]), int(c[i])) for i in some], 3, time.process_time)
            / sample
            * b.size,
        )
        for name, (label, one) in peers().items()
    }


def graded(options: Options) -> Table:
    """Time the functions that only displayed pairs or graded scores need."""
    n, b, c = counts(4_950)
    values, few = np.linspace(-1, 1, 21), np.random.default_rng(2).integers(0, 600, (4_950, 21))
    capital = stats.histogram_capital(values, few)
    some = np.random.default_rng(3).integers(0, b.size, (406, 1))
    calls: dict[str, Callable[[], object]] = {
        "graded grids from histograms, 4,950 pairs of 21 values": lambda: stats.histogram_capital(values, few),
        "graded e-values, 4,950 pairs": lambda: stats.graded_log_e_halves(capital),
        "gap_interval, 406 pairs at two levels": lambda: stats.gap_interval(n[some], b[some], c[some], [0.05, 1e-4]),
        "the same, grid98": lambda: stats.gap_interval(n[some], b[some], c[some], [0.05, 1e-4], "grid98"),
        "completion_interval, 406 pairs at two levels": lambda: stats.completion_interval(
            n[some], b[some], c[some], 0, [0.05, 1e-4]
        ),
    }
    rows = [
        (name, round(1000 * median_seconds(call, min(options.runs, 3), time.process_time), 1))
        for name, call in calls.items()
    ]
    return Table("Of displayed pairs and of graded scores", ["what", "ms"], rows)


def clustered(options: Options) -> Table:
    """Time the statistics of clustered items, from the sums of every pair by cluster."""
    table = Table(
        "Clustered items, milliseconds of processor time",
        ["pairs", "clusters", "clustered p", "its N*", "ICC", "design effect", "e-process of clusters"],
    )
    rng = np.random.default_rng(4)
    for models, clusters in ((29, 14), (100, 14), (100, 300), (1_000, 14)):
        pairs = options.size(models * (models - 1) // 2, 45)
        n = np.full((pairs, clusters), ITEMS // clusters)
        discordant = rng.binomial(n, 0.2)
        s1, s2 = 2.0 * rng.binomial(discordant, 0.52) - discordant, discordant.astype(float)
        calls: list[Callable[[], object]] = [
            lambda n=n, s1=s1: stats.clustered_p(n, s1),
            lambda n=n, s1=s1, s2=s2: stats.cluster_required_n(n, s1, s2),
            lambda n=n, s1=s1, s2=s2: stats.cluster_icc(n, s1, s2),
            lambda n=n, s1=s1, s2=s2: stats.robust_design_effect(n, s1, s2),
            lambda n=n, s1=s1: stats.cluster_e_process(n, s1),
        ]
        seconds = [median_seconds(call, min(options.runs, 3), time.process_time) for call in calls]
        table.rows.append((pairs, clusters, *(round(1000 * each, 1) for each in seconds)))
    return table
