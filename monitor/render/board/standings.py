"""The place of each model with its ties, and the sentence to quote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monitor.render.report import ReportDocument, document_of
from monitor.view.build import ReportView
from monitor.words import header
from monitor.words.counts import counted
from monitor.words.numbers import percent, safe
from schemas.results.report import BenchmarkReport, ModelReport

_NAMED = 3


@dataclass(frozen=True)
class Standing:
    """The place of a model among so many, with the names that it is not decided against, by rank, and what to quote."""

    model: ModelReport
    models: int
    ties: tuple[str, ...]
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
    """A benchmark: its report, and the places of its models."""

    document: ReportDocument
    standings: Sequence[Standing]

    @property
    def report(self) -> BenchmarkReport:
        """The report of the benchmark."""
        return self.document.report


def board_of(view: ReportView, low_coverage: float, *, several: bool = False) -> Board:
    """Return a board; a model below `low_coverage` is marked, and `several`: there are other boards, each with an alpha of its own."""
    document = document_of(view, low_coverage, several=several)
    names = [model.model for model in document.report.models]
    places = []
    for model, tied in zip(document.report.models, document.tied, strict=True):
        ties = tuple(names[j] for j in tied)
        places.append(Standing(model, len(names), ties, _sentence(document.report, model, ties, several=several)))
    return Board(document, places)


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
