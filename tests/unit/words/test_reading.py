"""What comes ahead of a result."""

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.reading import first
from tests.fold_log import FoldLog, event


def test_numbered_models_of_a_live_board_may_have_one_item_for_now():
    log = FoldLog({"declare": "bench", "items": 100})
    log.send(*(event("q1", f"step-{k}", 1) for k in range(12)))
    report = benchmark_report(board_view(log.bench))
    assert any("swapped" in text for text in first(report))
    assert not any("swapped" in text for text in first(report, live=True))
