"""One page of the items of a benchmark, filtered, sorted and compared for two models."""

from math import isnan
from typing import Final, NamedTuple

import numpy as np

from monitor.serve.report_cache import rank_of
from monitor.view.board import Flags
from monitor.view.items.hardness import (
    ItemColumns,
    ItemSort,
    Show,
    TwoModels,
    in_order,
    scores_of,
    selected,
    surprises,
    two_models,
)
from monitor.view.live_pairs import LivePairs
from monitor.view.pairs.table import labels
from schemas.results.api import Group, ItemPage, ItemRow, Surprises, TwoModelItems
from stats.numerics.pairs import Index

TWO_MODEL_FILTERS: Final[tuple[Show, ...]] = ("differ", "only_a", "only_b", "both_right", "both_wrong")
_FILTERS: Final[tuple[Show, ...]] = ("all", "all_wrong", "all_right", "suspicious")
_GROUPS: Final = 15


class ItemChoice(NamedTuple):
    """What is asked for."""

    model_a: str | None
    model_b: str | None
    show: Show
    cluster: str | None
    find: str | None
    sort: ItemSort
    start: int
    end: int


def item_page(live: LivePairs, chosen: ItemChoice) -> ItemPage:
    """Return a page of items."""
    benchmark, ranking = live.table.benchmark, live.table.ranking
    columns, keys = live.items, benchmark.item_keys
    two = None
    if chosen.model_a is not None and chosen.model_b is not None:
        first, second = (int(ranking[rank_of(live, model)]) for model in (chosen.model_a, chosen.model_b))
        two = two_models(benchmark, first, second)
    names, label = labels(benchmark)
    keep = selected(columns, two, chosen.show)
    if chosen.cluster is not None:
        keep &= np.array([key.cluster == chosen.cluster for key in keys], bool)
    if chosen.find:
        part = chosen.find.casefold()
        keep &= np.array([part in key.item.casefold() or part in (key.cluster or "").casefold() for key in keys], bool)
    at = in_order(columns, np.flatnonzero(keep), chosen.sort)
    shown = at[chosen.start : chosen.end]
    filters = (*_FILTERS, *(TWO_MODEL_FILTERS if two else ()))
    return ItemPage(
        benchmark=benchmark.name,
        models=live.models,
        counts={show: int(np.count_nonzero(selected(columns, two, show))) for show in filters},
        clusters=list(names),
        two=None if two is None else _compared(chosen, two, columns, names, label),
        items=_rows(live, shown),
        total=at.size,
        next_cursor=str(chosen.end) if chosen.end < at.size else None,
    )


def surprise_page(live: LivePairs, model: str, limit: int) -> Surprises:
    """Return the items on which a model is most unlike the others, or raise the 404."""
    benchmark, contestant = live.table.benchmark, int(live.table.ranking[rank_of(live, model)])
    higher, lower = surprises(benchmark, live.items, contestant, limit)
    return Surprises(
        benchmark=benchmark.name, model=model, models=live.models, higher=_rows(live, higher), lower=_rows(live, lower)
    )


def _rows(live: LivePairs, at: Index) -> list[ItemRow]:
    """Describe some items."""
    benchmark, columns = live.table.benchmark, live.items
    keys, suspicious = benchmark.item_keys, columns.suspicious
    return [
        ItemRow(
            item_id=keys[k].item,
            cluster=keys[k].cluster,
            scored=int(columns.scored[k]),
            right=int(columns.right[k]),
            mean=_number(columns.mean[k]),
            correlation=_number(columns.correlation[k]),
            suspicious=bool(suspicious[k]),
            scores=[_number(score) for score in scores],
        )
        for k, scores in zip(at.tolist(), scores_of(benchmark, live.table.ranking, at).tolist(), strict=True)
    ]


def _number(value: float) -> float | None:
    return None if isnan(value) else float(value)


def _compared(
    chosen: ItemChoice, two: TwoModels, columns: ItemColumns, names: list[str], label: np.ndarray
) -> TwoModelItems:
    only_a, only_b, shared = two.where("only_a"), two.where("only_b"), two.shared
    both_right, both_wrong = two.where("both_right"), two.where("both_wrong")
    equal = shared & ~(only_a | only_b | both_right | both_wrong)

    def group(name: str, members: Flags) -> Group:
        counts = (int(np.count_nonzero(members & flags)) for flags in (shared, only_a, only_b))
        return Group(**dict(zip(("items", "only_a", "only_b"), counts, strict=True)), name=name)

    others = columns.right - (two.a >= 1) - (two.b >= 1)
    most = int(others[shared].max(initial=0))
    width = -(-(most + 1) // _GROUPS)
    bins = [(low, min(low + width - 1, most)) for low in range(0, most + 1, width)]
    by_cluster = [group(name, label == k) for k, name in enumerate(names)]
    counts = {
        name: int(np.count_nonzero(flags))
        for name, flags in {
            "both_right": both_right,
            "only_a": only_a,
            "only_b": only_b,
            "both_wrong": both_wrong,
            "equal": equal,
        }.items()
    }
    return TwoModelItems(
        model_a=chosen.model_a or "",
        model_b=chosen.model_b or "",
        **counts,
        by_cluster=sorted(by_cluster, key=lambda g: (g.only_b - g.only_a, g.name)),
        by_right=[
            group(str(low) if low == high else f"{low}-{high}", (others >= low) & (others <= high))
            for low, high in bins
        ],
    )
