"""The page of a suite: its members, the scores in them, and what each adds to the gaps."""

import json
import random
from urllib.parse import quote

import pytest

from tests.browser.pages import HOSTILE, event_count, open_view, overflows, post
from tests.commands import Watch, events, get, until, write

pytestmark = [pytest.mark.browser, pytest.mark.full]

EASY, HARD = HOSTILE[0], HOSTILE[5]
MODELS = {"ash": 0.9, "birch": 0.6, HOSTILE[1]: 0.4}


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    """A monitor with a suite of two benchmarks of hostile names, one of which is to come."""
    base = tmp_path_factory.mktemp("suite")
    rng = random.Random(3)
    file = base / "settings.toml"
    file.write_text(f"[suites]\noverall = [{json.dumps(EASY)}, {json.dumps(HARD + ':3~0.2')}]\n")
    with Watch(base / "data", write(base / "none.jsonl", []), RANKWATCH_CONFIG=str(file)) as watch:
        easy = events(rng, {**MODELS, "cedar": 0.5}, 40, benchmark=EASY)
        post(watch.url, easy, 40)
        until(lambda: event_count(watch.url) == 2 * len(easy), "the events, of the member and of the suite")
        yield watch.url, rng


def test_a_suite_shows_its_members_as_they_come(page, monitor):
    url, rng = monitor
    open_view(page, url, "overall")
    rows = page.get_by_role("table", name="Members of the suite").locator("tbody tr")
    assert rows.count() == 2
    assert "no events" in rows.nth(1).inner_text()
    assert page.get_by_text("No model has a score in every member yet.").is_visible()
    post(url, events(rng, MODELS, 30, benchmark=HARD), 30)
    scores = page.get_by_role("table", name="Scores by member").locator("tbody tr")
    until(lambda: scores.count() == len(MODELS), "the page to follow the suite")
    (report,) = json.loads(get(f"{url}/api/v1/benchmarks/overall")[1])["benchmarks"]
    assert scores.locator("th .name").all_inner_texts() == [m["model"] for m in report["models"]]
    drivers = [gap["driver"] for gap in report["suite"]["gaps"]]
    columns = [m["benchmark"] for m in sorted(report["suite"]["members"], key=lambda m: -m["weight"])]
    for k, driver in enumerate(drivers):
        cells = scores.nth(k).locator("td.number")
        assert cells.nth(1 + columns.index(driver)).locator(".driver").count() == 1
    page.get_by_text("1 model without a score in some member").click()
    assert "cedar" in page.get_by_role("table", name="Models that lack a member").inner_text()
    assert not page.evaluate("window.pwned")
    rows.nth(0).get_by_role("link").click()
    page.wait_for_url(f"**/#/b/{quote(EASY, safe='')}")


def test_it_fits_a_phone(page, monitor):
    url, _ = monitor
    page.set_viewport_size({"width": 375, "height": 800})
    open_view(page, url, "overall")
    assert overflows(page) == 0
