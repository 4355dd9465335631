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


@pytest.fixture(scope="module")
def stricter(tmp_path_factory):
    base = tmp_path_factory.mktemp("stricter")
    runs = [each for run in made(30, judge_at=20, seed=3) for each in run]
    with Watch(base / "data", write(base / "none.jsonl", [])) as watch:
        post_lines(watch.url, [declaration(judge="j", anchors=30), *runs])
        until(lambda: event_count(watch.url) == len(runs), "the runs")
        yield watch.url


@pytest.mark.parametrize("width", [375, 1280])
def test_a_judge_that_moved_is_named_and_its_movement_is_taken_off_the_model(page, stricter, width):
    page.set_viewport_size({"width": width, "height": 800})
    open_view(page, stricter, "bench", "drift")
    page.wait_for_selector(".sentinel")
    headline = page.locator(".sentinel h2").inner_text()
    assert headline.startswith("◆ The judge has become stricter")
    assert "No evidence that m changed" in headline
    assert page.locator(".sentinel h3", has_text="Frozen answers that fell most").is_visible()
    assert "movement removed" in page.locator(".sentinel h3", has_text="Model").first.inner_text()
    model, _, judge = page.locator("svg.runs").all()
    assert (model.locator(".level.moved").count(), judge.locator(".level.moved").count()) == (0, 1)
    means = [float(each.split(": ")[1]) for each in model.locator("circle.run title").all_text_contents()]
    since, before = (sum(each) / len(each) for each in (means[20:], means[:20]))
    assert abs(since - before) < 10, "a drop of 35 points of the judge is not drawn as the model's"
    assert overflows(page) == 0


def history(page, monitor):
    return page.evaluate("fetch('/api/v1/drift?benchmark=bench').then((each) => each.json())")["report"]["settings"]


def test_a_change_is_announced_after_its_consequence_is_read(page, monitor):
    open_view(page, monitor, "bench", "drift")
    form = page.locator(".announce form")
    assert not form.is_visible()
    page.get_by_text("Announce a change").click()
    page.locator(".announce").get_by_text("cannot be undone").wait_for()
    assert f"--server {monitor} --benchmark=bench -- m" in page.locator(".announce pre").inner_text()
    form.locator("input").fill("new prompt")
    form.get_by_role("button").click()
    form.get_by_text("begins a new history").wait_for()
    assert page.evaluate("document.querySelector('.announce input').value") == ""
    post_lines(monitor, [{**each, "run": "2026-12-01"} for each in made(1, judge_at=99)[0]])
    until(lambda: history(page, monitor)["changes"] == ["2026-12-01"], "the new history")
    page.locator(".sentinel dt", has_text="earlier").wait_for()
    assert page.locator(".sentinel h2").inner_text().startswith("…")
    assert page.locator("svg.runs .level.moved").count() == 0
    assert page.locator("svg.runs circle.moved").count() == 1  # the alarm stays in the evidence


@pytest.mark.parametrize("width", [375, 1280])
def test_the_sentence_is_copied_with_what_it_assumes(page, monitor, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=monitor)
    open_view(page, monitor, "bench", "drift")
    page.get_by_role("button", name="Copy the sentence").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    headline = page.locator(".sentinel h2").inner_text().split(" ", 1)[1]
    assert copied.startswith(f"bench: {headline} ")
    assert copied.endswith(page.locator("main > p.about").last.inner_text())
    page.get_by_text("Announce a change").click()
    assert overflows(page) == 0
