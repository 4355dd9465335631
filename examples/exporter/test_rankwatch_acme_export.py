"""The contract that every exporter keeps, on boards of many kinds."""

from rankwatch_acme_export import EXPORTER

from monitor.render.board.contract import check_exporter


def test_the_exporter_keeps_the_contract() -> None:
    """Write boards with ties, with names of any characters, and without scores."""
    check_exporter(EXPORTER)
