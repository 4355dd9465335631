import io
import re
from itertools import pairwise

import pytest
from rich.cells import cell_len
from rich.console import Console

from monitor.render.document import Cell
from monitor.render.pairs import Extra
from monitor.render.terminal.live import LiveView
from monitor.render.terminal.plain import LiveStatus, PlainView, Progress
from monitor.view.values import TieBand, TieBands
from monitor.words.columns import PROCEDURES
from schemas.results.changes import Evidence, VerdictChange
from schemas.results.report import Report
from tests.report_factory import benchmark, model, pair, report


def change(sentence="alpha is better than beta", **fields):
    evidence = Evidence(n=500, b=40, c=20, gap=0.04, missing=0, log_e=5.2, log_threshold=5.19, resolution_ratio=1.1)
    values = {
        "id": "1-0",
        "benchmark": "mmlu-pro",
        "model_a": "alpha",
        "model_b": "beta",
        "epoch_a": 0,
        "epoch_b": 0,
        "kind": "decided",
        "procedure": "anytime_family",
        "before": None,
        "after": "a",
        "order_policy": "trusted",
        "mixture": "beta(1,1)",
        "statistics_version": 1,
        "evidence": evidence,
        "sentence": sentence,
    }
    return VerdictChange(**{**values, **fields})


def screen(view, width, height):
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None, highlight=False
    )
    console.print(view)
    return console.file.getvalue().rstrip("\n").split("\n")


def live(shown=None, status=None, changes=(), extra=None, ties=None, clock=lambda: 0.0):
    view = LiveView(Console(file=io.StringIO(), force_terminal=True), clock=clock)
    view.update(shown, status or LiveStatus(), extra, ties)
    for entry in changes:
        view.change(entry)
    return view


BIG = report(
    benchmark([pair(f"m{k}", f"m{k + 1}") for k in range(30)], [model(f"m{k}", k + 1) for k in range(31)]),
    benchmark([], [], benchmark="empty"),
    *(benchmark(benchmark=f"other-{k}") for k in range(20)),
)


@pytest.mark.parametrize("shown", [None, Report(benchmarks=[]), report(), BIG], ids=["none", "empty", "one", "many"])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 13, 24, 50])
@pytest.mark.parametrize("width", [1, 2, 10, 28, 50, 80, 120, 200])
def test_the_screen_fits_any_terminal(shown, width, height):
    status = LiveStatus(events=10**9, bytes_done=1, bytes_total=3, url="http://127.0.0.1:8080/metrics", note="a note")
    changes = [change(), change(kind="reversed"), change(kind="invalidated", after=None, sentence="[/red] " * 30)]
    extra = Extra("naive\nverdict", {("alpha", "beta"): Cell("none, 3")})
    lines = screen(live(shown, status, changes, extra), width, height)
    assert len(lines) <= height
    assert max(cell_len(line) for line in lines) <= width


def test_the_screen_shows_the_ranking_the_feed_and_the_status():
    status = LiveStatus(
        events=1234,
        events_per_second=567.8,
        rejected=2,
        caught_up=True,
        url="http://127.0.0.1:1/metrics",
        note="simulated",
    )
    ties = {"mmlu-pro": TieBands((TieBand((0, 1), 0),), 1, (), {})}
    text = "\n".join(screen(live(report(), status, [change()], ties=ties), 140, 30))
    assert re.search(r"╻ +1–2 .* alpha +73\.03 ", text)
    assert re.search(r"╹ +1–2 .* beta +73\.03", text)
    assert "models on one line are tied" in text
    assert "verdict changes" in text
    assert "● family       500  alpha > beta" in text
    assert "1,234 events, 568 events/s, 2 rejected, caught up, http://127.0.0.1:1/metrics, simulated" in text
    assert "73.03" in text


def test_the_feed_shows_the_latest_first_and_who_is_better():
    changes = [change(), change(after="b", procedure="anytime"), change("the gap has turned", kind="reversed")]
    lines = [line for line in screen(live(report(), changes=changes), 140, 30) if "●" in line or "▼" in line]
    feed = [line.split("  ")[-1] for line in lines if "alpha >" in line or "beta >" in line or "turned" in line]
    assert feed[0].endswith("▼ the gap has turned")
    assert feed[1:] == ["beta > alpha", "alpha > beta"]


def test_the_feed_is_that_of_the_benchmark_shown():
    text = "\n".join(screen(live(report(), changes=[change(benchmark="another")]), 140, 30))
    assert "none so far" in text


def test_benchmarks_without_room_are_counted():
    lines = screen(live(BIG), 120, 30)
    assert any("20 more benchmarks" in line for line in lines)
    assert any(line.startswith("mmlu-pro") for line in lines)


def test_ten_models_with_their_ties_fit_24_lines():
    names = [f"m{k}" for k in range(10)]
    ties = {"mmlu-pro": TieBands((TieBand(tuple(range(9)), 0), TieBand((9,), 0)), 1, (8,), {})}
    shown = report(benchmark([pair(*two) for two in pairwise(names)], [model(m, k + 1) for k, m in enumerate(names)]))
    lines = screen(live(shown, changes=[change()], ties=ties), 80, 24)
    assert len(lines) == 24
    assert sum(" m" in line and "73.03" in line for line in lines) == 10
    assert sum(line.startswith("───") for line in lines) == 1
    assert any("alpha > beta" in line for line in lines)
    assert not any("more models" in line for line in screen(live(shown, ties=ties), 80, 20))
    assert any("... 5 more models" in line for line in screen(live(shown, ties=ties), 80, 16))
    (bench,) = shown.benchmarks
    details = bench.result.change.replace(text=f"Enough items for 5 of 9 gaps, {'and ' * 10}no more.")
    result = bench.result.replace(change=details)
    whole = screen(live(report(bench.replace(result=result)), ties=ties), 80, 24)
    assert any(line.strip().endswith("no more.") for line in whole), (
        "what the result needs comes ahead of the room for changes"
    )
    assert sum(" m" in line and "73.03" in line for line in whole) == 10
    assert "however often you look." in " ".join(" ".join(whole).split()), "the assumption stays whole"


def test_a_further_column_chooses_the_pairs_it_speaks_of():
    shown = report(benchmark([pair("a", "b"), pair("a", "c", adjacent=False)]))
    alone = "\n".join(screen(live(shown), 120, 30))
    assert "a ~ " not in alone
    with_extra = "\n".join(screen(live(shown, extra=Extra("naive", {("a", "c"): Cell("none, 3")})), 120, 30))
    assert "a ~ c" in with_extra
    assert "none, 3" in with_extra
    assert "a ~ b" not in with_extra


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_the_headline_is_named_at_any_width(width):
    extra = Extra("naive\nverdict", {("a", "b"): Cell("none, 3")})
    text = "\n".join(screen(live(report(benchmark([pair("a", "b")])), extra=extra), width, 30))
    assert PROCEDURES["anytime_family"].short in text


def test_catching_up_shows_a_bar_with_rate_and_time_left():
    times = iter([0.0, 2.0])
    view = live(report(), LiveStatus(bytes_done=0, bytes_total=10_000_000), clock=lambda: next(times))
    view.update(report(), LiveStatus(bytes_done=4_000_000, bytes_total=10_000_000))
    text = "\n".join(screen(view, 120, 30))
    assert "40%, 2.0 MB/s, 0:03 left" in text
    assert "━" in text
    view.update(report(), LiveStatus(caught_up=True))
    assert "━" not in "\n".join(screen(view, 120, 30))


def test_the_live_screen_is_entered_and_left():
    out = io.StringIO()
    with LiveView(Console(file=out, force_terminal=True, width=40, height=6)) as view:
        view.update(report(), LiveStatus())
    assert out.getvalue().startswith("\x1b[?1049h")
    assert out.getvalue().endswith("\x1b[?25h") or "\x1b[?1049l" in out.getvalue()


def test_the_live_screen_is_left_after_an_error():
    out = io.StringIO()
    with (
        pytest.raises(RuntimeError, match="boom"),
        LiveView(Console(file=out, force_terminal=True, width=40, height=6)),
    ):
        raise RuntimeError("boom")
    assert "\x1b[?1049l" in out.getvalue()


def test_progress_starts_anew_when_the_position_goes_back():
    now = [0.0]
    progress = Progress(lambda: now[0])
    for time, done in [(0, 0), (1, 1000), (2, 0), (4, 600)]:
        now[0] = float(time)
        progress.see(LiveStatus(bytes_done=done, bytes_total=1200))
    assert progress.rate() == 300
    assert progress.sentence(LiveStatus(bytes_done=600, bytes_total=1200)) == "50%, 0.0 MB/s, 0:02 left"


@pytest.mark.parametrize(
    ("done", "total", "share"), [(None, 5, None), (5, None, None), (0, 0, None), (7, 5, 1.0), (1, 4, 0.25)]
)
def test_the_share_is_within_0_and_1(done, total, share):
    assert LiveStatus(bytes_done=done, bytes_total=total).share == share


def test_time_spent_waiting_for_more_is_not_counted():
    now = [0.0]
    progress = Progress(lambda: now[0])
    for time, done, caught_up in [(0, 0, False), (1, 1000, True), (100, 1000, False), (101, 1500, False)]:
        now[0] = float(time)
        progress.see(LiveStatus(bytes_done=done, bytes_total=2000, caught_up=caught_up))
    assert progress.rate() == 500


def test_plain_lines():
    lines = []
    now = [0.0]
    with PlainView(lines.append, clock=lambda: now[0], every=5) as view:
        view.update(report(), LiveStatus(events=1, bytes_done=0, bytes_total=100))
        now[0] = 4.9
        view.update(report(), LiveStatus(events=2, bytes_done=50, bytes_total=100))
        view.change(change(model_a="alpha\x1b[31m", alpha=0.05))
        view.change(change(procedure="anytime"))
        now[0] = 5.0
        view.update(report(), LiveStatus(events=3, events_per_second=2, bytes_done=50, bytes_total=100))
        now[0] = 10.0
        view.update(report(), LiveStatus(events=3, events_per_second=2, bytes_done=50, bytes_total=100))
        now[0] = 10.1
        view.update(report(), LiveStatus(events=4, caught_up=True, url="http://127.0.0.1:1/metrics"))
    assert lines == [
        "watching",
        "1 events, 0 events/s, 0 rejected, catching up (0%)",
        r"decided: mmlu-pro: alpha\x1b[31m is better than beta, family-wise at alpha = 0.05, after 500 items",
        "3 events, 2 events/s, 0 rejected, catching up (50%, 0.0 MB/s, 0:05 left)",
        "4 events, 0 events/s, 0 rejected, caught up, http://127.0.0.1:1/metrics",
    ]


def test_plain_lines_go_to_standard_output(capsys):
    with PlainView() as view:
        view.change(change())
    assert (
        capsys.readouterr().out
        == "watching\ndecided: mmlu-pro: alpha is better than beta, family-wise, after 500 items\n"
    )
