"""The page: well formed, of one piece, and indifferent to what names hold."""

import re
import shutil

import numpy as np
import pytest

from monitor.render.charts import matrix_chart, needed_bar
from monitor.render.report import render_html
from monitor.words.numbers import rank_list
from tests.fold_log import FoldLog, packed
from tests.html_tree import read_html
from tests.unit.render.hostile import NAMES, document_of, hostile_benchmark


@pytest.fixture(scope="module")
def page():
    return render_html(
        [document_of(hostile_benchmark(), detail=True), document_of(hostile_benchmark("second"), pairs="all")]
    )


def test_it_is_well_formed_and_runs_and_loads_nothing(page):
    tree = read_html(page)
    tags = {node.tag for node in tree.nodes()}
    assert not tags & {"script", "img", "link", "iframe", "object", "base", "form"}
    for node in tree.nodes():
        assert not any(name.startswith("on") for name in node.attributes)
        assert all(not v.startswith(("http", "//", "data:", "javascript:")) for v in node.attributes.values() if v)
        assert node.attributes.get("href", "#").startswith("#")
    (style,) = tree.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_every_name_is_unchanged(page):
    text = read_html(page).text
    assert all(name in text for name in NAMES)
    first = next(read_html(page).all("tbody"))
    assert next(first.all("th")).text in NAMES


def test_ties_are_bands_and_a_line_is_where_none_crosses(page):
    document = document_of(hostile_benchmark())
    first = next(read_html(page).all("tbody"))
    for k, row in enumerate(first.all("tr")):
        cell = next(row.all("td"))
        classes = [node.attributes.get("class", "") for node in (*cell.all("circle"), *cell.all("rect"))]
        assert len(classes) == sum(k in band.members for band in document.ties.bands) > 0
        assert any("alone" in kind for kind in classes) == (not document.tied[k])
        assert cell.text == f"tied with ranks: {rank_list([j + 1 for j in document.tied[k]])}"
        assert (row.attributes.get("class") == "ruled") == (k in document.ties.rules)
    # Two models share a band exactly when no verdict separates them, also where they are in different tie groups.
    for k, others in enumerate(document.tied):
        bands = [band.members for band in document.ties.bands if k in band.members]
        assert {j for members in bands for j in members} - {k} == set(others)


def test_headings_tables_and_figures_can_be_read_aloud(page):
    tree = read_html(page)
    assert [node.tag for node in tree.nodes() if re.fullmatch("h[1-4]", node.tag)][:3] == ["h1", "h2", "h3"]
    assert next(tree.all("html")).attributes["lang"] == "en"
    ids = [node.attributes["id"] for node in tree.nodes() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for table in tree.all("table"):
        assert table.parent.attributes["role"] == "region"
        assert table.parent.attributes["aria-label"]
        assert table.parent.attributes["tabindex"] == "0"
        assert all(th.attributes.get("scope") for th in table.all("th"))
    for svg in tree.all("svg"):
        assert svg.attributes.get("aria-hidden") == "true" or next(svg.all("title")).text


def test_each_neighbour_has_a_card_with_its_path_and_checklist(page):
    first, second = read_html(page).all("section")
    for section in (first, second):
        cards = list(section.all("article"))
        assert len(cards) == len(NAMES) - 1
        assert all(next(card.all("polyline")).attributes["points"] for card in cards)
        assert all(sum(1 for _ in next(card.all("dl")).all("dt")) == 8 for card in cards)
    assert len(list(second.all("table"))) == len(list(first.all("table"))) + 1, "the pairs that are not neighbours"


def test_the_matrix_paints_each_decided_pair_once():
    rng = np.random.default_rng(2)
    half = np.triu(rng.integers(-1, 2, (23, 23)), 1).astype(np.int8)
    matrix = half - half.T
    svg = read_html(matrix_chart(matrix, "t"))
    painted = np.zeros_like(matrix)
    for path in svg.all("path"):
        kind = {"f-yes": 1, "f-below": 2, "f-turned": 3}.get(path.attributes.get("class"))
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path.attributes["d"] if kind else ""):
            assert (painted[int(y), int(x) : int(x) + int(width)] == 0).all()
            painted[int(y), int(x) : int(x) + int(width)] = kind
    above, below = np.triu(matrix, 1), np.tril(matrix, -1)
    assert (painted == 1 * (above > 0) + 2 * (below < 0) + 3 * ((above < 0) | (below > 0))).all()


@pytest.mark.parametrize(
    ("ratio", "width", "kind"),
    [(1.0, 100, "yes"), (10.0, 150, "no"), (0.1, 50, "yes"), (None, 200, "no"), (1e9, 200, "no")],
)
def test_the_bar_of_n_star_is_logarithmic_and_ends_at_its_line(ratio, width, kind):
    rect = next(read_html(needed_bar(ratio, None)).all("rect"))
    assert (float(rect.attributes["width"]), rect.attributes["class"]) == (width, f"f-{kind}")


def test_one_model_graded_scores_and_nothing_at_all():
    log = FoldLog()
    log.send(packed([[1], [0]], ["alone"]))
    log.send(packed([[0.5, 0.25], [1, 0]], ["a", "b"], benchmark="graded"))
    log.send(
        {"benchmark": "apart", "item_id": "1", "model": "a", "score": 1},
        {"benchmark": "apart", "item_id": "2", "model": "b", "score": 1},
    )
    text = read_html(render_html([document_of(log[name], detail=True) for name in ("bench", "graded", "apart")])).text
    assert "There is no pair to compare: it takes two models with scores on the same items." in text
    assert "share no items." in text
    assert "No results" in read_html(render_html([])).text


@pytest.mark.full
def test_two_hundred_models_stay_a_page():
    rng = np.random.default_rng(3)
    log = FoldLog()
    log.send(packed((rng.random((100, 200)) < np.linspace(0.9, 0.1, 200)).astype(float), [f"m{k}" for k in range(200)]))
    page = render_html([document_of(log.bench)])
    assert len(page) < 3_000_000
    assert len(list(read_html(page).all("article"))) == 199


def test_nothing_overflows_or_is_loaded_in_a_browser(page, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
        asked = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        for width in (390, 1280):
            tab.set_viewport_size({"width": width, "height": 800})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert asked == [path.as_uri()]
        browser.close()
