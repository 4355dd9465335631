"""An export of a benchmark, folded again, is the benchmark."""

import json

import pytest

from monitor.view.build import build_report
from monitor.view.from_state import board_view
from monitor.view.partition_view import board_views
from monitor.view.score_lines import score_lines
from tests.fold_log import FoldLog, event
from tests.unit.engine.test_battles import battle, declare, stream


def exported(log, rows):
    """Records of an export in parts of so many rows."""
    size = len(log.bench.rows)
    parts = (score_lines(board_view(log.bench), start, start + rows) for start in range(0, size, rows))
    return [json.loads(line) for part in parts for line in part.splitlines()]


@pytest.mark.parametrize("rows", [7, 1000])
def test_battles_are_exported_with_judge_position_and_repeat(rows):
    records = stream(3, 300, prompts=60, cluster=["j1", "j2", None], repeat=[0, 1])
    log = FoldLog(declare())
    log.send(*records, {"ended": "bench"})
    lines = exported(log, rows)
    again = FoldLog()
    again.send(*lines)
    counted = again.bench.counters
    assert (counted["events"], counted["duplicates"], counted["conflicts"]) == (log.bench.battles.size, 0, 0)
    mine, theirs = (rounded(each) for each in (log, again))
    assert [theirs[field] for field in ("battles", "models")] == [mine[field] for field in ("battles", "models")]
    gaps = [[(pair["n"], pair["gap"], pair["p_a"]) for pair in each["pairs"]] for each in (mine, theirs)]
    assert gaps[0] == gaps[1]


def rounded(log):
    """A report with nine digits: sums over another order of prompts differ in the last ones."""
    (report,) = build_report(board_views([log.partition]), pairs="all", assert_complete=True).benchmarks
    return json.loads(report.as_json(), parse_float=lambda text: f"{float(text):.9g}")


def test_an_export_says_which_model_won_and_was_shown_first():
    log = FoldLog()
    log.send(battle("q", "x", "y", "a", position="b"), battle("q2", "y", "x", "a", position="a", cluster="j"))
    assert exported(log, 10) == [
        {"benchmark": "bench", "item_id": "q", "model_a": "x", "model_b": "y", "winner": "a", "position": "b"},
        {"benchmark": "bench", "item_id": "q2", "cluster": "j", "model_a": "x", "model_b": "y", "winner": "b", "position": "b"},
    ]  # fmt: skip


def test_an_export_has_what_its_scores_do_not_show_and_a_store_keeps_it():
    declared = {"declare": "bench", "items": 3, "alpha": 0.04}
    first = [declared, event(1, "x", 1), *({"board": verb, "benchmark": "bench"} for verb in ("delete", "reopen"))]
    log = FoldLog(*first, declared | {"alpha": 0.01}, event(1, "x", None), event(1, "x", 1))
    lines = exported(log, 10)
    known = {"score_choice": True, "begun_again": True}
    assert [line.get("provenance") for line in lines] == [known, None]
    again = FoldLog(*lines)
    again.restart()
    assert exported(again, 10) == lines
    later = ["declared_late", "begun_again", "score_choice"]
    mine, theirs = (build_report(board_views([each.partition])).benchmarks[0].assumptions for each in (log, again))
    assert mine == theirs
    assert [each["code"] for each in mine] == ["completion", "independent", "joined", *later]


def test_plain_scores_have_no_declaration_in_an_export():
    log = FoldLog(event(1, "x", 1))
    assert exported(log, 10) == [event(1, "x", 1)]
