"""The place of each model with its ties, and the sentence to quote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monitor.render.document import ReportDocument
from monitor.view.build import ReportView
from monitor.view.pairs.evidence_path import chart_data
from monitor.view.ranking.tie_bands import TieBands, tie_bands, tied_with
from monitor.words import header
from monitor.words.counts import counted
from monitor.words.flags import named_flags
from monitor.words.numbers import percent, safe
from schemas.results.report import BenchmarkReport, ModelReport

_NAMED = 3


@dataclass(frozen=True)
class Standing:
    """The place of a model.

    Attributes
    ----------
    model : ModelReport
    models : int
        Models of the benchmark.
    ties : tuple of str
        Models that it is not decided against, by rank.
    lacks_items : bool
        Whether it has too few of the items to be in a band: its ties may cross a rule.
    ruled : bool
        Whether a rule is below it: every model above is decided over every model below.
    sentence : str
        What to quote.
    """

    model: ModelReport
    models: int
    ties: tuple[str, ...]
    lacks_items: bool
    ruled: bool
    sentence: str

    @property
    def place(self) -> str:
        """The ranks that the verdicts leave open: "rank 1-3 of 29"."""
        low, high = self.model.rank_low, self.model.rank_high
        return f"rank {low if low == high else f'{low}–{high}'} of {self.models}"

    @property
    def tie(self) -> str:
        """How many models it is tied with: "ties with 2 others"."""
        count = len(self.ties)
        return "tied with none" if not count else "ties with 1 other" if count == 1 else f"ties with {count} others"


class Board(NamedTuple):
    """A benchmark: its report, the places of its models, and their ties."""

    document: ReportDocument
    standings: Sequence[Standing]
    ties: TieBands


def board_of(view: ReportView, low_coverage: float, *, several: bool = False) -> Board:
    """Return a board.

    Parameters
    ----------
    view : ReportView
    low_coverage : float
        The share of the items below which a model is marked.
    several : bool
        Whether there are other boards, each with an alpha of its own.
    """
    report = named_flags(view.report)
    bands = tie_bands(view.table, low_coverage)
    places = standings(report, tied_with(view.table), bands, several=several)
    return Board(ReportDocument(report, chart_data(view.table), low_coverage, several=several), places, bands)


def standings(
    report: BenchmarkReport, tied: Sequence[Sequence[int]], bands: TieBands, *, several: bool = False
) -> list[Standing]:
    """Return the models by rank; `tied` has the positions of the models that each one is tied with, `several` as in `board_of`."""
    names = [model.model for model in report.models]
    return [
        Standing(
            model,
            len(names),
            tuple(names[j] for j in tied[k]),
            k in bands.lacking,
            k in bands.rules,
            _sentence(report, model, [names[j] for j in tied[k]], several=several),
        )
        for k, model in enumerate(report.models)
    ]


def _sentence(report: BenchmarkReport, model: ModelReport, ties: Sequence[str], *, several: bool) -> str:
    low, high, total = model.rank_low, model.rank_high, len(report.models)
    place = f"rank {low}" if low == high else f"rank {low} to {high}"
    named = [safe(name) for name in ties[:_NAMED]]
    more = f" and {counted(len(ties) - _NAMED, 'more model')}" if len(ties) > _NAMED else ""
    tie = f"; tied with {', '.join(named)}{more}" if ties else "; tied with no other model"
    score = "without a score" if model.mean is None else f"{percent(model.mean)} %"
    assumed = header.assumed(report, several=several)
    verdict = "" if assumed else " No verdict is given: no order policy is declared."
    return f"{safe(model.model)}: {score} on {safe(report.benchmark)}, {place} of {total:,}{tie}.{verdict} {safe(assumed)}".rstrip()
