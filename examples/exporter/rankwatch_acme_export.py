"""An exporter: copy this file, and write what your site reads.

It writes ``ranking.json``: for each benchmark its models with their scores, and the ranks that the verdicts leave open.
"""

import json
from collections.abc import Iterable, Iterator

from monitor.render.board.exporters import Context, Exporter, File
from monitor.render.board.scored import omitted, scored_models
from monitor.render.board.standings import Board


def files(boards: Iterable[Board], context: Context) -> Iterator[File]:
    """Return one file; a model that has no score is omitted, and a note names how many there are."""
    ranking = {}
    for board in boards:
        omitted(board, context)
        ranking[board.document.report.benchmark] = [
            {
                "model": each.name,
                "score": context.scaled(each.mean),
                "ranks": [each.ranked.model.rank_low, each.ranked.model.rank_high],
                "tied_with": list(each.ranked.ties),
            }
            for each in scored_models(board)
        ]
    yield "ranking.json", json.dumps(ranking, indent=1)


EXPORTER = Exporter("acme", files, frozenset({"percent"}))
