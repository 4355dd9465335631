"""Lines about benchmarks: a folder of hundreds prints a few of each kind."""

from monitor.cli.shared.errors import Notes


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
