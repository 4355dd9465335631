"""The page keeps itself current, says when it cannot, and asks for a token where one is needed."""

import os
import random

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.pages import open_view, post
from tests.commands import Watch, events, until, write

pytestmark = pytest.mark.browser

SKILLS = {"alpha": 0.98, "bravo": 0.5, "charlie": 0.02}
ITEMS = 80


def test_a_verdict_flips_without_a_reload(page, tmp_path):
    records = events(random.Random(3), SKILLS, ITEMS, benchmark="live")
    path = write(tmp_path / "a.jsonl", [])
    with Watch(tmp_path / "data", path, "--items", ITEMS, RANKWATCH_POLL_SECONDS="0.05") as watch:
        page.goto(f"{watch.url}/")
        page.wait_for_selector("h1:text('No scores yet')")
        assert page.locator(".source").inner_text() == f"watching {path}"
        assert page.locator("main pre").first.inner_text() == f"rankwatch send results/ --to {watch.url}"
        page.evaluate("window.same = true")
        write(path, records[:30], mode="a")
        # The only benchmark is shown without being chosen.
        page.wait_for_selector(".board")
        page.wait_for_selector("[data-state=live]")
        assert page.url.endswith("#/b/live")
        until(lambda: "10 of" in page.locator(".title .about").inner_text(), "the first items")
        assert page.locator(".board .step-link.good").count() == 0
        page.set_viewport_size({"width": 1280, "height": 300})
        page.locator("a.step-link").first.focus()
        page.evaluate("scrollTo(0, 120)")
        before = page.evaluate("scrollY")
        assert before > 0

        write(path, records[30:], mode="a")
        until(lambda: page.locator(".board .step-link.good").count() == 2, "the verdicts")
        assert page.evaluate("window.same") is True
        assert page.evaluate("document.activeElement.classList.contains('step-link')")
        assert page.evaluate("scrollY") == before
        until(lambda: "decided family-wise" in page.locator("#announce").inner_text(), "the announcement")
        assert "2 of 2 steps of the ranking are real" in page.locator(".result").inner_text()

        page.get_by_role("link", name="Time").click()
        page.get_by_role("link", name="Changes").click()
        page.wait_for_selector(".feed li")
        assert "≤ =" not in page.locator(".feed").inner_text()
        assert page.locator(".feed .scope", has_text="family-wise").count() == 3
        port = watch.url.rpartition(":")[2]
        assert watch.stop() == 0
    page.wait_for_selector("[data-state=lost]")
    assert "does not respond. The page shows the answer from" in page.locator("#banner").inner_text()
    assert page.locator(".feed .scope", has_text="family-wise").count() == 3
    with Watch(tmp_path / "data", path, "--port", port):
        page.wait_for_selector("[data-state=live]", timeout=30_000)
        assert page.locator("#banner").inner_text() == ""


def test_a_stream_that_is_refused_is_replaced_by_polling(page, monitor):
    records = events(random.Random(4), SKILLS, ITEMS, benchmark="polled")
    post(monitor, records[:30], ITEMS)
    page.route("**/changes/stream*", lambda route: route.abort())
    open_view(page, monitor, "polled")
    assert page.locator("#connection").get_attribute("data-state") == "polling"
    assert page.locator(".board .step-link.good").count() == 0
    post(monitor, records[30:], ITEMS)
    page.wait_for_selector(".board .step-link.good")


def test_the_token_is_asked_for_once_and_kept_for_the_tab(page, tmp_path):
    path = write(tmp_path / "a.jsonl", events(random.Random(5), SKILLS, 10, benchmark="secret"))
    with Watch(tmp_path / "data", path, "--items", ITEMS, RANKWATCH_TOKEN="s3cret") as watch:
        page.goto(f"{watch.url}/")
        page.wait_for_selector("dialog[open]")
        assert "secret" not in page.locator("main").inner_text()
        page.get_by_label("Token", exact=True).fill("wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=That token was not accepted")
        page.get_by_label("Token", exact=True).fill("s3cret")
        page.keyboard.press("Enter")
        page.wait_for_selector(".board")
        page.wait_for_selector("[data-state=live]")
        page.reload()
        page.wait_for_selector(".board")
        assert page.locator("dialog[open]").count() == 0
        assert "s3cret" not in page.url
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]


def test_a_file_is_sent_from_the_page(page, tmp_path):
    records = [
        *events(random.Random(6), SKILLS, 10, benchmark="one"),
        *events(random.Random(7), SKILLS, 10, benchmark="two"),
    ]
    good = write(tmp_path / "good.jsonl", records)
    bad = write(tmp_path / "<b>bad.jsonl", [*records[:2], {**records[2], "score": 1.2}])
    with Watch(tmp_path / "data") as watch:
        page.goto(f"{watch.url}/")
        page.wait_for_selector("h1:text('No scores yet')")
        assert page.locator(".source").count() == 0
        page.get_by_label("Send results").last.set_input_files([bad])
        page.wait_for_selector(".outcome li")
        text = page.locator(".outcome").inner_text()
        assert "<b>bad.jsonl: nothing was stored; 1 line cannot be read:" in text
        assert "<b>bad.jsonl:3: score: 1.2 is out of range" in text
        assert page.locator("h1").inner_text().startswith("No scores yet.")
        page.get_by_label("Send results").last.set_input_files([good])
        page.wait_for_selector(".outcome .good")
        assert "good.jsonl: 60 results stored, of one, two." in page.locator(".outcome").inner_text()
        page.wait_for_selector("h1:text('2 benchmarks')")
        assert page.locator(".outcome .good").count() == 1  # what was sent stays where it is
        page.evaluate("""() => {
            const data = new DataTransfer();
            data.items.add(new File(['{"benchmark": "three", "item_id": "1", "model": "a", "score": 1}'], "dropped.jsonl"));
            document.querySelector(".upload").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""")
        page.wait_for_selector("h1:text('3 benchmarks')")
        assert Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"] == []
        if shots := os.environ.get("UPLOAD_SHOT"):
            page.screenshot(path=shots)


def test_who_signs_in_sees_more_and_who_signs_out_sees_less(page, tmp_path):
    files = [
        write(tmp_path / f"{name}.jsonl", events(random.Random(6), SKILLS, 10, benchmark=name))
        for name in ("open", "closed")
    ]
    rules = {"RANKWATCH_TOKEN": "s3cret", "RANKWATCH_ANONYMOUS_READ": "open"}
    with Watch(tmp_path / "data", *files, "--items", ITEMS, **rules) as watch:
        page.goto(f"{watch.url}/")
        page.wait_for_selector(".board")
        assert page.url.endswith("#/b/open"), "the only benchmark that anyone may read"
        page.goto(f"{watch.url}/#/b/closed")
        page.wait_for_selector("h1:text('No such benchmark')")
        page.get_by_role("button", name="Sign in").click()
        assert "A token may show more benchmarks" in page.locator("#ask").inner_text()
        page.get_by_label("Token", exact=True).fill("s3cret")
        page.keyboard.press("Enter")
        page.wait_for_selector(".board")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_selector("h1:text('No such benchmark')")
        assert page.locator(".board").count() == 0
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Token", exact=True).fill("wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=That token was not accepted")
        page.get_by_role("button", name="Without a token").click()
        page.wait_for_selector("h1:text('No such benchmark')")
