"""Two models on a terminal: the numbers, the gap on its interval, and what so many items can show."""

import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from monitor.render.terminal.report import render_report
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.results.report import Report
from tests.fold_log import FoldLog, event, packed, paired


def printed(scores, names=("new", "old"), *, width=80, encoding="utf-8"):
    """The lines of a report on complete files."""
    log = FoldLog()
    log.send(packed(scores, list(names)))
    return shown(log, width=width, encoding=encoding)


def shown(log, *, width=80, encoding="utf-8"):
    """The lines of a report on what was folded."""
    shown = benchmark_report(board_view(log.bench), assert_complete=True)
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding, write_through=True), width=width, highlight=False)
    render_report(Report(benchmarks=[shown]), console)
    return [line.rstrip() for line in raw.getvalue().decode(encoding).splitlines()]


def marks(lines):
    """The axis, and the numbers above it."""
    (k,) = (k for k, line in enumerate(lines) if "●" in line and line.startswith("  ") and "─" in line)
    return lines[k - 1], lines[k]


def test_too_few_items_name_the_gap_that_they_can_show():
    text = printed(paired(5, 4, 41))
    assert not any("ranks" in line for line in text)
    assert "  gap       +2.00 points          interval −11.74 to +15.90" in text
    assert "  p          1.00                 decided at 0.05 or less" in text
    assert "  items      5 only new right · 4 only old right · 41 alike" in text
    start = text.index("What 50 items can show")
    assert [line.split(" points")[0] for line in text[start + 1 : start + 4]] == [
        "  With 9 items that differ, the smallest gap that decides is 14",
        "  A gap of 17",
        "  A gap of 2",
    ]
    assert any("rankwatch plan --gap 0.02 --discordance 0.18" in line for line in text)


def test_a_close_result_names_the_items_that_would_turn_it():
    text = printed(paired(129, 99, 772))
    assert "  p          0.0545               decided at 0.0500 or less" in text
    start = text.index("How close")
    assert text[start + 1].startswith("  1 item turned would decide it: 130 to 98 items give p = 0.03")


@pytest.mark.parametrize("counts", [(5, 4, 41), (36, 16, 148), (16, 36, 148), (7, 7, 36), (1, 0, 999), (40, 0, 0)])
def test_the_gap_is_on_the_side_of_the_better_model(counts):
    numbers, axis = marks(printed(paired(*counts)))
    zero = next((k for k, sign in enumerate(axis) if sign in "│┼"), None)
    dot = axis.index("●")
    assert "├" in axis or "┼" in axis or zero == dot
    gap = 100 * (counts[0] - counts[1]) / sum(counts)
    assert gap == 0 or zero is None or (dot - zero) * abs(gap) >= 0
    assert numbers.strip()


def test_a_gap_outside_of_its_interval_is_on_the_axis():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    for item in range(90):  # the lead turns, so that the interval of all looks is left
        log.send(*(event(f"i{item}", model, int((model == "late") == (item >= 30))) for model in ("early", "late")))
    text = shown(log)
    assert text[1].startswith("○ Decided for early, but late is 33.33 points ahead on these items, p = ")
    (axis,) = (line.split() for line in text if "●" in line)
    assert axis == ["├─────┼", "●"]


def test_a_decided_pair_claims_no_more_than_its_numbers():
    text = printed(paired(36, 16, 148))
    assert text[1].startswith("● Decided: new is better than old")
    assert not {"How close", "What 200 items can show"} & set(text)
    assert not any("rankwatch plan" in line for line in text)


@pytest.mark.parametrize("width", [20, 40, 60, 79])
def test_nothing_is_wider_than_the_terminal(width):
    names = ("an" * 60, "好" * 90)
    assert max(map(cell_len, printed(paired(5, 4, 41), names, width=width))) <= width


def test_an_ascii_terminal_gets_ascii():
    text = printed(paired(5, 4, 41), encoding="ascii")
    assert "  gap       +2.00 points          interval -11.74 to +15.90" in text
    assert not any("\\x" in line or "\\u" in line for line in text)


def test_graded_scores_have_no_items_that_only_one_has_right():
    scores = np.random.default_rng(3).random((80, 2)).round(3)
    text = printed(scores)
    assert any(line.startswith("  gap ") for line in text)
    assert not any(" only new right" in line for line in text)
