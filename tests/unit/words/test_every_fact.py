"""Every code of a fact has its sentence or clause."""

from monitor.words import clusters, gates, labels, order, pairs, results
from schemas.results.reasons import Reason


def test_every_code_is_worded():
    tables = (
        order._CLAUSES,
        pairs._SENTENCES,
        results._SENTENCES,
        clusters._SENTENCES,
        gates._SENTENCES,
        labels._SENTENCES,
        order._REPLACED,
    )
    assert set().union(*tables) == set(Reason)
