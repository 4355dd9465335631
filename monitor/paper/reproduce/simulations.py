"""The paper's simulations, run again with a seed (`rankwatch reproduce --full`, minutes)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from monitor.paper.published import Paper, StreamPair
from monitor.paper.reproduce.formulas import CELL_ITEMS, TRIALS, cells, variant_rows
from monitor.paper.reproduce.rows import UNEXPLAINED, Row, Section, differs, items, number, proportion
from stats.evidence.eprocess import boundary_u
from stats.fixed_n.mcnemar import chi2_p, corrected_p, exact_p, mid_p
from stats.fixed_n.resolution import required_n, required_n_paired
from stats.numerics.checks import FloatArray
from stats.planning.simulate import graded_beta, latent_joint

SEED = 20260101
STREAMS = 4000
HORIZON = 5  # streams are watched for this many N*; the paper does not give its horizon
POWER_AT = np.array([0.85, 0.925, 1.0, 1.075, 1.15])
"""Multiples of N* at which bootstrap power is simulated to find where it crosses 0.80."""


def steps(paper: Paper) -> list[tuple[str, Callable[[], Section]]]:
    """Return the simulations by name, in the order of the paper."""
    return [
        ("simulating five tests", lambda: resampled_variants(paper)),
        ("simulating 0/1 scores", bernoulli_power),
        ("simulating graded scores", graded_power),
        ("simulating e-processes", lambda: streams(paper)),
    ]


def stopping_times(
    rate_b: float, rate_c: float, horizon: int, rng: np.random.Generator, count: int = STREAMS
) -> NDArray[np.int64]:
    """Return the item at which each of `count` streams first has e >= 20 (grid98), or 0 if none has by the horizon."""
    # Only discordant items move e, so the streams are their signs and the geometric gaps between them.
    rate = rate_b + rate_c
    length = int(horizon * rate + 6 * np.sqrt(horizon * rate) + 10)
    m = np.arange(1, length + 1)
    threshold = boundary_u(m, 0.05, "grid98") * np.sqrt(m) - 1e-9
    stopped = []
    for block in np.array_split(np.arange(count), -(-count // 500)):
        shape = (block.size, length)
        lead = np.cumsum(np.where(rng.random(shape) * rate < rate_b, 1, -1), axis=1)
        at = np.cumsum(rng.geometric(rate, shape), axis=1)
        crossed = (np.abs(lead) >= threshold) & (at <= horizon)
        first = crossed.argmax(axis=1)
        stopped.append(np.where(crossed.any(axis=1), at[np.arange(block.size), first], 0))
    return np.concatenate(stopped)


def _stream_rows(pair: StreamPair, rng: np.random.Generator, count: int) -> tuple[list[Row], float, float]:
    """Return the rows of a pair, and its mean stopping time over N* with rho as observed and as latent."""
    rate_b, rate_c = pair.b / pair.items, pair.c / pair.items
    needed = float(required_n(pair.items, pair.b, pair.c))
    horizon = round(HORIZON * needed)
    null = (rate_b + rate_c) / 2
    false = float((stopping_times(null, null, horizon, rng, count) > 0).mean())
    stops = stopping_times(rate_b, rate_c, horizon, rng, count)
    # The paper's (p, rho) with the gap of the pair, rho being its Bernoulli correlation or, in the other reading, the latent one.
    gap = rate_b - rate_c
    rho = 0.64 if gap < 0.05 else 0.54
    _, latent_b, latent_c, _ = latent_joint(0.6 + gap / 2, 0.6 - gap / 2, rho)
    latent = stopping_times(float(latent_b), float(latent_c), horizon, rng, count)
    rows = [
        items(f"{pair.name}: N*", pair.required_n, needed),
        proportion(f"{pair.name}: type I error", pair.type_one, false, (600, count), note=f"watched for {HORIZON} N*"),
        number(
            f"{pair.name}: rejected under H1, at least",
            ">0.97",
            float((stops > 0).mean()),
            note=f"watched for {HORIZON} N*",
        ),
    ]
    return rows, float(stops[stops > 0].mean() / needed), float(latent[latent > 0].mean() / needed)


def streams(paper: Paper, count: int = STREAMS) -> Section:
    """Simulate type I error and stopping times of the mixture e-process on the two ARC pairs."""
    rng = np.random.default_rng(SEED)
    rows: list[Row] = []
    observed, latent = [], []
    for pair in paper.streams:
        more, mean, mean_latent = _stream_rows(pair, rng, count)
        rows += more
        observed.append(mean)
        latent.append(mean_latent)
    because = f"with these counts the mean is {min(observed):.2f} to {max(observed):.2f} N* (errata 3)"
    other = "reading rho as the latent correlation explains most of it, and not all (errata 3)"
    rows += [
        number("mean stopping time over N*, smallest", "1.84", min(observed), because=because),
        number("mean stopping time over N*, largest", "2.32", max(observed), because=because),
        number("the same, were rho the latent correlation, smallest", "1.84", min(latent), because=other),
        number("the same, were rho the latent correlation, largest", "2.32", max(latent), because=other),
    ]
    return Section("Mixture e-process on two ARC pairs", "appendix eprocess_construction", tuple(rows))


def _bootstrap_rejects(
    n: int, b: FloatArray, c: FloatArray, rng: np.random.Generator, resamples: int
) -> NDArray[np.bool_]:
    """Test with the percentile bootstrap of the mean gap; resampling n items is a multinomial draw of their counts."""
    p = np.stack([b, c, n - b - c], axis=-1) / n
    drawn = rng.multinomial(n, p[:, None, :], size=(b.size, resamples))
    low, high = np.quantile(drawn[..., 0] - drawn[..., 1], [0.025, 0.975], axis=1)
    return np.asarray((low > 0) | (high < 0))


def resampled_variants(paper: Paper, trials: int = TRIALS, resamples: int = 1000) -> Section:
    """Simulate size and power of the five tests, the bootstrap by resampling."""
    rng = np.random.default_rng(SEED + 1)
    closed = {"chi2": chi2_p, "exact": exact_p, "mid": mid_p, "corrected": corrected_p}
    shares: dict[str, tuple[list[float], list[float]]] = {row.test: ([], []) for row in paper.variants}
    for _, _, null, rate_b, rate_c in cells():
        for hypothesis, rates in enumerate(((null, null), (rate_b, rate_c))):
            drawn = rng.multinomial(CELL_ITEMS, [*rates, 1 - sum(rates)], size=trials)
            b, c = drawn[:, 0].astype(np.float64), drawn[:, 1].astype(np.float64)
            for test, outcome in shares.items():
                if test == "bootstrap":
                    chunks = np.array_split(np.arange(trials), 10)
                    rejected = np.concatenate(
                        [_bootstrap_rejects(CELL_ITEMS, b[k], c[k], rng, resamples) for k in chunks]
                    )
                else:
                    rejected = closed[test](b, c) <= 0.05
                outcome[hypothesis].append(float(rejected.mean()))
    rows = [row for test in paper.variants for row in variant_rows(test, *shares[test.test], simulated_cells=True)]
    return Section(f"Five tests of a pair: {trials:,} trials a cell", "table variants", tuple(rows))


def _crossing(power: FloatArray) -> float:
    """Return the multiple of N* at which power crosses 0.80, from a line through the probits against the root of n."""
    slope, intercept = np.polyfit(np.sqrt(POWER_AT), ndtri(np.clip(power, 0.001, 0.999)), 1)
    return float(((ndtri(0.8) - intercept) / slope) ** 2)


def _within(name: str, percent: int, ratio: float, note: str) -> Row:
    computed = f"{100 * (ratio - 1):+.1f} %"
    if abs(ratio - 1) > percent / 100:
        return differs(name, f"within {percent} %", computed, f"{UNEXPLAINED}; {note}")
    return Row(name, f"within {percent} %", computed, "compatible", f"the paper prints a bound; {note}")


def bernoulli_power(trials: int = 2000) -> Section:
    """Compare N* with the n at which bootstrap power crosses 0.80 on 0/1 scores from a latent Gaussian copula."""
    rng = np.random.default_rng(SEED + 2)
    rows: list[Row] = []
    for delta in (0.02, 0.04, 0.08):
        # A latent correlation of 0.46 makes the Bernoulli one 0.30 at these accuracies.
        _, rate_b, rate_c, _ = (float(cell) for cell in latent_joint(0.65, 0.65 - delta, 0.46))
        needed = float(required_n_paired(delta, np.sqrt(rate_b + rate_c - delta**2)))
        power = []
        for n in np.round(POWER_AT * needed).astype(int):
            drawn = rng.multinomial(n, [rate_b, rate_c, 1 - rate_b - rate_c], size=trials).astype(np.float64)
            chunks = np.array_split(np.arange(trials), 4)
            rejected = [_bootstrap_rejects(int(n), drawn[k, 0], drawn[k, 1], rng, 500) for k in chunks]
            power.append(float(np.concatenate(rejected).mean()))
        note = f"N* = {needed:,.0f}; power at N* = {power[2]:.3f}"
        rows.append(_within(f"gap {delta}: n at power .80, from N*", 5, _crossing(np.array(power)), note))
    return Section("Bootstrap power on synthetic 0/1 scores", "figure synth", tuple(rows))


def graded_power(trials: int = 1500, resamples: int = 400) -> Section:
    """Compare the paired-t N* with the n at which bootstrap power crosses 0.80 on Beta(4, 2) scores."""
    rng = np.random.default_rng(SEED + 3)
    rows: list[Row] = []
    for gap in (0.03, 0.06):
        x_a, x_b = graded_beta(gap, 0.5, 400_000, rng)
        needed = float(required_n_paired(gap, float((x_a - x_b).std())))
        power = []
        for n in np.round(POWER_AT * needed).astype(int):
            rejected = 0
            for _ in range(trials):
                a, b = graded_beta(gap, 0.5, int(n), rng)
                means = (a - b)[rng.integers(n, size=(resamples, int(n)))].mean(axis=1)
                low, high = np.quantile(means, [0.025, 0.975])
                rejected += bool(low > 0 or high < 0)
            power.append(rejected / trials)
        note = f"N* = {needed:,.0f}; power at N* = {power[2]:.3f}"
        rows.append(_within(f"gap {gap}: n at power .80, from the paired-t N*", 6, _crossing(np.array(power)), note))
    return Section("Bootstrap power on graded Beta(4, 2) scores", "figure graded", tuple(rows))
