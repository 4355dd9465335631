"""MMLU-Pro ranks 5 and 6 on every surface of a monitor that runs; the formats of `report` are in test_every_format.py."""

import io
import json
import re

import msgspec
import pytest
from rich.console import Console

from monitor.render.terminal.live import LiveView
from monitor.render.terminal.plain import LiveStatus
from schemas.results.report import Report
from tests.commands import Watch, changes, get, rankwatch, until
from tests.golden_pair import BENCHMARK, ITEMS, NAMES, VERDICTS, verdicts_of, write_golden_pair


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return write_golden_pair(tmp_path_factory.mktemp("golden") / "ranks.jsonl")


@pytest.fixture(scope="module")
def answers(results, tmp_path_factory):
    """What a monitor says of them over HTTP, by path; "feed" holds its verdict changes."""
    data = tmp_path_factory.mktemp("golden data")
    query = f"benchmark={BENCHMARK}"
    with Watch(data, results) as watch:
        url = watch.url
        until(lambda: ITEMS * 2 in [s["events"] for s in json.loads(get(f"{url}/api/v1/summaries")[1])], "the events")
        until(lambda: len(changes(data)) == 2, "the feed")
        pages = {path: get(f"{url}/{path}")[1] for path in (
            "metrics", "api/v1/benchmarks", f"api/v1/benchmarks/{BENCHMARK}", f"api/v1/pairs?{query}", f"api/v1/matrix?{query}",
            f"api/v1/changes?{query}",
        )}  # fmt: skip
        assert watch.stop() == 0
        return pages | {"feed": changes(data), "lines": watch.lines}


def pair_of(answers, path):
    answer = json.loads(answers[path])
    (pair,) = answer["pairs"] if "pairs" in answer else answer["benchmarks"][0]["pairs"]
    return pair


@pytest.mark.parametrize("path", ["benchmarks", f"benchmarks/{BENCHMARK}", f"pairs?benchmark={BENCHMARK}"])
def test_the_api(answers, path):
    pair = pair_of(answers, f"api/v1/{path}")
    assert verdicts_of(pair) == VERDICTS
    assert pair["status"] == "exhausted"
    assert (
        "Decided for this pair only at alpha = 0.05: rank 5 is better than rank 6. Not decided family-wise"
        in pair["reason"]
    )
    matrix = json.loads(answers[f"api/v1/matrix?benchmark={BENCHMARK}"])
    assert matrix["decided"] == [[0, 0], [0, 0]]
    assert matrix["statuses"][matrix["status"][0][1]] == "exhausted"


def test_the_metrics(answers):
    def value(name, procedure):
        labels = f'benchmark="{BENCHMARK}",model_a="rank 5",model_b="rank 6",procedure="{procedure}"'
        (sample,) = re.findall(rf"^rankwatch_pair_{name}{{{labels}}} (\S+)$", answers["metrics"], re.MULTILINE)
        return float(sample)

    assert [value("decided", name) for name in ("anytime", "anytime_family")] == [1, 0]
    ratios = [value("resolution_ratio", name) for name in ("fixed_n", "anytime")]
    assert ratios == pytest.approx([2.079, 0.796], abs=5e-4)
    for kind, procedure, count in (
        ("undecided", "anytime", 0),
        ("undecided", "anytime_family", 1),
        ("unresolved", "fixed_n", 0),
        ("unresolved", "anytime", 1),
    ):
        series = f'rankwatch_adjacent_pairs_{kind}{{benchmark="{BENCHMARK}",procedure="{procedure}"}}'
        assert f"{series} {count}.0" in answers["metrics"]


def test_the_feed(answers):
    lists = answers["feed"], json.loads(answers[f"api/v1/changes?benchmark={BENCHMARK}"])["changes"]
    for entries in lists:
        entry, settled = sorted(entries, key=lambda entry: entry["kind"])
        assert (settled["kind"], settled["after"]) == ("settled", "a")
        assert (entry["kind"], entry["procedure"], entry["after"]) == ("decided", "anytime", "a")
        assert entry["evidence"]["resolution_ratio"] > 1
        assert entry["sentence"].startswith(
            f"rank 5 is better than rank 6 on items like those of {BENCHMARK}, decided for this pair only at alpha = 0.05: of "
        )
        assert entry["sentence"].endswith(
            "Assumes that neither the arrival order nor what is skipped depends on outcomes or clusters, and that the items are a sample "
            "of independent items."
        )


@pytest.mark.parametrize("width", [120, 200])
def test_the_table_of_a_watch(answers, width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=40, color_system=None)
    view = LiveView(console)
    view.update(msgspec.json.decode(answers["api/v1/benchmarks"], type=Report), LiveStatus())
    console.print(view)
    lines = console.file.getvalue().splitlines()
    (row,) = [line for line in lines if re.search("rank 5 +63.41", line)]
    assert re.search("[○◔] .*needs [0-9,]+$", row.rstrip()), "not decided in the family"
    assert any(line.startswith("○ Not decided") for line in lines)


def test_the_gate(results):
    text = rankwatch("gate", results, "--pair", *NAMES).stdout
    assert text.startswith(f"decided for this pair only: rank 5 is better than rank 6 on {BENCHMARK} (alpha = 0.05, ")
    assert "Not decided family-wise" in text
    assert "q = N/N* = 2.08: resolved at a planned n" in text
    assert "not resolved if watched throughout; q is computed from the observed gap, so it adds no evidence" in text
    answer = json.loads(rankwatch("gate", results, "--pair", *NAMES, "--format", "json").stdout)
    assert (answer["decided"], answer["exit_code"]) == ("a", 0)
    assert verdicts_of(answer["pair"]) == VERDICTS
    other = rankwatch("gate", results, "--pair", *reversed(NAMES), code=4).stdout
    assert other.startswith("decided for this pair only: rank 5 is better than rank 6")
