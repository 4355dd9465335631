"""The pytest plugin, in processes of its own: scores, a baseline, and one more test at the end."""

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rankwatch_client import margin

import stats
from tests.commands import environment, rankwatch, write

DATA = os.environ.get("RANKWATCH_DATA")
CLIENT = Path(__file__).parents[2] / "clients/python/src"
SUITE = """
import pytest
from answers import SCORES

@pytest.mark.rankwatch(margin=0.05{more})
@pytest.mark.parametrize("k", range(len(SCORES)))
def test_answers(k, rankwatch):
    score = SCORES[k]
    if score == "crash":
        raise RuntimeError("the harness is broken")
    if score is None:
        pytest.skip("no answer")
    {give}

def test_other():
    assert True
"""
SCORE, ASSERT = "rankwatch.score(score)", "assert score == 1"


@pytest.fixture
def suite(tmp_path):
    """A function that writes the suite and runs it."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(scores, *arguments, give=SCORE, more="", code=0):
        (tmp_path / "answers.py").write_text(f"SCORES = {scores!r}\n")
        (tmp_path / "test_suite.py").write_text(SUITE.format(give=give, more=more))
        call = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "rankwatch_client.pytest_plugin",
            "-p",
            "xdist",
            "-p",
            "no:cacheprovider",
            "-q",
            *arguments,
        ]
        ended = subprocess.run(
            call,
            cwd=tmp_path,
            # Plugins that happen to be installed take four times as long to load as these suites to run. Byte code is
            # matched by size and whole second: `[2, 0, 1]` written in the second of `[1, 0, 1]` would run as that.
            env=environment(
                PYTHONPATH=f"{CLIENT}:{tmp_path}", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONDONTWRITEBYTECODE="1"
            ),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    return run


def flipped(scores, share, seed=1):
    rng = random.Random(seed)
    return [1 - s if rng.random() < share else s for s in scores]


GOOD = [int(k % 5 > 0) for k in range(200)]
WORSE = [0 if k % 4 == 0 else s for k, s in enumerate(GOOD)]


@pytest.mark.full
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_baseline_is_accepted_and_a_worse_suite_fails(suite, tmp_path, workers):
    assert "test_suite.py::test_answers: no baseline in" in suite(GOOD, *workers)
    assert "200 scores of this run are the baseline" in suite(GOOD, "--rankwatch-update", *workers)
    kept = [json.loads(line) for line in (tmp_path / "rankwatch-baseline.jsonl").read_text().splitlines()]
    assert sum(each["score"] for each in kept) == sum(GOOD)
    printed = suite(GOOD, "--junitxml=r.xml", "--rankwatch-scores=new.jsonl", *workers)
    assert "test_suite.py::test_answers: not worse than the baseline by more than 5 points" in printed
    assert "202 passed" in printed
    cases = ET.parse(tmp_path / "r.xml").getroot()[0]
    assert any("not worse than baseline" in case.get("name") for case in cases)
    worse = suite(WORSE, *workers, code=1)
    p = margin.compare(WORSE, GOOD, 0.05).p_worse
    assert f"worse than the baseline; gap -20.00 points on 200 items, p = {p:.3g}" in worse
    gate = rankwatch(
        "gate",
        tmp_path / "rankwatch-baseline.jsonl",
        tmp_path / "new.jsonl",
        "--pair",
        "candidate",
        "baseline",
        "--margin",
        "0.05",
    )
    assert gate.stdout.startswith("pass")


@pytest.mark.full
def test_a_failed_assertion_is_a_score_and_a_crash_is_not(suite):
    suite(GOOD, "--rankwatch-update", give=ASSERT)
    printed = suite(GOOD, give=ASSERT)
    assert "40 xfailed" in printed
    crashed = ["crash" if k < 2 else s for k, s in enumerate(GOOD)]
    printed = suite(crashed, give=ASSERT, code=1)
    assert "2 failed" in printed
    assert "2 without a score count as lost" in printed
    assert "RuntimeError: the harness is broken" in printed


@pytest.mark.full
def test_a_selection_new_items_and_undecided_suites_are_reported(suite):
    suite(GOOD[:100], "--rankwatch-update")
    assert "1 not in the baseline (--rankwatch-update adds them)" in suite(GOOD[:101])
    printed = suite(GOOD[:20], "-rs")
    assert "80 of the baseline did not run and do not count" in printed
    assert "undecided" in printed
    assert "1 skipped" in printed
    suite(GOOD[:20], more=", on_undecided='fail'", code=1)
    suite(GOOD[:20], more=", on_undecided='pass'", code=0)
    again = "import random; rankwatch.score(random.random())"
    printed = suite(GOOD[:2], "test_suite.py", "test_suite.py", "--keep-duplicates", give=again)
    assert "test_suite.py::test_answers[0] ran again with another score; the first one counts (0." in printed


@pytest.mark.full
def test_wrong_use_is_refused_with_the_remedy(suite, tmp_path):
    assert "use a margin between 0 and 1" in suite(GOOD[:3], more=", alpha=2", code=4)
    (tmp_path / "rankwatch-baseline.jsonl").write_text("{}\n")
    assert "no score can be read; restore the file" in suite(GOOD[:3], code=1)
    assert "out of range" in suite([2, 0, 1], code=1)
    absent = suite(GOOD[:3], "--rankwatch-update", "--rankwatch-baseline=absent/b.jsonl", code=1)
    assert "No such file or directory; check the path" in absent
    (tmp_path / "rankwatch-baseline.jsonl").unlink()
    stopped = suite([1, "crash", 1], "-x", "--rankwatch-update", code=1)
    assert "the run broke off: no verdict, and the baseline is unchanged" in stopped
    assert not (tmp_path / "rankwatch-baseline.jsonl").exists()


@pytest.mark.full
@pytest.mark.skipif(DATA is None, reason="RANKWATCH_DATA names no folder of real evaluations")
@pytest.mark.parametrize(("model", "code"), [("gpt-4o-2024-08-06", 0), ("claude-3-haiku-20240307", 1)])
def test_a_real_suite_gets_the_verdict_of_the_gate(suite, tmp_path, model, code):
    baseline = "gpt-4o-2024-05-13"
    lines = gzip.decompress((Path(DATA) / "zeroeval/events.jsonl.gz").read_bytes()).splitlines()
    rows = [
        event
        for event in map(json.loads, lines)
        if event["benchmark"] == "gsm8k" and event["model"] in {model, baseline}
    ]
    write(tmp_path / "rows.jsonl", rows)
    scores = {
        name: {row["item_id"]: row["score"] for row in rows if row["model"] == name} for name in (model, baseline)
    }
    items = sorted(scores[baseline])
    suite([scores[baseline][item] for item in items], "--rankwatch-update")
    printed = suite([scores[model].get(item) for item in items], code=code)
    gate = ("gate", tmp_path / "rows.jsonl", "--pair", model, baseline, "--margin", "0.05", "--format", "json")
    (row,) = json.loads(rankwatch(*gate, code=4 if code else 0).stdout)["comparisons"]
    before, after = printed.split(f"gap {100 * row['gap']:+.2f} points on 1319 items, p = ")[:2]
    assert ("worse than the baseline; " if code else "not worse than the baseline by more than 5 points; ") in before
    assert float(after.split()[0]) == pytest.approx(row["p_worse" if code else "p_not_worse"], rel=0.01, abs=1e-12)


def test_its_tests_are_those_of_the_library():
    rng = random.Random(2)
    for _ in range(40):
        n, delta = rng.randint(1, 400), rng.choice([0.01, 0.05, 0.2])
        b = rng.randint(0, n)
        c = rng.randint(0, n - b)
        assert margin.score_z(n, b, c, -delta) == pytest.approx(float(stats.score_z(n, b, c, -delta)), abs=1e-9)
        assert margin.exact_p(b, c) == pytest.approx(float(stats.exact_p(b, c)), abs=1e-9)
        exact = float(stats.excess_p(n, b, c, -delta))
        # A statistic above 20 counts as 20 there: far below any alpha.
        assert exact * (1 - 1e-4) - 1e-50 <= margin.unconditional_p(n, b, c, delta) <= exact * (1 + 2e-3)
        d = [rng.randint(-4, 4) / 4 for _ in range(n)]
        assert margin.log_e(d, -delta) == pytest.approx(float(stats.graded_excess_log_e(d, -delta)), abs=1e-8)
    scores, baseline = flipped(GOOD, 0.05), GOOD
    found = margin.compare(scores, baseline, 0.05, missing=3)
    d = [x - y for x, y in zip(scores, baseline, strict=True)]
    b, c = d.count(1), d.count(-1)
    assert found.p_not_worse == pytest.approx(float(stats.excess_p(200, b, c, -0.05, 3)), rel=2e-3)
    assert found.needed == pytest.approx(
        stats.excess_required_n((b - c) / 200, (b + c) / 200 - ((b - c) / 200) ** 2, -0.05)
    )
