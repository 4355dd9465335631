import io
import json
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style

from monitor.render import signs
from monitor.render.document import Cell
from monitor.render.pairs import Extra
from monitor.render.terminal.layout import output_console, shorten
from monitor.render.terminal.report import render_report
from monitor.words.columns import PROCEDURES
from schemas.results.reasons import Reason, fact
from schemas.results.report import (
    RESOLUTION_PROCEDURES,
    FamilyReport,
    OrderReport,
    RepeatsReport,
    Report,
    Status,
    Summary,
)
from tests.report_factory import benchmark, model, pair, report

WIDTHS = (100, 120, 160, 240)
HOSTILE = ["[red]x[/red]", "[link=x:y]z[/link]", "[/]", ":smile:", "[bold", "\\[a]"]


def rendered(shown, width=160, *, colour=False, encoding="utf-8", **kwargs):
    raw = io.BytesIO()
    # A style keeps the codes of the first terminal that showed it: another test may have had one of 16 colours.
    Style.parse.cache_clear()
    Style._add.cache_clear()
    console = Console(
        file=io.TextIOWrapper(raw, encoding, write_through=True),
        width=width,
        force_terminal=colour,
        color_system="256" if colour else None,
        highlight=False,
    )
    render_report(shown, console, **{"verbose": True, **kwargs})
    return raw.getvalue().decode(encoding)


def rows(text, name):
    return [line for line in text.splitlines() if line.startswith(name)]


@pytest.mark.parametrize("width", [20, 60, *WIDTHS])
def test_no_line_is_wider_than_the_terminal(width):
    pairs = [pair("m" * 200, "好" * 90), pair(), pair("a", "b", status="held")]
    text = rendered(report(benchmark(pairs, [model("m" * 200), model("好" * 90, 2)])), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


REPEATED = model("alpha", repeats=RepeatsReport(min=1, mean=3.24, max=96), run_ended=False)


@pytest.mark.parametrize(
    ("models", "titles", "cells"),
    [
        ([model("alpha"), model("beta", 2)], [], []),
        ([REPEATED, model("beta", 2, run_ended=False)], ["repeats"], ["3.2 (1 to 96)"]),
        ([model("alpha", run_ended=False), model("beta", 2)], ["run"], ["open"]),
        ([REPEATED, model("beta", 2), model("new", 3, repeats=None)], ["repeats", "run"], ["3.2 (1 to 96)", "open"]),
    ],
)
def test_repeats_and_ended_runs_have_a_column_where_it_says_something(models, titles, cells):
    lines = rendered(report(benchmark(models=models))).splitlines()
    head = next(line for line in lines if line.startswith("rank "))
    assert head.split("coverage")[1].split() == titles
    row = next(line for line in lines if re.match(r" +1 +alpha.*%", line))
    assert " ".join(row.split("%")[1].split()) == " ".join(cells)
    narrow = rendered(report(benchmark(models=models)), 60)
    assert "3.2 (1 to 96)" not in narrow
    assert "alpha" in narrow


@pytest.mark.parametrize("width", WIDTHS)
def test_the_headline_evidence_and_status_are_never_left_out(width):
    decided = pair("alpha", "beta", decided={"anytime_family": "a"}, status="decided", log_e=25.66)
    row = rows(rendered(report(benchmark([decided])), width), "alpha > beta")[0]
    assert "25.66" in row
    assert "+1.88" in row
    assert "2.08" in row
    assert "● decided" in row


def test_wider_terminals_show_more_columns():
    titles = [rendered(report(), width) for width in WIDTHS]
    shown = [{word for word in ("interval\n", "N*", "b/c", "fixed") if word in t.replace("   ", "\n")} for t in titles]
    assert shown[0] <= shown[1] <= shown[2] <= shown[3]
    shorts = [each.short for each in PROCEDURES.values()] + [
        each.short for each in PROCEDURES.values() if each.resolves
    ]
    assert " ".join(shorts) in " ".join(titles[3].split())
    assert "[+0.16, +3.59]" in titles[1]
    assert "1,680/1,454" in titles[2]
    assert "5,787" in titles[2]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("width", [100, 160])
def test_names_are_shown_literally(name, width):
    shown = report(
        benchmark(
            [pair(name, "other", reason=f"{name} is ahead")],
            [model(name), model("other", 2)],
            benchmark=name,
            order=OrderReport(policy="trusted", suspect=True, reason=f"{name} looks sorted"),
        )
    )
    text = rendered(shown, width)
    assert rows(text, f"{name}  12,032 items")
    assert rows(text, f"{name} ~ other")
    assert f"  {name}" in next(
        line for line in text.splitlines() if line.lstrip().startswith("1 ") and " steps " not in line
    )
    assert f"{name} is ahead" in text
    assert f"{name} looks sorted" in text


def test_control_characters_reach_the_terminal_escaped():
    text = rendered(report(benchmark([pair("a\x1b[2Jb", "c\u202ed", reason="x\x07y")])), 160)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert r"a\x1b[2Jb ~ c\u202ed" in text


def test_a_pipe_gets_no_escape_codes_and_no_trailing_spaces_in_tables(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    console = output_console()
    assert console.width == 100
    render_report(report(), console, with_pairs=True)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines() if "alpha ~ beta" in line)


def test_no_color_keeps_every_glyph(monkeypatch):
    pairs = [pair(decided={"anytime_family": "a", "anytime": "b"}, status="decided"), pair("x", "y", status="held")]
    with_colour = rendered(report(benchmark(pairs)), colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    without = rendered(report(benchmark(pairs)), colour=True)
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
    assert coloured.search(with_colour)
    assert not coloured.search(without)
    plain = re.compile(r"\x1b\[[0-9;]*m")
    assert plain.sub("", without) == plain.sub("", with_colour)
    assert {"●", "▼", "◔"} & set(without) >= {"●", "▼"}


def test_the_colours_are_the_products():
    pairs = [
        pair("won", "w", decided={"anytime_family": "a"}, status="decided"),
        pair("lost", "l", decided={"anytime_family": "b"}, status="decided"),
        pair("open", "o"),
    ]
    text = rendered(report(benchmark(pairs)), 160, colour=True)
    lines = {
        name: next(line for line in text.splitlines() if line.startswith(name) and "+1.88" in line)
        for name in ("won", "lost", "open")
    }
    assert "\x1b[38;5;33m●" in lines["won"]
    assert "\x1b[38;5;208m▼" in lines["lost"]
    assert "\x1b[38;5;244m○" in lines["open"]


STATUSES = {
    "superseded": "◌",
    "invalidated": "✗",
    "decided": "●",
    "equivalent": "≈",
    "held": "!",
    "exhausted": "○",
    "collecting": "○",
}


def test_the_procedures_that_resolve_pairs_are_those_of_the_report():
    assert {key for key, each in PROCEDURES.items() if each.resolves} == set(RESOLUTION_PROCEDURES)


def test_every_status_is_in_the_list_below():
    assert set(STATUSES) == set(Status.__args__)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("status", "glyph"), STATUSES.items())
def test_each_status_has_its_glyph_and_its_word(status, glyph, width):
    shown = pair(
        status=status, reason=f"because {status}", decided={"anytime_family": "a"} if status == "decided" else None
    )
    text = rendered(report(benchmark([shown])), width)
    assert f"{glyph} {status}" in text
    assert f"because {status}" in text


def test_a_verdict_for_the_lower_ranked_is_said_to_be_for_b():
    text = rendered(report(benchmark([pair(decided={"anytime_family": "b"}, status="decided")])))
    assert rows(text, "alpha < beta")
    assert "▼ decided for B" in text


def test_an_ascii_terminal_gets_ascii():
    pairs = [pair(decided={"anytime_family": "a"}, status="decided"), pair("m" * 100, "n" * 100, status="held")]
    text = rendered(report(benchmark(pairs)), 100, encoding="ascii")
    assert "* decided" in text
    assert "! held" in text


def test_a_name_that_the_encoding_lacks_is_escaped_not_fatal(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(report(benchmark([pair("日本", "b")])).as_json().decode())
    code = (
        "import sys, msgspec; from schemas.results.report import Report;"
        "from monitor.render.terminal.layout import output_console; from monitor.render.terminal.report import render_report;"
        "render_report(msgspec.json.decode(open(sys.argv[1]).read(), type=Report), output_console(), with_pairs=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii"},
        check=True,
        timeout=60,
    )
    assert b"\\u65e5\\u672c ~ b" in done.stdout


def test_numbers():
    values = [
        pair(
            "big", "x", required_n=2727127.0, resolution_ratio=0.0044, log_e=float("-inf"), gap_low=None, gap_high=None
        ),
        pair("none", "x", required_n=float("inf"), resolution_ratio=0.0, gap=0.0),
        pair("graded", "x", required_n=None, resolution_ratio=None, log_e=None).replace(b=None, c=None),
    ]
    text = rendered(report(benchmark(values)), 240)
    big, none, graded = (rows(text, name)[0] for name in ("big", "none", "graded"))
    assert ">= 10^6" in big
    assert "-inf" in big
    assert ">= 10^6" in none
    assert "0.00" in none
    assert "+0.00" not in none
    assert graded.split()[:7] == ["graded", "~", "x", "○", "collecting", "12,032", "-"]


def test_numbers_are_right_aligned():
    text = rendered(report(benchmark([pair("a", "b", log_e=25.66), pair("c", "d", log_e=-3.1)])), 160)
    first, second = rows(text, "a ~ b")[0], rows(text, "c ~ d")[0]
    assert first.index("25.66") + 5 == second.index("-3.10") + 5


def test_a_procedure_that_was_not_run_is_not_called_undecided():
    not_run = pair(sd=None, log_e=None, p_clustered=None)
    outside = pair(gap_family_low=None, gap_family_high=None)
    run = pair(p_clustered=0.2)
    graded = pair(p_chi2=None, p_exact=None, p_mid=None)
    glyphs = signs.UNICODE
    assert signs.decision_glyph(graded, "fixed_n", glyphs)[0] == glyphs.undecided
    for procedure in PROCEDURES:
        assert signs.decision_glyph(not_run, procedure, glyphs)[0] == glyphs.missing
        assert signs.decision_glyph(run, procedure, glyphs)[0] == glyphs.undecided
    alone = {
        procedure for procedure in PROCEDURES if signs.decision_glyph(outside, procedure, glyphs)[0] != glyphs.missing
    }
    assert alone == {"fixed_n", "anytime"}
    assert signs.resolution_glyph(run, "clustered", glyphs)[0] == glyphs.missing
    assert signs.resolution_glyph(run, "anytime", glyphs)[0] == glyphs.undecided


def test_decided_and_resolved_are_counted_apart():
    pairs = [
        pair("a", "b", decided={"anytime_family": "a", "anytime": "a"}, status="decided"),
        pair("c", "d", resolved={"fixed_n": False}),
    ]
    lines = rendered(report(benchmark(pairs))).splitlines()
    counts = {
        key: next(line for line in lines if line.startswith(f"{each.name}  "))
        for key, each in PROCEDURES.items()
        if key != "clustered"
    }
    undecided = {"anytime_family": "1", "anytime": "1", "e_bh": "2", "fixed_n": "2"}
    unresolved = {"anytime_family": "-", "anytime": "2", "fixed_n": "1", "bonferroni": "0"}
    assert {key: counts[key].split()[-2] for key in undecided} == undecided
    assert {key: counts[key].split()[-1] for key in unresolved} == unresolved
    assert lines[1:3] == [
        "○ First place is open: any of the 2 models may hold it.",
        "1 of 2 steps of the ranking is real, 1 is open.",
    ]


def test_the_result_of_a_long_report_is_printed_at_the_end_too():
    lines = rendered(report(benchmark(models=[model(f"m{k}", k + 1) for k in range(11)]))).splitlines()
    assert lines[-3:] == lines[1:4]


def test_a_count_over_neighbours_alone_is_named_as_such():
    counts = Summary(
        pairs=1,
        undecided={"anytime_family": 1, "bonferroni_adjacent": 1},
        unresolved={"bonferroni_adjacent": 0},
    )
    lines = rendered(report(benchmark(summary=counts))).splitlines()
    (row,) = (line for line in lines if line.startswith(signs.SUMMARY_ONLY["bonferroni_adjacent"]))
    assert row.split()[-2:] == ["1", "0"]


def test_the_header_says_what_is_asserted_and_at_which_level():
    text = rendered(report(benchmark(rejected=3, conflicts=2)))
    assert "12,032 items, 2 models, 24,064 events, 2 conflicts, 3 rejected" in text
    assert (
        "order: trusted (asserted that neither the arrival order nor what is skipped depends on outcomes or clusters)"
        in text
    )
    assert "family: capacity, 9 pairs; alpha 0.05, power 0.8, mixture beta(1,1)" in text
    assert "ln e >= 3.00 for a pair on its own, >= 5.19 in the family" in text


def test_a_benchmark_that_may_be_partial_is_marked_above_everything_else():
    gap = "records 0 to 9 of partition 0 of the log were lost before they were folded, so scores or declarations may be missing"
    lines = rendered(report(benchmark(partial=gap))).splitlines()
    assert lines[1] == f"may be partial: {gap}"
    assert "may be partial" not in rendered(report(benchmark()))


def test_a_family_that_grows_has_no_one_threshold():
    text = rendered(report(benchmark(family=FamilyReport(policy="spending", size=45))))
    assert "for a pair on its own, its own threshold in the family" in text
    assert "5.19" not in text


@pytest.mark.parametrize("policy", ["completion", "committed", "trusted", "none"])
def test_each_order_policy_is_explained(policy):
    text = rendered(report(benchmark(order=OrderReport(policy=policy, suspect=False, reason="because of this"))))
    assert f"order: {policy} (" in text
    assert "order: because of this" in text


def test_asserted_completeness_is_one_line_and_nothing_calls_it_declared():
    asserted = "asserted that the 12,032 items read are the whole benchmark"
    facts = [fact(Reason.ASSERTED, assumptions=[{"code": "items_read", "items": 12_032}])]
    order = OrderReport(policy="completion", suspect=False, reason=asserted, facts=facts)
    text = rendered(report(benchmark(order=order)))
    assert f"order: completion ({asserted})" in text
    assert text.count("order:") == 1
    assert "declared" not in text


def test_long_tables_say_what_was_left_out_and_how_to_see_it():
    pairs = [pair(f"m{k:03}", f"m{k + 1:03}") for k in range(150)]
    text = rendered(report(benchmark(pairs, [model(f"m{k:03}", k + 1) for k in range(150)])), limit=40)
    assert "110 more models are not shown; --format json" in text
    assert "110 more pairs are not shown; --format json" in text
    assert rows(text, "m039 ~ m040")
    assert not rows(text, "m040 ~ m041")


def test_every_benchmark_is_shown():
    text = rendered(
        report(benchmark(benchmark="first"), benchmark(benchmark="second"), benchmark([], [], benchmark="third"))
    )
    assert [name for name in ("first", "second", "third") if rows(text, name)] == ["first", "second", "third"]
    assert "No pair shares an item yet." in text
    assert "No results: no score was read." in rendered(Report(benchmarks=[]))


def test_many_benchmarks_are_cut_with_a_count():
    text = rendered(report(*(benchmark(benchmark=f"bench-{k}") for k in range(12))), limit=5)
    assert rows(text, "bench-4")
    assert not rows(text, "bench-5")
    assert "7 more benchmarks are not shown; --format json" in text


@pytest.mark.parametrize("width", [100, 120, 160])
def test_an_extra_column_is_found_by_names_in_name_order(width):
    extra = Extra("naive\nverdict", {("a", "z"): Cell("said a, 3")})
    text = rendered(report(benchmark([pair("z", "a"), pair("x", "y")])), width, extra=extra)
    assert "said a, 3" in rows(text, "z ~ a")[0]
    assert "said" not in rows(text, "x ~ y")[0]


@pytest.mark.parametrize("room", range(1, 30))
@pytest.mark.parametrize("name", ["plain-name-of-a-model", "好好好好好好好好", "x"])
def test_a_shortened_name_keeps_its_ends_and_its_room(name, room):
    short = shorten(name, room)
    assert cell_len(short) <= room
    assert cell_len(name) > room or short == name
    if room >= 6:
        assert (short[0], short[-1]) == (name[0], name[-1])


def test_rich_is_not_imported_by_what_plain_output_needs():
    code = "import sys, json, monitor.render.terminal.plain; print(json.dumps([m for m in sys.modules if m.split('.')[0] == 'rich']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == []
