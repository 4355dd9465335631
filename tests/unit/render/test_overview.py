"""The answer on one screen of a terminal."""

import io
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from monitor.render.terminal import layout
from monitor.render.terminal.report import render_report
from monitor.view.build import report_view
from monitor.view.from_state import board_view
from monitor.view.ranking.standings import bands_of, tie_bands
from monitor.view.values import TieBand, TieBands
from monitor.words import results
from monitor.words.header import conflicts
from monitor.words.order import because
from schemas.results.reasons import Reason, fact
from schemas.results.report import OrderReport, Report
from tests.fold_log import FoldLog, packed
from tests.report_factory import benchmark, model, pair, report
from tests.unit.render.test_terminal import HOSTILE


def screen(shown, width=100, *, height=None, encoding="utf-8", **kwargs):
    raw = io.BytesIO()
    console = Console(
        file=io.TextIOWrapper(raw, encoding, write_through=True),
        width=width,
        height=height,
        force_terminal=height is not None,
        color_system=None,
        highlight=False,
    )
    render_report(shown, console, **kwargs)
    return raw.getvalue().decode(encoding)


def ladder(count, *, step=3, **fields):
    """Models of which every `step`-th neighbour is decided, and their ties."""
    names = [f"model-{k:02}" for k in range(count)]
    group = np.arange(count) // step
    better = group[:, None] < group
    ties = bands_of(better, np.zeros(count, bool))
    models = [
        model(name, k + 1, rank_low=int(1 + better[:, k].sum()), rank_high=int(count - better[k].sum()))
        for k, name in enumerate(names)
    ]
    pairs = [
        pair(
            a,
            b,
            **({"decided": {"anytime_family": "a"}, "status": "decided"} if better[k, k + 1] else {}),
            n=1000 + k,
            needs_items=2000.0,
        )
        for k, (a, b) in enumerate(pairwise(names))
    ]
    return report(benchmark(pairs, models, **fields)), {"mmlu-pro": ties}


def table_of(text):
    """The rows of models, without rules."""
    return [line for line in text.splitlines() if re.search("model-.* [0-9]+[.][0-9]{2}", line) and " ~ " not in line]


@pytest.mark.parametrize(("count", "height", "screens"), [(2, 24, 1), (10, 24, 1), (30, 24, 2)])
def test_ten_models_fit_one_screen_and_thirty_fit_two(count, height, screens):
    shown, ties = ladder(count)
    text = screen(shown, 80, height=height, ties=ties)
    lines = text.splitlines()
    assert len(lines) <= height * screens - 2  # the command above, and the prompt
    assert max(cell_len(line) for line in lines) <= 80
    assert len(table_of(text)) == count
    assert lines[1].startswith("○ First place is open")
    assert "Next: " in lines[-1]


def test_a_file_has_two_screens_and_verbose_omits_nothing():
    shown, ties = ladder(30)
    short, whole = screen(shown, ties=ties), screen(shown, ties=ties, verbose=True)
    assert len(short.splitlines()) <= 46
    assert len(table_of(short)) == 30
    assert "no tie crosses ───" not in short
    assert "no tie crosses ───" in whole
    assert "What would separate the ties" in whole
    assert not [line for line in short.splitlines() if line != line.rstrip()]


def test_results_of_one_model_say_how_to_compare_them():
    assert screen(report(benchmark([], [model("only", 1)]))).splitlines()[-1] == (
        "Next: add the results of another model, rankwatch report PATH PATH"
    )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200, 400])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_the_terminal(width, encoding):
    names = ["m" * 200, "好" * 90 if encoding == "utf-8" else "n" * 90, *HOSTILE, "a\x1b[2Jb"]
    models = [model(name, k + 1, coverage=0.5) for k, name in enumerate(names)]
    pairs = [pair(a, b) for a, b in pairwise(names)]
    ties = {"mmlu-pro": TieBands((TieBand(tuple(range(1, len(names))), 0),), 1, (), {0: (1, 2)})}
    text = screen(report(benchmark(pairs, models)), width, encoding=encoding, ties=ties, low_coverage=0.9)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    if width >= 80:
        assert all(name in text for name in HOSTILE)
        assert "a\\x1b[2Jb" in text


def test_bands_rules_and_ranges_are_drawn():
    shown, ties = ladder(6)
    lines = screen(shown, ties=ties).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("ties"))
    rows = lines[at + 1 : at + 8]
    assert [row[0] for row in rows] == ["╻", "┃", "╹", "─", "╻", "┃", "╹"]
    assert set(rows[3]) == {"─"}
    assert "1–3" in rows[0]
    assert "●──" in rows[0]
    assert "──●" in rows[2]
    assert "no tie crosses ───" in screen(shown, ties=ties)


def test_the_axis_of_scores_ends_at_100_percent():
    models = [model(f"model-{k}", k + 1, mean=1.0, mean_low=0.9, mean_high=1.0) for k in range(2)]
    shown = screen(report(benchmark([pair("model-0", "model-1")], models)), 120)
    assert re.search(r"score  90 +100 % +step", shown)


def test_an_ascii_terminal_gets_ascii_bands():
    shown, ties = ladder(6)
    lines = screen(shown, encoding="ascii", ties=ties).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("ties"))
    assert [row[0] for row in lines[at + 1 : at + 8]] == [",", "|", "'", "-", ",", "|", "'"]
    assert "1-3" in lines[at + 1]


def test_a_band_that_passes_a_model_is_dashed_there_and_a_model_tied_with_none_has_a_ring():
    better = np.zeros((4, 4), bool)
    better[:3, 3] = True
    better[0, 1] = better[1, 2] = True  # model-00 and model-02 are tied, past model-01
    models = [model(f"model-{k:02}", k + 1) for k in range(4)]
    text = screen(report(benchmark(models=models)), ties={"mmlu-pro": bands_of(better, np.zeros(4, bool))})
    first, second, third, fourth = (row[:2] for row in table_of(text))
    assert [first, second, third, fourth] == ["╻ ", "┊▪", "╹ ", "▪ "]
    assert "(┊ is not)" in text


def test_a_model_that_lacks_items_has_a_sign_and_marks_its_possible_ties():
    log = FoldLog({"declare": "bench", "items": 400})
    scores = np.zeros((400, 3))
    scores[:300, 0], scores[:150, 1], scores[:140, 2] = 1, 1, 1
    scores[200:, 1] = np.nan
    log.send(packed(scores, ["model-a", "model-b", "model-c"]))
    view = report_view(board_view(log.bench))
    ties = {"bench": tie_bands(view.table, 0.9)}
    text = screen(Report(benchmarks=[view.report]), ties=ties, low_coverage=0.9)
    assert [row[0] for row in table_of(text)] == ["◦", "▸", "◦"]
    assert "model-b 50%" in text
    assert "◦ may be tied with model-b (50% of the items)." in text


def with_missing(share, missing):
    """Three models far apart; the one in the middle has a share of the items."""
    log = FoldLog({"declare": "bench", "missing": missing})
    scores = np.zeros((400, 3))
    scores[:300, 0], scores[:200, 1], scores[300:350, 2] = 1, 1, 1
    scores[np.arange(400) % 100 >= 100 * share, 1] = np.nan
    log.send(packed(scores, ["model-a", "model-b", "model-c"]))
    view = report_view(board_view(log.bench), assert_complete=True)
    ties = {"bench": tie_bands(view.table, 0.9)}
    return screen(Report(benchmarks=[view.report]), ties=ties, low_coverage=0.9)


@pytest.mark.parametrize(
    ("share", "missing", "signs", "key"),
    [
        (0.5, "ignorable", "▪─▪─▪", ["▪ is tied with none; no tie crosses ───."]),
        (0.85, "worst", "▪─▸▪", ["▪ is tied with none; no tie crosses ───.", "▸ lacks items."]),
        (
            0.3,
            "worst",
            "◦─▸◦",
            [
                "▪ is tied with none (but see ◦); no tie crosses ─── (but see ◦).",
                "▸ lacks items; ◦ may be tied with model-b (30% of the items).",
            ],
        ),
    ],
)
def test_the_key_explains_the_signs_that_are_drawn_and_no_others(share, missing, signs, key):
    lines = with_missing(share, missing).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("ties"))
    end = lines.index("", at)
    assert "".join(line.strip()[0] for line in lines[at + 1 : end]) == signs
    first = next(k for k in range(end, len(lines)) if lines[k] == key[0])
    assert lines[first : first + len(key)] == key
    assert not lines[first + len(key)].startswith(("┃", "▪", "◦", "▸"))
    shown = set(re.findall(r"  ([●▼○◔≈!]) +[+−0-9]", "\n".join(lines[at:end])))
    explained = set(re.findall(r"(?:^ |; )([●▼○◔≈!]) (?:decided|tie|open|equivalent|held)", " ".join(lines[end:first])))
    assert shown == explained


def test_too_many_ties_are_not_drawn_and_the_screen_says_so():
    shown, _ = ladder(4)
    text = screen(shown, ties={"mmlu-pro": TieBands(None, 0, (), {})})
    assert "Too many ties overlap to be drawn" in text
    assert "ties  " not in text


def test_a_limit_says_that_verdicts_are_over_all_models():
    shown, ties = ladder(30)
    text = screen(shown, ties=ties, limit=10)
    assert len(table_of(text)) == 10
    assert "The first 10 of 30 models; ranks and verdicts are over all of them" in text


def test_each_step_says_what_it_would_take():
    names = [f"model-{k:02}" for k in range(8)]
    fields = [
        {"decided": {"anytime_family": "a"}, "status": "decided", "needs_items": None},
        {"decided": {"anytime_family": "b"}, "status": "decided", "gap": -0.01, "needs_items": None},
        {"needs_items": 1_234.0, "status": "exhausted"},
        {"needs_items": 5e6, "status": "collecting"},
        {"needs_items": 70.0, "status": "exhausted", "facts": [fact(Reason.EXHAUSTED, missing=3)]},
        {"status": "held", "needs_items": None},
        {"status": "equivalent", "needs_items": None},
    ]
    pairs = [pair(a, b, **each) for a, b, each in zip(names, names[1:], fields, strict=False)]
    text = screen(report(benchmark(pairs, [model(name, k + 1) for k, name in enumerate(names)])), 120)
    words = [
        ("●", "decided"),
        ("▼", "decided against"),
        ("○", "tie", "needs 1,200"),
        ("◔", "open", "needs > 1 million"),
        ("◔", "open", "items missing"),
        ("!", "held"),
        ("≈", "equivalent"),
    ]
    rows = table_of(text)
    assert all(word in row for parts, row in zip(words, rows, strict=False) for word in parts)
    assert "−1.00" in rows[1]


def test_what_would_separate_the_ties_lists_the_nearest_first():
    names = [f"model-{k:02}" for k in range(14)]
    pairs = [pair(a, b, needs_items=1000.0 * (20 - k), status="exhausted") for k, (a, b) in enumerate(pairwise(names))]
    text = screen(report(benchmark(pairs, [model(name, k + 1) for k, name in enumerate(names)])))
    listed = [line.split("~")[0].split() for line in text.splitlines() if " ~ " in line]
    assert [words[:3] for words in listed] == [[str(k), "v", str(k + 1)] for k in range(13, 5, -1)]
    assert "5 further ties: 16,000 or more items each" in text
    top = screen(report(benchmark(pairs, [model(name, k + 1) for k, name in enumerate(names)])), limit=11)
    assert " v 12 " not in top


@pytest.mark.parametrize(
    "facts",
    [
        [],
        [fact(Reason.ASSERTED, assumptions=[{"code": "items_read", "items": 12}])],
    ],
)
def test_what_was_assumed_is_on_the_screen_once(facts):
    declared = OrderReport(policy="completion", suspect=False, reason=because(facts), facts=facts)
    shown = report(benchmark(order=declared, assumption="the declared items are all"))
    text = " ".join(screen(shown, 400).split())
    assert text.count("Assumes that the declared items are all. At most 5 % chance") == 1
    assert "among all 9 pairs, however often you look." in text
    assert "beta(1,1)" not in text


def test_a_suspicion_that_changes_no_verdict_is_one_short_line():
    finding = {"model": "alpha", "statistic": "item position", "items": 8, "observed": 0.9, "expected": 0.0, "p": 1e-9}
    facts = [fact(Reason.ASSERTED, assumptions=[]), fact(Reason.SUSPECT_ORDER, harmless=True, **finding)]
    order = OrderReport(policy="completion", suspect=True, reason="asserted that x; long story", facts=facts)
    shown = report(benchmark(order=order))
    text = screen(shown)
    assert "! The arrival order is suspect; no verdict here depends on it." in text
    assert "long story" not in text
    assert "long story" in screen(shown, verbose=True)


def test_conflicts_are_on_the_screen():
    shown = benchmark(conflicts=2, conflicts_by_model={"alpha": 2})
    text = " ".join(screen(report(shown), 200).split())
    assert f"! {conflicts(shown, advice=False)}" in text


def test_a_held_benchmark_says_why_once():
    log = FoldLog()
    log.send(packed(np.eye(20)[:, :3], "abc"))
    text = " ".join(screen(Report(benchmarks=[report_view(board_view(log.bench)).report]), 400).split())
    held = [fact(Reason.NO_ORDER)]
    assert text.count(results.line([fact(Reason.HELD_RESULT, because=held)])) == 1
    assert because(held) not in text
    assert "false verdict" not in text


@pytest.mark.parametrize(("columns", "expected"), [("77", 77), ("x", 100), ("0", 100), ("", 100)])
def test_a_pipe_is_as_wide_as_columns_says(monkeypatch, columns, expected):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.__stderr__", None)
    monkeypatch.setattr("sys.__stdin__", None)
    assert layout._pipe_width() == expected


def test_a_pipe_is_as_wide_as_the_terminal_of_the_other_streams(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((83, 20)))
    with Path(os.devnull).open() as stream:
        monkeypatch.setattr("sys.__stderr__", stream)
        assert layout._pipe_width() == 83
