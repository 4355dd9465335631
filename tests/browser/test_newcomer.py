"""The page of a newcomer: the ranks that are still possible close item by item, and its certificate verifies."""

import json
import random
from urllib.request import Request, urlopen

import pytest

from tests.browser.pages import event_count, open_view, overflows, post_lines
from tests.commands import Watch, rankwatch, until, write
from tests.unit.serve.test_admission_routes import BOARD, rows

pytestmark = [pytest.mark.browser, pytest.mark.full]


def admit(url, model):
    body = json.dumps({"benchmark": "demo", "model": model}).encode()
    with urlopen(Request(f"{url}/api/v1/admissions", body, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)["items"]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    base = tmp_path_factory.mktemp("newcomer")
    lines = [line for model, ability in BOARD.items() for line in rows(model, ability)]
    random.Random(5).shuffle(lines)
    with Watch(base / "data", write(base / "none.jsonl", [])) as watch:
        post_lines(watch.url, lines)
        until(lambda: event_count(watch.url) == len(lines), "the board")
        yield watch.url, admit(watch.url, "new")


@pytest.mark.parametrize("width", [375, 1280])
def test_the_ranks_close_while_scores_arrive(page, monitor, width, tmp_path):
    url, order = monitor
    page.set_viewport_size({"width": width, "height": 800})
    open_view(page, url, "demo", "newcomers")
    page.wait_for_selector(".certificate")
    known = page.locator("svg.ranks").first.locator("circle").count()
    assert page.locator("nav.tabs a", has_text="Newcomers").get_attribute("aria-current") == "page"
    part = order[:40] if width == 375 else order
    post_lines(url, rows("new", 0.7, part))
    page.wait_for_selector(f"h1:has-text('after {len(part)} of 120 items')")
    ranks, totals = page.locator("svg.ranks").all()
    assert ranks.locator("circle").count() > known
    assert ranks.locator("rect.possible").count() == len(BOARD) + 1
    assert ranks.locator("rect.spared").count() == (width == 375)
    assert totals.locator("path.possible").count() == 1
    with page.expect_download() as download:
        page.locator(".certificate button").click()
    download.value.save_as(tmp_path / "copy.json")
    assert f"every number follows from its {len(part)} scores" in rankwatch("verify", tmp_path / "copy.json").stdout
    assert overflows(page) == 0


def test_two_newcomers_have_a_page_each_and_an_unknown_one_has_none(page, monitor):
    url, _ = monitor
    admit(url, "a <b> & c")
    open_view(page, url, "demo", "newcomers")
    page.wait_for_selector("p.actions a")
    page.locator("p.actions a", has_text="a <b> & c").click()
    page.wait_for_selector("h1:has-text('a <b> & c is between rank 1 and')")
    assert overflows(page) == 0
