"""How long the statistics take, at all 499,500 pairs of 1,000 models scored on 12,032 items, beside their peers.

Run it from the root of the repository, on an otherwise idle machine:

    python benchmarks/stats_speed.py [--pairs 499500] [--repeats 5]

Each line is the median of the repeats, in processor time on one core. A peer is a function of another library that does
the same for one pair: it is called on a sample of pairs and its time multiplied up. scipy and statsmodels are needed.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import stats

ITEMS = 12_032
COLUMNS = {
    "moments", "required_n", "mde", "resolution_ratio", "chi2_p", "exact_p", "mid_p", "log_e_value", "log_e_halves",
    "anytime_required_n", "items_to_decision",
}  # fmt: skip


def seconds(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return median(times)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=499_500)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n, b, c = counts(options.pairs)
    gap, sd = stats.moments(n, b, c)
    n_star = stats.required_n(n, b, c)
    p, log_e = stats.exact_p(b, c), stats.log_e_value(b, c)
    missing = np.full(b.size, 500)
    calls: dict[str, Callable[[], object]] = {
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
        "log_completion_bound": lambda: stats.log_completion_bound(b, c, missing),
        "anytime_required_n": lambda: stats.anytime_required_n(n, b, c),
        "items_to_decision": lambda: stats.items_to_decision(n, b, c, np.log(20)),
        "items_to_completion_decision": lambda: stats.items_to_completion_decision(n, b, c, missing, np.log(20)),
        "holm": lambda: stats.holm(p),
        "benjamini_hochberg": lambda: stats.benjamini_hochberg(p),
        "e_bh": lambda: stats.e_bh(log_e),
        "spending_alpha": lambda: stats.spending_alpha(np.arange(1, b.size + 1)),
    }
    beside = peers()
    sample = np.random.default_rng(1).integers(0, b.size, 300)
    print(f"{b.size:,} pairs, {ITEMS:,} items, largest gap {np.abs(gap).max():.2f}")
    total = 0.0
    for name, call in calls.items():
        taken = seconds(call, options.repeats)
        total += taken if name in COLUMNS else 0
        line = f"{name:30} {1e3 * taken:9.1f} ms"
        if name in beside:
            label, one = beside[name]
            whole = seconds(lambda one=one: [one(int(b[i]), int(c[i])) for i in sample], 3) / sample.size * b.size
            line += f"   {label} in a loop {whole:8.1f} s, {whole / taken:6.0f} times as long"
        print(line, flush=True)
    print(f"{'all columns made of counts':30} {1e3 * total:9.1f} ms")

    values, few = np.linspace(-1, 1, 21), np.random.default_rng(2).integers(0, 600, (4950, 21))
    capital = stats.histogram_capital(values, few)
    some = np.random.default_rng(3).integers(0, b.size, (406, 1))
    smaller: dict[str, Callable[[], object]] = {
        "graded grids from histograms, 4,950 pairs of 21 values": lambda: stats.histogram_capital(values, few),
        "graded e-values, 4,950 pairs": lambda: stats.graded_log_e_halves(capital),
        "gap_interval, 406 pairs at two levels": lambda: stats.gap_interval(n[some], b[some], c[some], [0.05, 1e-4]),
        "the same, grid98": lambda: stats.gap_interval(n[some], b[some], c[some], [0.05, 1e-4], "grid98"),
    }
    for name, call in smaller.items():
        print(f"{name:56} {1e3 * seconds(call, options.repeats):7.1f} ms")


if __name__ == "__main__":
    main()
