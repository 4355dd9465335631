"""Every view hands out what it shows: rows as CSV, answers as JSON, the figure as SVG and PNG."""

import csv
import json
import struct
from xml.etree import ElementTree as ET

import pytest

from tests.browser.pages import EVIL, HOSTILE, open_view
from tests.commands import get

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
VIEWS = [
    ("ordinary",),
    ("ordinary", "model", "bravo"),
    ("ordinary", "pair", "alpha", "bravo"),
    ("ordinary", "matrix"),
    ("ordinary", "items"),
    ("ordinary", "categories"),
]


def download(page, kind):
    """Return the name and the bytes of a file of the menu."""
    page.locator(".menu summary").click()
    with page.expect_download() as waited:
        page.locator(".menu").get_by_role("button", name=kind, exact=True).click()
    return waited.value.suggested_filename, waited.value.path().read_bytes()


def words(svg):
    return " ".join(node.text for node in ET.fromstring(svg).iter(f"{SVG}text") if node.text)


@pytest.mark.parametrize("where", VIEWS, ids=" ".join)
def test_each_figure_leaves_as_a_picture_and_as_numbers(page, monitor, where):
    open_view(page, monitor, *where)
    name, text = download(page, "CSV")
    assert name.endswith(".csv")
    assert len({len(row) for row in csv.reader(text.decode().splitlines())}) == 1
    assert json.loads(download(page, "JSON")[1])
    name, svg = download(page, "SVG")
    root = ET.fromstring(svg)
    assert name.endswith(".svg")
    assert root.find(f"{SVG}title").text.endswith("ordinary")
    png = download(page, "PNG")[1]
    size = struct.unpack(">II", png[16:24])
    assert png[:4] == b"\x89PNG"
    assert size == (2 * int(root.get("width")), 2 * int(root.get("height")))


def test_the_heads_of_narrow_columns_run_upwards_in_a_picture_too(page, monitor):
    open_view(page, monitor, "ordinary", "categories")
    heads = [
        node for node in ET.fromstring(download(page, "SVG")[1]).iter(f"{SVG}text") if node.text.startswith("category ")
    ]
    assert len(heads) == 7
    assert all(node.get("transform").endswith("rotate(-90)") for node in heads)


def test_the_board_is_handed_out_as_it_is_on_display(page, monitor):
    report = json.loads(get(f"{monitor}/api/v1/board?benchmark=ordinary")[1])["report"]
    open_view(page, monitor, "ordinary")
    downloaded = json.loads(download(page, "JSON")[1])
    assert downloaded | {"words": None} == report | {"words": None}, "besides the sentences of the page"
    rows = list(csv.DictReader(download(page, "CSV")[1].decode().splitlines()))
    assert [(row["model"], float(row["mean"])) for row in rows] == [(m["model"], m["mean"]) for m in report["models"]]
    assert [row["next_model"] for row in rows[:-1]] == [m["model"] for m in report["models"][1:]]
    drawn = words(download(page, "SVG")[1])
    assert all(f"{100 * m['mean']:.2f}" in drawn for m in report["models"])
    page.get_by_label("Find a model").fill("br")
    page.wait_for_function("document.querySelectorAll('.board tbody tr').length === 1")
    assert [row["model"] for row in csv.DictReader(download(page, "CSV")[1].decode().splitlines())] == ["bravo"]
    drawn = words(download(page, "SVG")[1])
    assert "bravo" in drawn
    assert "alpha" not in drawn
    assert "1 of the models drawn" in drawn


def test_hostile_names_stay_text_in_every_file(page, monitor):
    open_view(page, monitor, EVIL)
    name, text = download(page, "CSV")
    assert name == "b-bench-b-a-b-x-1-y-2F-board.csv"
    assert {row["model"] for row in csv.DictReader(text.decode().splitlines())} == set(HOSTILE)
    drawn = words(download(page, "SVG")[1])
    assert HOSTILE[0] in drawn
    assert download(page, "PNG")[1][:4] == b"\x89PNG"
    assert page.evaluate("window.pwned") is None


def test_a_picture_of_too_many_rows_is_refused_with_what_to_do(page, monitor):
    open_view(page, monitor, "large")
    page.locator(".menu summary").click()
    assert page.locator(".menu button").all_inner_texts() == ["CSV", "JSON"]
    assert "at most 150 rows: choose some models first" in page.locator(".menu").inner_text()
    page.locator(".menu summary").click()
    assert len(download(page, "CSV")[1].splitlines()) == 201


def test_a_model_hands_out_the_badge_of_its_possible_ranks(page, monitor):
    open_view(page, monitor, "ordinary", "model", "bravo")
    own = next(
        m
        for m in json.loads(get(f"{monitor}/api/v1/board?benchmark=ordinary")[1])["report"]["models"]
        if m["model"] == "bravo"
    )
    name, svg = download(page, "Badge")
    assert name == "ordinary-bravo-rank.svg"
    assert words(svg) == f"ordinary rank {own['rank_low']}–{own['rank_high']} of 4"
    assert ET.fromstring(svg).find(f"{SVG}title").text.startswith("ordinary: bravo")
    assert page.locator("h1 .badge.no").count() == 1  # a range of ranks
    open_view(page, monitor, EVIL, "model", HOSTILE[0])
    assert HOSTILE[0] in ET.fromstring(download(page, "Badge")[1]).find(f"{SVG}title").text
