"""What an export of a sentinel says."""

from tests.commands import rankwatch, write


def test_a_file_of_scores_is_refused_for_a_sentinel(tmp_path):
    records = [
        {"declare": "watched", "drift": {}},
        {"benchmark": "watched", "item_id": "a", "model": "m", "score": 1, "run": "2026-01-01"},
    ]
    results = write(tmp_path / "runs.jsonl", records)
    said = rankwatch("export", tmp_path / "scores.jsonl", results, code=1).stderr
    assert "watched is a sentinel: its scores are in runs" in said
    assert "rankwatch state export" in said
    assert not (tmp_path / "scores.jsonl").exists()
