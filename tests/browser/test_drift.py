"""The page of a sentinel: a model that got worse under the eyes of a steady judge."""

import pytest

from tests.browser.pages import event_count, open_view, overflows, post_lines
from tests.commands import Watch, until, write
from tests.unit.engine.test_sentinel import declaration, made

pytestmark = [pytest.mark.browser, pytest.mark.full]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    base = tmp_path_factory.mktemp("drift")
    runs = [each for run in made(30, drop_at=20, judge_at=99, seed=4) for each in run]
    with Watch(base / "data", write(base / "none.jsonl", [])) as watch:
        post_lines(watch.url, [declaration(judge="j", anchors=30), *runs])
        until(lambda: event_count(watch.url) == len(runs), "the runs")
        yield watch.url


@pytest.mark.parametrize("width", [375, 1280])
def test_a_change_is_drawn_with_its_level_its_alarm_and_its_judge(page, monitor, width):
    page.set_viewport_size({"width": width, "height": 800})
    open_view(page, monitor, "bench", "drift")
    page.wait_for_selector(".sentinel")
    model, evidence, judge = page.locator("svg.runs").all()
    for place in (".level.moved", ".alarm", ".when"):
        # A level line has no height, so Playwright does not call it visible.
        assert model.locator(place).evaluate("each => getComputedStyle(each).display") != "none", place
        assert judge.locator(place).count() == 0
    assert evidence.locator("circle.moved").is_visible()
    assert model.locator("circle.run").count() == judge.locator("circle.run").count() == 30
    assert page.locator(".sentinel tbody tr").count() > 0
    assert overflows(page) == 0
