"""Rejects as commands print them: one sentence for those of one reason."""

import pytest

from monitor.cli.shared.files import RejectedLines
from monitor.files.reject_limit import RejectedLine, TooManyRejected

WHOLE = RejectedLine("a.jsonl", None, "item_id", "beyond the limit; send fewer items")


@pytest.mark.parametrize(("count", "ends"), [(1, ""), (5, " (and 4 more)"), (1_200, " (and 1,199 more)")])
def test_rejects_without_a_line_are_one_sentence(capsys, count, ends):
    with RejectedLines() as rejected:
        for _ in range(count):
            rejected.print(WHOLE)
    assert rejected.count == count
    assert capsys.readouterr().err == f"rankwatch: {WHOLE}{ends}\n"


def test_rejects_without_a_line_are_printed_where_a_run_stops(capsys):
    rejected = RejectedLines()
    rejected.print(WHOLE)
    rejected.print(RejectedLine("a.jsonl", 3, "score", "2 is out of range"))
    with pytest.raises(TooManyRejected), rejected:
        raise TooManyRejected("stopped", [])
    assert capsys.readouterr().err == f"rankwatch: a.jsonl:3: score: 2 is out of range\nrankwatch: {WHOLE}\n"
