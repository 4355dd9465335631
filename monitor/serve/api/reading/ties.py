"""Ties as the API has them."""

from monitor.view.ranking.tie_bands import TieBands
from schemas.results.api import Band, LackingModel, Ties


def tie_report(ties: TieBands) -> Ties:
    """Return the ties with ranks from 1 in place of positions."""
    return Ties(
        bands=None
        if ties.bands is None
        else [Band(members=[k + 1 for k in band.members], lane=band.lane) for band in ties.bands],
        lanes=ties.lanes,
        rules=[k + 1 for k in ties.rules],
        lacking=[LackingModel(rank=k + 1, tied=[j + 1 for j in tied]) for k, tied in ties.lacking.items()],
    )
