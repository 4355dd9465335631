"""`gate --baseline-max-age`: results of a baseline that are too old decide nothing, and a command may replace them."""

import shlex
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.commands import rankwatch, write

TODAY = datetime.now(UTC).date()


def results(path, model):
    return write(path, [{"benchmark": "qa", "item_id": f"q{k}", "model": model, "score": k % 2} for k in range(300)])


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs").mkdir()
    results(tmp_path / "runs" / "new.jsonl", "new")
    results(tmp_path / "runs" / f"old_{TODAY - timedelta(days=40)}.jsonl", "old")
    return tmp_path / "runs"


def gate(runs, *more, code):
    return rankwatch("gate", runs, "--pair", "new", "old", "--margin", 0.02, *more, code=code)


def test_an_old_baseline_is_an_error_with_its_file_and_its_date(runs):
    assert gate(runs, "--baseline-max-age", "60d", code=0).stdout.startswith("pass")
    refused = gate(runs, "--baseline-max-age", "30d", code=1)
    assert f"old_{TODAY - timedelta(days=40)}.jsonl are of {TODAY - timedelta(days=40)}, older than" in refused.stderr
    assert not refused.stdout
    both = ("--columns", "score=score", "--columns", "score=score:lower")
    assert "are of" in gate(runs, "--baseline-max-age", "30d", *both, code=1).stderr, "each metric has the same files"
    (old,) = runs.glob("old_*")
    for name, words in (
        ("old.jsonl", "has no date in its name or its folder"),
        ("old_2099-01-01.jsonl", "lies ahead"),
        ("old_2020-13-45.jsonl", "has no date"),
    ):
        old = old.rename(runs / name)
        assert words in gate(runs, "--baseline-max-age", "30d", code=2).stderr
    # The oldest of several files counts.
    old.rename(runs / f"old_{TODAY}.jsonl")
    (runs / f"{TODAY - timedelta(weeks=9)}").mkdir()
    results(runs / f"{TODAY - timedelta(weeks=9)}" / "more.jsonl", "old")
    assert "more.jsonl" in gate(runs, "--baseline-max-age", "4w", code=1).stderr


def test_a_command_refreshes_an_old_baseline_and_not_a_new_one(runs, tmp_path):
    script = tmp_path / "evaluate.py"
    script.write_text(
        "import pathlib, sys\n"
        "old = next(pathlib.Path(sys.argv[1]).glob('old_*'))\n"
        f"old.rename(old.with_name('old_{TODAY}.jsonl'))\n"
        "(old.parent.parent / 'calls').open('a').write('x')\n"
    )
    command = shlex.join([sys.executable, str(script), str(runs)])
    given = ("--baseline-max-age", "30d", "--baseline-refresh")
    for _ in range(2):
        assert gate(runs, *given, command, code=0).stdout.startswith("pass")
    assert (tmp_path / "calls").read_text() == "x"
    (old,) = runs.glob("old_*")
    old.rename(runs / f"old_{TODAY - timedelta(days=31)}.jsonl")
    left = gate(runs, *given, shlex.join([sys.executable, "-c", ""]), code=1)
    assert "--baseline-refresh left them so" in left.stderr
    assert (
        "ended with code 1"
        in gate(runs, *given, shlex.join([sys.executable, "-c", "raise SystemExit(1)"]), code=1).stderr
    )
    assert "cannot be run" in gate(runs, *given, "no-such-command", code=2).stderr


@pytest.mark.parametrize("age", ["30", "d", "0d", "-1d", "1.5d", "", "99999999999d"])
def test_an_age_has_a_unit(runs, age):
    assert "give hours, days or weeks" in gate(runs, f"--baseline-max-age={age}", code=2).stderr


def test_an_age_is_of_files(runs):
    assert "add it, for example --baseline-max-age" in gate(runs, "--baseline-refresh", "x", code=2).stderr
    for more in (("--check",), ("--server", "http://127.0.0.1:9")):
        refused = rankwatch(
            "gate", runs, "--margin", 0.02, "--baseline", "old", *more, "--baseline-max-age", "3d", code=2
        )
        assert "omit" in refused.stderr
