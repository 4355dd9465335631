"""Lines about benchmarks: a folder of hundreds prints a few of each kind."""

import json

import pytest

from monitor.cli.shared.errors import Notes
from monitor.cli.shared.files import read_results
from monitor.cli.shared.options import DeclareOptions
from monitor.view.build import build_report
from tests.fold_log import event


def test_the_first_of_each_kind_are_printed_and_then_that_there_are_more(capsys):
    notes = Notes()
    for number in range(40):
        notes(f"board {number}: graded", "with graded scores")
        if number < 2:
            notes(f"board {number}: declared already", "declared already")
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "declared already" in line] == [
        "rankwatch: board 0: declared already",
        "rankwatch: board 1: declared already",
    ]
    assert [line for line in lines if "graded" in line] == [
        *(f"rankwatch: board {number}: graded" for number in range(3)),
        "rankwatch: more benchmarks with graded scores: the report shows it for each",
    ]


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ({"family": ["spending"]}, False),
        ({"family": ["spending"], "items": ["4"]}, True),
        ({"family": ["capacity:1"]}, True),
        ({}, True),
    ],
)
def test_a_family_that_complete_files_replace_is_named(tmp_path, capsys, options, used):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(event(k, model, k % 2)) + "\n" for k in range(4) for model in "ab"))
    boards = read_results([str(path)], 0, declared=DeclareOptions(**options))
    (report,) = build_report(boards, assert_complete=True).benchmarks
    assert ("bench: the family spending is not used" in capsys.readouterr().err) is not used
    assert report.family.policy == ("spending" if "items" in options else "capacity")
