"""Wrong calls: one sentence with the place, the problem and the fix."""

import pytest

from tests.commands import rankwatch, write

RECORDS = [
    {"benchmark": "bench", "item_id": f"i{k}", "model": model, "score": int((model == "a") == (k % 10 > 0))}
    for model in "ab"
    for k in range(40)
]
CALLS = [
    (
        "report ftp://host/y.jsonl",
        2,
        "ftp://host/y.jsonl: ftp:// is not read; use http:// or https://, or the path of a file",
    ),
    (
        "report a.jsonl --conflicts no/x.csv",
        2,
        "--conflicts no/x.csv: no is not a folder; create it, or choose another one",
    ),
    (
        "report a.jsonl --order committed",
        2,
        "--order committed: order policy 'committed' needs a seed and the items; use",
    ),
    ("report =a.jsonl", 2, "=a.jsonl does not exist; check the path"),
    (
        "report a.json",
        1,
        "the JSON document has a shape that no importer knows; `rankwatch map FILE` proposes how to read it",
    ),
    (
        "watch a.jsonl --once --data-dir a.jsonl",
        1,
        "a.jsonl cannot be created (File exists); choose another --data-dir",
    ),
    (
        "order a.jsonl --seed s",
        0,
        "a.jsonl is read as an item id, although there is a file of that name; --items a.jsonl",
    ),
]


@pytest.mark.parametrize(("call", "code", "message"), CALLS)
def test_a_wrong_call_is_answered_with_the_fix(tmp_path, monkeypatch, call, code, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", RECORDS)
    (tmp_path / "a.json").write_text('{"a": 1}')
    errors = rankwatch(*call.split(), code=code).stderr
    assert message in errors
    assert "Traceback" not in errors


def test_a_held_report_does_not_explain_how_alpha_is_spent(tmp_path):
    path = write(tmp_path / "a.jsonl", RECORDS)
    held = rankwatch("report", path, "--items", 10).stdout
    assert "40 items arrived and 10 were declared" in held
    assert "Alpha is spent" not in held
