"""The contract that every importer keeps, on a file as the harness writes it."""

import json
from pathlib import Path

from monitor.files.formats.contract import check_importer

ANSWERS = [{"q": "q1", "grade": 0.5}, {"q": "q2", "grade": 1}, {"q": "q3", "grade": 0, "crashed": True}]


def test_the_importer_keeps_the_contract(tmp_path: Path) -> None:
    """Write a file, and name everything that it holds."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"acme_version": 1, "system": "a", "suite": "quiz", "answers": ANSWERS}))
    expected = [("quiz", "q1", "a", 0, 0.5), ("quiz", "q2", "a", 0, 1), ("quiz", "q3", "a", 0, None)]
    check_importer(path, expected, lines=False)
