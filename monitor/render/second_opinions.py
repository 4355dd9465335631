"""The second opinions on a pair as names and values, for Markdown and HTML."""

from monitor.render.document import side_name
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.numbers import needed, needed_range, p_value
from schemas.results.detail import CURRENT, PLANNED_N, AdjustedP, ClusterDetail, PairDetail


def second_opinions(detail: PairDetail) -> list[tuple[str, str]]:
    """Return other families, intervals and tests of a pair, as (name, value)."""
    names = (detail.model_a, detail.model_b)
    return [
        ("Adjusted p, neighbours", _adjusted(detail.adjacent_family)),
        ("Adjusted p, all pairs", _adjusted(detail.all_family)),
        ("e-Holm, e-BH", f"{side_name(names, detail.e_holm)}; {side_name(names, detail.e_bh)} ({CURRENT})"),
        ("p, continuity-corrected", p_value(detail.p_corrected)),
        ("Bootstrap gap", form.interval(detail.bootstrap_low, detail.bootstrap_high)),
        (
            "Possible rho (phi)",
            f"{form.decimal(detail.rho_low)} to {form.decimal(detail.rho_high)} at these accuracies",
        ),
        ("Anytime N*", needed(detail.anytime_required_n)),
        ("q with the paper's 2.15", form.ratio(detail.paper_anytime_resolution_ratio)),
    ]


def cluster_opinions(cluster: ClusterDetail) -> list[tuple[str, str]]:
    """Return how the cluster-aware result of a pair depends on the clusters, as (name, value)."""
    ratios = ", ".join(f"{d.definition} {form.ratio(d.resolution_ratio)}" for d in cluster.definitions)
    low, high = cluster.bootstrap_icc
    omitted = form.MISSING
    if cluster.leave_one_out_cluster is not None:
        least, most = form.ratio(cluster.leave_one_out_low), form.ratio(cluster.leave_one_out_high)
        omitted = f"q {least} to {most}; lowest without {cluster.leave_one_out_cluster}"
    clusters = "an unknown number of" if cluster.clusters_needed is None else f"about {cluster.clusters_needed:,}"
    return [
        (
            "Clusters resampled",
            f"ICC {form.decimal(low, 4)} to {form.decimal(high, 4)}, N* {needed_range(*cluster.bootstrap_required_n)}",
        ),
        ("Unresolved in", f"{cluster.bootstrap_unresolved:.0%} of the resamples"),
        ("One cluster omitted", omitted),
        ("Other clusters, q", ratios),
        (
            "For new categories",
            f"{clusters} clusters like these until evidence at alpha; ln e is now {form.decimal(cluster.log_e)}",
        ),
    ]


def _adjusted(family: AdjustedP | None) -> str:
    if family is None:
        return form.MISSING
    names = {"sidak": "Sidak", "holm": "Holm", "benjamini_hochberg": "BH", "benjamini_yekutieli": "BY"}
    values = ", ".join(f"{name} {p_value(getattr(family, key))}" for key, name in names.items())
    return f"{values} ({counted(family.pairs, 'pair')}; {PLANNED_N})"
