"""`rankwatch demo`, replayed in a second, with its output in a pipe."""

import re

import pytest

from monitor.paper.demo.year import CHANGE, MODEL, demo_year, first_days
from monitor.paper.demo.year_story import alarms_of_limits
from tests.commands import rankwatch


@pytest.fixture(scope="module")
def story():
    return rankwatch("demo", "--seconds", "1").stdout


def test_the_verdict_table_shows_the_paper_and_the_computation(story):
    for row in (
        r"^fixed n\s+4/9\s+4/9\s+same",
        r"^Bonferroni / Holm\s+4/9\s+4/9\s+same",
        r"^anytime-valid\s+5/9\s+5/9\s+same",
        r"^clustered\s+6/9\s+n/a\s+the paper prints no counts by category",
    ):
        assert re.search(row, story, re.MULTILINE), row


def test_it_explains_why_the_fifth_and_sixth_differ(story):
    text = " ".join(story.split())
    (line,) = re.findall(r"Why 5 v 6 differs: .*?undecided pairs\.", text)
    for words in ("ln e 4.35", "ln 25 = 3.22", "item 11,998", "q 2.08", "not resolved anytime (q 0.78)"):
        assert words in line


def test_it_names_what_is_simulated(story):
    assert "Only these nine pairs are the paper's" in " ".join(story.split())
    assert "Simulated: the joint table and the arrival, along the committed order" in " ".join(story.split())


def test_verdicts_come_as_plain_lines(story):
    assert story.startswith("watching\n")
    assert "\x1b" not in story
    assert "this pair only" not in story.split("mmlu-pro-top10  ")[0], "the headline alone, where no screen replaces it"
    decisions = re.findall(
        r"^decided: mmlu-pro-top10: (\S+) is better than (\S+), family-wise at alpha = 0\.05, after [\d,]+ items$",
        story,
        re.MULTILINE,
    )
    assert ("calme-3.2-78b", "calme-3.1-78b") in decisions
    assert len(decisions) == len(set(decisions)) == 39


def test_equal_models_are_never_decided_in_the_family():
    text = rankwatch("demo", "--null", "--seconds", "1").stdout
    assert not re.search(r"^decided: .* family-wise", text, re.MULTILINE)
    assert "Equal models: every verdict is a false alarm" in text
    (alarms,) = re.findall(
        r"(\d+) false alarms? by naive peeking on 9 pairs of equal models, no false alarms? by", text
    )
    assert int(alarms) > 0


def test_a_year_of_one_model_is_shown_beside_what_windows_call():
    text = rankwatch("demo", "--drift", "--seconds", "1").stdout
    year = demo_year()
    (name, windows), rows = [*alarms_of_limits(year).items()][-1], text.splitlines()
    (row,) = [line for line in rows if line.startswith(name)]
    assert row.removeprefix(name).split()[0] == str(first_days(windows)[:CHANGE].sum())
    (ours,) = [line for line in rows if line.startswith("rankwatch  ")]
    assert ours.split()[1:3] == ["0", "0"]
    assert any(line.startswith(f"▼ {MODEL} ") for line in rows)
    assert "\x1b" not in text
