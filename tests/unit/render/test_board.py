"""Badges, tables with ties, and the site of files: hostile names in every format."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from monitor.render.board import tables
from monitor.render.board.badges import (
    badge,
    board_badge,
    claim_badge,
    rank_badge,
    resolved_badge,
    settled_badge,
    tie_badge,
)
from monitor.render.board.exporters import Context
from monitor.render.board.site import file_name, site
from monitor.render.board.standings import Board, Standing, board_of
from monitor.render.signs import UNICODE, result_sign
from monitor.view.build import report_view
from monitor.view.from_state import board_view
from monitor.words import header
from monitor.words.header import assumed
from tests.fold_log import FoldLog, packed
from tests.html_tree import read_html

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b*c_d`e`",
    "\\input{/etc/passwd} & $x^2$ 50% #1 ~ {}",
    '=HYPERLINK("http://x")',
    "@everyone [x](javascript:y)",
    "../../etc/passwd",
    "a\x1b[2Jb\nc\u202ed",
    "模型 é",
    "]]></svg>",
]

PRINTABLE = [name for name in HOSTILE if "\x1b" not in name]
"""Names that events may have; one with control characters is refused on input."""


def board(names, *, right=None, benchmark="bench", **spec):
    """A board of complete files; the first of three models by default is better than the others."""
    log = FoldLog(*([{"declare": benchmark, **spec}] if spec else []))
    scores = np.zeros((200, len(names)))
    for k, share in enumerate(right or [0.95, *np.linspace(0.5, 0.45, len(names) - 1)]):
        scores[: int(200 * share), k] = 1
    log.send(packed(np.random.default_rng(0).permuted(scores, axis=0), names, benchmark=benchmark))
    return board_of(report_view(board_view(log[benchmark]), assert_complete=not spec), 0.9)


def read(svg):
    """The class of a badge, and what it says."""
    return re.search('<rect class="(.*?)"', svg)[1], unescape(re.search("<title>(.*)</title>", svg)[1])


def of(shown):
    return shown.document.report, shown.standings


def test_ranks_and_ties_are_those_of_the_report():
    shown = board(["best", "x", "y"])
    report, places = of(shown)
    assert [(each.place, each.tie, each.ties) for each in places] == [
        ("rank 1 of 3", "tied with none", ()),
        ("rank 2–3 of 3", "ties with 1 other", ("y",)),
        ("rank 2–3 of 3", "ties with 1 other", ("x",)),
    ]
    assert shown.document.ranking().rules == {0}
    assert places[1].sentence == f"x: 50.00 % on bench, rank 2 to 3 of 3; tied with y. {assumed(report)}"
    assert report.result.decided.yes


def test_lines_are_explained_where_a_model_lacks_items():
    log = FoldLog()
    scores = np.zeros((400, 3))
    scores[:300, 0], scores[:150, 1], scores[260:, 2] = 1, 1, 1
    scores[200:, 1] = np.nan
    log.send(packed(scores, ["a", "b_", "c"]))
    shown = board_of(report_view(board_view(log.bench), assert_complete=True), 0.9)
    assert list(shown.document.ties.lacking) == [1]
    note = "No tie crosses a line between two rows, but those of b_ (50% of the items)."
    assert note in read_html(tables.as_html(shown)).text
    assert note in tables.as_latex(shown)
    assert "No tie crosses" not in tables.as_html(board(["m", "n"], right=[0.5, 0.5]))
    assert read(rank_badge(shown.report, shown.standings[2]))[0] == "no"


def test_many_ties_are_counted_in_the_sentence():
    _, places = of(board([f"m{k}" for k in range(8)], right=[0.5] * 8))
    assert "tied with m1, m2, m3 and 4 more models" in places[0].sentence
    assert places[0].tie == "ties with 7 others"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("state", ["yes", "no", "held", "withdrawn"])
def test_badges_are_xml_that_shows_names_and_runs_nothing(name, state):
    tree = ET.fromstring(badge(name, name, state))
    assert {each.tag.rpartition("}")[2] for each in tree.iter()} == {"svg", "title", "style", "rect", "path", "text"}
    assert not [key for each in tree.iter() for key in each.attrib if key.startswith("on") or "href" in key]
    texts = [each.text for each in tree.iter() if each.tag.endswith("text")]
    assert len(texts) == 2
    assert all("\n" not in text and "\x1b" not in text for text in texts)
    if name.isprintable():
        assert texts[0] == name


def test_badges_follow_the_verdict():
    report, places = of(board(["best", "x", "y"]))
    assert read(rank_badge(report, places[0])) == ("yes", "bench: rank 1 of 3")
    assert read(rank_badge(report, places[1])) == ("no", "bench: rank 2–3 of 3")
    assert read(tie_badge(report, places[1])) == ("no", "bench: ties with 1 other")
    assert read(board_badge(report)) == ("yes", "bench: 1 of 2 steps decided")
    assert read(settled_badge(report)) == ("yes", "bench: best leads")
    assert read(resolved_badge(report)) == ("yes", "bench: large enough for 1 of 2 gaps")
    first, second = (read(claim_badge(report, pair)) for pair in report.pairs)
    assert first == ("yes", "best > x: decided")
    assert second == ("no", "x > y: settled, undecided")


def test_badges_say_why_there_is_no_answer():
    scores = np.zeros((400, 3))
    scores[:380, 0], scores[:180, 1], scores[:170, 2] = 1, 1, 1
    scores = np.random.default_rng(0).permutation(scores)

    def shown(*records, **spec):
        log = FoldLog({"declare": "bench", **spec})
        log.send(packed(scores, "abc"), *records)
        report = report_view(board_view(log.bench)).report
        first = Standing(report.models[0], 3, (), "")
        drawn = (board_badge(report), rank_badge(report, first), claim_badge(report, report.pairs[0]))
        return [read(each) for each in drawn], report

    held, report = shown(items=400, order={"policy": "none"})
    assert held == [("held", f"{who}: held: order not declared") for who in ("bench", "bench", "a > b")]
    assert read(settled_badge(report)) == ("no", "bench: the lead is open")
    live, _ = shown(items=440, order={"policy": "completion"})
    assert live == [
        ("yes", "bench: 1 of 2 steps, 90 % scored"),
        ("yes", "bench: rank 1 of 3"),
        ("yes", "a > b: decided"),
    ]
    early, _ = shown(items=4000, order={"policy": "completion"})
    assert early == [
        ("no", "bench: live: 10 % scored"),
        ("no", "bench: rank 1–3 of 3"),
        ("no", "a > b: undecided"),
    ]
    withdrawn, _ = shown(
        packed(np.ones((9, 3)), "abc", items=range(400, 409)), items=400, order={"policy": "completion"}
    )
    assert withdrawn == [("held", f"{who}: withdrawn") for who in ("bench", "bench", "a > b")]


def test_csv_has_each_name_and_no_formula():
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(board(PRINTABLE)))))
    assert {row["model"].lstrip("'") for row in rows} == set(PRINTABLE)
    assert not [value for row in rows for value in row.values() if value.lstrip().startswith(("=", "+", "@"))]
    assert all(len(row["ties"].split("\n")) == int(row["ties_with"]) for row in rows if int(row["ties_with"]))


def test_json_holds_names_unchanged():
    answer = json.loads(tables.as_json(board(PRINTABLE)))
    assert {row["model"] for row in answer["models"]} == set(PRINTABLE)
    assert {"best", "steps"} <= set(answer["result"]) <= {"best", "steps", "details"}
    assert {name for row in answer["models"] for name in row["ties"]} <= set(PRINTABLE)


def test_markdown_has_one_row_a_model_and_no_markup_of_names():
    text = tables.as_markdown(board(PRINTABLE))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(PRINTABLE)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 8 for row in rows)
    assert not re.search(r"(?<!\\)<script|(?<!\\)\[x\]|(?<!\\)`|@everyone", text)


def test_latex_has_no_command_of_names():
    text = tables.as_latex(board(PRINTABLE))
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    written = (
        "begin end hline textbackslash textasciitilde textasciicircum textless textgreater textbar char textasciigrave"
    )
    assert set(re.findall(r"\\([A-Za-z]+)", "\n".join(lines))) <= {*written.split(), "textquotesingle"}
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == 1 + len(PRINTABLE)
    assert all(len(re.findall(r"(?<!\\)&", row)) == 6 for row in rows)
    assert not re.search(r"(?<!\\)[%$#]", "\n".join(rows).replace("$-$", ""))
    assert lines.count(r"\hline") >= 3


def test_one_declaration_heads_every_table_of_the_ranking():
    shown = board(["best", "x", "y"])
    heads = [column.head for column in shown.document.ranking().of(tables._KEYS).columns.values()]
    assert heads == [shown.report.heads[key] for key in tables._KEYS]
    (row,) = (line for line in tables.as_markdown(shown).splitlines() if line.startswith("| ties"))
    assert row == f"| {' | '.join(heads)} |"
    assert " & ".join(map(tables.latex, heads)) in tables.as_latex(shown)
    assert [node.text for node in next(read_html(tables.as_html(shown)).all("tr")).all("th")] == heads


def test_a_page_to_embed_shows_names_as_text():
    tree = read_html(tables.as_html(board(PRINTABLE)))
    assert not list(tree.all("script"))
    assert not list(tree.all("img"))
    assert len(list(tree.all("tr"))) == 1 + len(PRINTABLE)


def test_a_page_to_embed_draws_each_tie_as_a_line_with_its_members():
    shown = board(["best", "x", "y"])
    tree = read_html(tables.as_html(shown))
    assert shown.document.ties.lanes == 1
    kinds = [
        [node.attributes["class"] for kind in ("rect", "circle") for node in next(row.all("td")).all(kind)]
        for row in list(tree.all("tr"))[1:]
    ]
    assert kinds == [["alone"], ["band dot"], ["band dot"]]
    lines = dict(header.result(shown.report))
    assert list(lines) == ["best", "steps", "details"]
    for line in lines.values():
        assert line.text in tree.text
        assert line.text in tables.as_markdown(shown)
    assert f"- {result_sign('best', lines['best'], UNICODE)[0]} {lines['best'].text}" in tables.as_markdown(shown)
    many = board([f"m{k}" for k in range(8)], right=[0.5] * 8)
    undrawn = replace(many.document, ties=replace(many.document.ties, bands=None, lanes=0))
    text = tables.as_html(Board(undrawn, many.standings))
    assert '<circle class="band' not in text
    assert "1, 3–8" in text


def test_two_names_never_share_a_file_and_none_leaves_its_folder():
    names = [
        *HOSTILE,
        "A",
        "a",
        "a.",
        "..",
        ".",
        "",
        "/",
        "index.html",
        "export.json",
        "x" * 300,
        "x" * 301,
        "CON",
        "é",
        "e",
    ]
    files = [file_name(name) for name in names]
    assert len({name.lower() for name in files}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", name) and len(name) < 120 for name in files)
    assert not {"index.html", "export.json"} & set(files)


def test_a_site_lists_its_files_and_links_only_to_them():
    boards = [board(PRINTABLE, benchmark="<b>"), board(["best", "x", "y"])]
    files = dict(site(boards, Context()))
    first = files["index.html"]
    assert set(re.findall(r'(?:href|src)="([^"]+)"', first)) <= files.keys()
    assert "<script" not in "".join(text for name, text in files.items() if name.endswith(".html"))
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", first)
    assert {name for name in files if name.startswith("bench/") and "badges" not in name} == {
        f"bench/{name}" for name in ("index.html", "ties.csv", "ties.json", "ties.md", "table.tex", "embed.html")
    }
