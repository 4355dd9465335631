"""The detail of a pair as entries of its card."""

from html import escape

from monitor.render import numbers as form
from monitor.render.document import needed, p_value
from monitor.report.sentences import counted
from schemas.detail import CURRENT, PLANNED_N, AdjustedP, ClusterDetail, PairDetail


def second_opinions(detail: PairDetail) -> str:
    """Write the second opinions on a pair, folded away."""
    entries = [
        ("Adjusted p, neighbours", _adjusted(detail.adjacent_family)),
        ("Adjusted p, all pairs", _adjusted(detail.all_family)),
        ("e-Holm, e-BH", f"{_side(detail, detail.e_holm)}; {_side(detail, detail.e_bh)} ({CURRENT})"),
        ("p, continuity-corrected", p_value(detail.p_corrected)),
        ("Bootstrap gap", form.interval(detail.bootstrap_low, detail.bootstrap_high)),
        ("rho can only be", f"{form.decimal(detail.rho_low)} to {form.decimal(detail.rho_high)} at these accuracies"),
        ("Anytime N*", needed(detail.anytime_required_n)),
        ("q with the paper's 2.15", form.ratio(detail.paper_anytime_resolution_ratio)),
    ]
    entries += _cluster(detail.cluster) if detail.cluster is not None else []
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(form.safe(value))}</dd></div>" for name, value in entries)
    return f"<details><summary>Second opinions</summary><dl>{rows}</dl></details>"


def _side(detail: PairDetail, side: str | None) -> str:
    return {"a": detail.model_a, "b": detail.model_b}.get(side or "", "undecided")


def _adjusted(family: AdjustedP | None) -> str:
    if family is None:
        return form.MISSING
    names = {"sidak": "Sidak", "holm": "Holm", "benjamini_hochberg": "BH", "benjamini_yekutieli": "BY"}
    values = ", ".join(f"{name} {p_value(getattr(family, key))}" for key, name in names.items())
    return f"{values} ({counted(family.pairs, 'pair')}; {PLANNED_N})"


def _cluster(cluster: ClusterDetail) -> list[tuple[str, str]]:
    ratios = ", ".join(f"{d.definition} {form.ratio(d.resolution_ratio)}" for d in cluster.definitions)
    low, high = cluster.bootstrap_icc
    least, most = cluster.bootstrap_required_n
    left = f"{form.ratio(cluster.leave_one_out_low)} to {form.ratio(cluster.leave_one_out_high)}"
    clusters = "more than can be told" if cluster.clusters_needed is None else f"about {cluster.clusters_needed:,}"
    return [
        (
            "Clusters resampled",
            f"ICC {form.decimal(low, 4)} to {form.decimal(high, 4)}, N* {needed(least)} to {needed(most)}",
        ),
        ("Unresolved in", f"{cluster.bootstrap_unresolved:.0%} of the resamples"),
        ("One cluster left out", f"q {left}, least without {cluster.leave_one_out_cluster}"),
        ("Other clusters, q", ratios),
        (
            "For new categories",
            f"{clusters} clusters like these until evidence at alpha; ln e now {form.decimal(cluster.log_e)}",
        ),
    ]
