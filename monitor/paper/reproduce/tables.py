"""The paper's tables of counts, verdicts and clusters, recomputed from its printed counts."""

import numpy as np

from monitor.paper.published import NOT_RECOMPUTABLE, Paper, PublishedPair
from monitor.paper.reproduce.lattice import bootstrap_tails
from monitor.paper.reproduce.rows import Row, Section, figures, items, number, parse, word
from stats.clusters.robust import design_effect
from stats.evidence.eprocess import anytime_inflation, log_e_value
from stats.fixed_n.mcnemar import chi2_p, exact_p, mid_p
from stats.fixed_n.resolution import correlation, inflation, required_n, rho_sensitivity
from stats.numerics.checks import FloatArray

ALPHA = 0.05


def _columns(pairs: tuple[PublishedPair, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return n, b and c of all pairs."""
    n, b, c = np.array([(pair.items, pair.b, pair.c) for pair in pairs], dtype=np.float64).T
    return n, b, c


def required(pairs: tuple[PublishedPair, ...]) -> FloatArray:
    """Return N* of all pairs from their counts."""
    return required_n(*_columns(pairs))


def rho(pairs: tuple[PublishedPair, ...]) -> FloatArray:
    """Return the correlation of all pairs from their counts and A's printed accuracy, rounded to whole items."""
    n, b, c = _columns(pairs)
    right_a = np.round(n * np.array([pair.p_a for pair in pairs]))
    return correlation(n, b, c, right_a, right_a - b + c)


def _share(unresolved: int, pairs: tuple[PublishedPair, ...]) -> str:
    return f"{unresolved}/{len(pairs)}"


def _unresolved(needed: FloatArray, pairs: tuple[PublishedPair, ...]) -> str:
    """Count the pairs that need more items than there are, as "4/9"."""
    return _share(int((needed > _columns(pairs)[0]).sum()), pairs)


def discordance(title: str, source: str, pairs: tuple[PublishedPair, ...]) -> Section:
    """Recompute correlation, p-values and N* of a table of discordant counts."""
    _, b, c = _columns(pairs)
    rows: list[Row] = []
    for pair, r, chi2, exact, needed in zip(
        pairs, rho(pairs), chi2_p(b, c), exact_p(b, c), required(pairs), strict=True
    ):
        rows += [
            number(f"{pair.name}: rho", pair.rho, float(r)),
            number(f"{pair.name}: p chi2", pair.p_chi2, float(chi2)),
            number(f"{pair.name}: p exact", pair.p_exact, float(exact)),
            items(f"{pair.name}: N*", pair.required_n, float(needed)),
        ]
    return Section(title, source, tuple(rows))


def arbiters(paper: Paper) -> Section:
    """Recompute four tests of the close pairs; the bootstrap is exact, so its verdict does not depend on a seed."""
    rows: list[Row] = []
    for pair, printed in zip(paper.oll, paper.arbiters, strict=True):
        p = [float(test(pair.b, pair.c)) for test in (chi2_p, exact_p, mid_p)]
        at_most, below = (float(tail) for tail in bootstrap_tails(pair.items, pair.b, pair.c))
        inside = min(at_most, 1 - below) >= ALPHA / 2
        tight = min(at_most, 1 - below) - (at_most - below) < ALPHA / 2 <= min(at_most, 1 - below)
        verdict = "".join("R" if reject else "F" for reject in (*(x <= ALPHA for x in p), not inside))
        endpoint = f"depends on the closed endpoint: P(mean <= 0) = {at_most:.4f}, P(mean < 0) = {below:.4f}"
        rows += [
            number(f"{pair.name}: p chi2", printed.p_chi2, p[0]),
            number(f"{pair.name}: p exact", printed.p_exact, p[1]),
            number(f"{pair.name}: p mid", printed.p_mid, p[2]),
            word(
                f"{pair.name}: bootstrap interval contains 0",
                printed.contains_zero,
                "yes" if inside else "no",
                note=endpoint if tight else "",
            ),
            word(f"{pair.name}: verdict", printed.verdict, verdict),
        ]
    return Section("Four arbiters on the close pairs", "table arbiters", tuple(rows))


def buckets(paper: Paper) -> Section:
    """Recompute the two buckets of the OLL table whose pairs are all printed."""
    n, b, c = _columns(paper.oll)
    gap, ratio = np.abs(b - c) / n, required(paper.oll) / n
    rows: list[Row] = []
    for name, inside, count, median, worst in (
        ("gap up to 1 pp", gap <= 0.01, "3 of 3", "94", "1,892"),
        ("gap 1 to 2 pp", (gap > 0.01) & (gap <= 0.02), "4 of 4", "4.2", "6.8"),
    ):
        in_bucket = ratio[inside]
        rows.append(figures(f"{name}: unresolved", count, f"{(in_bucket > 1).sum()} of {in_bucket.size}"))
        if in_bucket.size:
            rows.append(number(f"{name}: median N*/N", median, float(np.median(in_bucket))))
            rows.append(number(f"{name}: worst N*/N", worst, float(in_bucket.max())))
    return Section("Open LLM Leaderboard v1: buckets", "table bucket", tuple(rows))


def clusters(paper: Paper) -> Section:
    """Recompute design effects and cluster N* from the published ICCs; each tolerance is the rounding of the printed inputs."""
    n = _columns(paper.mmlu)[0]
    mean_size = n / paper.clusters
    icc = np.array([row.icc for row in paper.cluster_rows])
    half = np.array([0.5 * 10.0**-row.icc_digits for row in paper.cluster_rows])
    effect = design_effect(icc, mean_size)
    reach = design_effect(icc + half, mean_size) - effect
    iid = required(paper.mmlu)
    rows: list[Row] = []
    for k, (pair, printed) in enumerate(zip(paper.mmlu, paper.cluster_rows, strict=True)):
        de, half_de = parse(printed.design_effect)
        rows += [
            number(
                f"{pair.name}: design effect from the ICC",
                printed.design_effect,
                float(effect[k]),
                slack=float(reach[k]),
                why="the printed ICC is rounded",
            ),
            number(
                f"{pair.name}: cluster N* from counts and printed design effect",
                printed.required_n,
                float(iid[k] * de),
                slack=float(iid[k] * half_de + max(1.0, 1e-4 * iid[k] * de)),
                reuses="the printed design effect",
            ),
        ]
    needed = iid * effect
    as_printed = iid * np.array([parse(row.design_effect)[0] for row in paper.cluster_rows])
    flipped = (as_printed > n) & (iid <= n)
    ratios = as_printed[flipped] / n[flipped]
    rows += [
        number("median ICC", "0.0010", float(np.median(icc)), reuses="the printed ICCs"),
        number(
            "median design effect",
            "1.88",
            float(np.median(effect)),
            slack=float(reach[np.argsort(effect)[4]]),
            why="the printed ICC is rounded",
        ),
        figures("unresolved with clusters", "6/9", _unresolved(needed, paper.mmlu)),
        figures("pairs that flip with clusters", "2", str(int(flipped.sum()))),
        figures(
            "pairs that flip to N* > 3 N",
            "2",
            str(int((ratios > 3).sum())),
            because=f"the cluster N* of the pairs that flip is {' and '.join(f'{x:.2f}' for x in ratios)} N (errata 6)",
        ),
        figures(
            "pairs that drive the flip (4 v 5, 5 v 6, 6 v 7)",
            "3",
            str(int(flipped.sum())),
            because="6 v 7 is unresolved without clusters already (errata 6)",
        ),
        number(
            "midpoint of the unresolved counts [5, 9] over cluster definitions",
            "6",
            sum(paper.cluster_range) / 2,
            because="the midpoint of 5 and 9 is 7 (errata 6)",
        ),
    ]
    return Section("MMLU-Pro: clusters from the published ICCs", "tables cluster, icc_bootstrap", tuple(rows))


def verdicts(paper: Paper) -> Section:
    """Count unresolved pairs by every definition, and undecided pairs."""
    pairs = paper.mmlu
    _, b, c = _columns(pairs)
    iid = required(pairs)
    log_e = log_e_value(b, c, "grid98")
    own = iid * anytime_inflation(b + c, ALPHA, 0.8, "grid98")
    undecided = int((log_e < -np.log(ALPHA)).sum())
    sixth = pairs[4].name
    rows = (
        figures("unresolved, fixed n", "4/9", _unresolved(iid, pairs)),
        figures("unresolved, Bonferroni m = 9", "4/9", _unresolved(iid * float(inflation(9)), pairs)),
        figures(
            "unresolved, all pairs m = 45",
            "4/9",
            _unresolved(iid * float(inflation(45)), pairs),
            because=f"2.144 N* exceeds N for {sixth}, which was resolved: the paper checks only the unresolved (errata 5)",
        ),
        word(
            "unresolved, anytime with the paper's constant 2.15",
            "5/9",
            _unresolved(iid * paper.anytime_inflation, pairs),
            note="made of the printed constant",
        ),
        figures("unresolved, anytime with each pair's own boundary", "5/9", _unresolved(own, pairs)),
        figures(
            "not decided by the e-process (e < 20 at the end)",
            "5/9",
            _share(undecided, pairs),
            because=f"5/9 counts unresolved pairs; the e-value of {sixth} is {np.exp(log_e[4]):.1f}, beyond 20 (errata 1)",
        ),
        figures("unresolved, clustered", "6/9", _unresolved(iid * _cluster_effect(paper), pairs)),
    )
    evidence = tuple(
        Row(
            f"{pair.name}: ln e (grid98)",
            "not printed",
            float(value),
            "not_printed",
            f"{'decided' if value >= -np.log(ALPHA) else 'not decided'} at e >= 20, ln e >= 2.996",
        )
        for pair, value in zip(pairs, log_e, strict=True)
    )
    return Section("MMLU-Pro: verdicts by definition", "table verdict", rows + evidence)


def _cluster_effect(paper: Paper) -> FloatArray:
    return design_effect([row.icc for row in paper.cluster_rows], _columns(paper.mmlu)[0] / paper.clusters)


def rho_shift(paper: Paper) -> Section:
    """Recompute the verdicts with the correlation off by 0.10."""
    n, b, c = _columns(paper.mmlu)
    p_a = np.round(n * np.array([pair.p_a for pair in paper.mmlu])) / n
    needed = rho_sensitivity(p_a, p_a - (b - c) / n, rho(paper.mmlu))
    unresolved = [int((x > n).sum()) for x in needed]
    flips = int(((needed[0] > n) != (needed[2] > n)).sum())
    hella = paper.oll[3]
    p_hella = round(hella.items * hella.p_a) / hella.items
    shifted = rho_sensitivity(p_hella, p_hella - (hella.b - hella.c) / hella.items, rho((hella,)))
    rows = (
        figures("MMLU-Pro: unresolved over rho -0.10, 0, +0.10", "2 to 4", f"{min(unresolved)} to {max(unresolved)}"),
        figures("MMLU-Pro: pairs that flip", "2", str(flips)),
        word("HS gem/L8B resolved at rho + 0.10", "yes", "yes" if shifted[2] <= hella.items else "no"),
    )
    return Section("Sensitivity to the correlation", "section resolution-mmlupro", rows)


def out_of_reach() -> Section:
    """List the results whose data the paper does not print."""
    rows = tuple(
        Row(name, value, None, "not_recomputable", f"the paper {lacks}") for name, value, lacks in NOT_RECOMPUTABLE
    )
    return Section("Not recomputable from print", "various", rows)
