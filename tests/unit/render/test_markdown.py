"""Markdown, read back by a CommonMark parser: names are text, tables are whole."""

from markdown_it import MarkdownIt

from monitor.render.markdown import escape
from monitor.render.report import render_html, render_markdown
from tests.fold_log import FoldLog, event
from tests.html_tree import read_html
from tests.unit.render.hostile import NAMES, document_of, hostile_benchmark

PARSER = MarkdownIt("commonmark", {"linkify": False}).enable("table")


def tables(text):
    """Cells of every table, row by row, as the reader sees them."""
    parsed, row = [], None
    for token in PARSER.parse(text):
        if token.type == "table_open":
            parsed.append([])
        elif token.type == "tr_open":
            row = []
            parsed[-1].append(row)
        elif token.type == "inline" and row is not None:
            row.append("".join(child.content for child in token.children))
        elif token.type == "tr_close":
            row = None
    return parsed


def test_hostile_names_are_text():
    text = render_markdown([document_of(hostile_benchmark(), detail=True)])
    kinds = {child.type for token in PARSER.parse(text) for child in token.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}
    assert "html_block" not in {token.type for token in PARSER.parse(text)}
    ranking = tables(text)[0]
    assert [row[3].replace("\u200b", "") for row in ranking[1:]] == [
        m.model for m in document_of(hostile_benchmark()).report.models
    ]
    for table in tables(text):
        assert len({len(row) for row in table}) == 1


def test_nobody_is_notified_and_nothing_becomes_a_link():
    assert "@someone" not in escape("@someone")
    assert escape("org@model") == "org@model"
    assert "https://" not in escape("https://example.org")
    assert "www." not in escape("www.example.org")


def test_every_neighbour_has_its_sentence_checklist_and_opinions():
    whole = document_of(hostile_benchmark("plain"), detail=True)
    parsed = tables(render_markdown([whole]))
    assert [len(table) - 1 for table in parsed] == [
        len(NAMES),
        *[len(NAMES) - 1] * 1,
        len(parsed[2]) - 1,
        len(NAMES) - 1,
        len(NAMES) - 1,
    ]
    quantities = parsed[3][0][1:]
    assert [q.split(",")[0].split(" (")[0] for q in quantities] == [
        "Observed gap", "Paired test", "N", "Smallest gap that N detects", "q = N/N*", "N* interval", "Multiplicity", "Per-item raw",
    ]  # fmt: skip


def test_models_with_little_coverage_are_marked():
    text = render_markdown([document_of(hostile_benchmark("plain"), low_coverage=1.1)])
    assert f"{len(NAMES)} models with scores on less than" in text
    assert text.count("**100.0%**") == len(NAMES)
    assert "**100.0%**" not in render_markdown([document_of(hostile_benchmark("plain"))])


def test_the_result_comes_first_then_the_ranking_then_what_needs_attention():
    document = document_of(hostile_benchmark("plain"), low_coverage=1.1)
    low = f"{len(NAMES)} models with scores on less than"
    for text in (render_markdown([document]), render_html([document]).partition("<main>")[2]):
        words = ["First place", "of the ranking", "Ranking", low, "Not counted", "Neighbouring ranks"]
        assert words == sorted(words, key=text.index)


def test_nothing_read_is_said():
    assert render_markdown([]) == "No results: no score was read.\n"


def test_repeats_and_ended_runs_have_a_column_in_both_documents_where_it_says_something():
    log = FoldLog({"declare": "bench", "repeats": "all", "items": 20})
    log.send(*(event(k, m, k % 2, repeat=r) for k in range(12) for m in "ab" for r in range(1 + (m == "b") * (k % 3))))
    log.send({"ended": "bench", "model": "b"})
    document = document_of(log.bench)
    (head, *rows), *_ = tables(render_markdown([document]))
    assert head[-3:] == ["coverage", "repeats", "run"]
    assert sorted(row[3:4] + row[-2:] for row in rows) == [["a", "1", "open"], ["b", "2.0 (1 to 3)", "ended"]]
    table = next(read_html(render_html([document])).all("table"))
    assert [node.text for node in table.all("th")][-4:-2] == ["repeats", "run"]
    assert "2.0 (1 to 3)" in table.text
    plain = document_of(hostile_benchmark("plain"))
    assert tables(render_markdown([plain]))[0][0][-1] == "coverage"
    assert ">repeats<" not in render_html([plain])


def test_what_two_clusters_leave_open_is_a_dash():
    log = FoldLog({"declare": "bench", "items": 30})
    log.send(
        *(
            event(k, m, (k * 7 + len(m) * 3 + (k % 3) * (m == "a")) % 2, cluster=f"c{k % 2}")
            for k in range(30)
            for m in ("a", "bb", "ccc")
        )
    )
    document = document_of(log.bench, detail=True)
    for text in (render_markdown([document]), render_html([document])):
        assert "None" not in text
        assert "- to -" not in text
    (opinions,) = (table for table in tables(render_markdown([document])) if "One cluster omitted" in table[0])
    assert {row[opinions[0].index("One cluster omitted")] for row in opinions[1:]} == {"-"}


def test_q_and_rho_are_named_for_what_they_are():
    document = document_of(hostile_benchmark("plain"), detail=True)
    for text in (render_markdown([document]), render_html([document])):
        assert "large enough" not in text
        assert "q is computed from the observed gap, so it adds no evidence" in text
        assert "rho (phi)" in text


def test_a_benchmark_that_may_be_partial_is_marked_in_both_documents():
    log = FoldLog(event("1", "a", 1), event("1", "b", 0))
    for expected in (0, 1):
        document = document_of(log.bench)
        for text in (render_markdown([document]), render_html([document])):
            assert (
                text.count("This benchmark may be partial: records 20 to 29 of partition 0 of the log were lost")
                == expected
            )
        log.store.commit(log.partition.skip(30))
