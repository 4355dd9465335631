"""The scores of every model by category, and the verdicts against one of them."""

from typing import Final

from monitor.serve.report_cache import rank_of
from monitor.view.items.categories import CategoryScores, category_gaps, category_scores
from monitor.view.live_pairs import LivePairs
from schemas.results.api import Category, CategoryPage, CategoryVerdicts

MOST_CATEGORIES: Final = 500


def category_page(live: LivePairs, baseline: str | None, limit: int) -> CategoryPage:
    """Return the largest categories, and the comparison with a model."""
    table = live.table
    scores = category_scores(table)
    shown = slice(limit)
    return CategoryPage(
        benchmark=table.benchmark.name,
        alpha=table.benchmark.spec.alpha,
        models=live.models,
        mean=table.kind.means_of(table.ranking)[0].tolist(),
        categories=[
            Category(name=name, items=int(items))
            for name, items in zip(scores.names[shown], scores.items[shown], strict=True)
        ],
        total=len(scores.names),
        scored=scores.scored[:, shown].tolist(),
        means=scores.mean[:, shown].tolist(),
        baseline=None if baseline is None else _against(live, scores, baseline, shown),
    )


def _against(live: LivePairs, scores: CategoryScores, baseline: str, shown: slice) -> CategoryVerdicts:
    gaps = category_gaps(live.table, scores, rank_of(live, baseline))
    return CategoryVerdicts(
        model=baseline,
        n=gaps.n[:, shown].tolist(),
        gap=gaps.gap[:, shown].tolist(),
        side=None if gaps.side is None else gaps.side[:, shown].tolist(),
        why=gaps.why,
        comparisons=gaps.comparisons,
    )
