"""What the page shows of files that were not read whole, and of declarations that do not count."""

import random

import pytest

from stats import committed_order
from tests.browser.pages import open_view
from tests.commands import Watch, events, get, until, write

pytestmark = pytest.mark.browser


def test_the_board_names_what_was_not_read(page, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    made = events(random.Random(5), {"new": 0.9, "old": 0.2}, 40, benchmark="quiz")
    late = {"declare": "quiz", "items": 90}
    write(
        folder / "a.jsonl",
        [*made, {**made[0], "item_id": "lost", "score": "?"}, {"declare": "quiz", "items": 40}, late],
    )
    (folder / "b.jsonl").write_text("not JSON\n")
    with Watch(tmp_path / "data", folder, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: "b.jsonl" in get(f"{url}/api/v1/benchmarks/quiz")[1], "the refused file")
        for view in ((), ("data",)):
            open_view(page, url, "quiz", *view)
            text = " ".join(page.locator("main .notice").all_inner_texts())
            assert "Refused, so what was read is not taken for the whole benchmark" in text
            assert "b.jsonl" in text
            assert "1 item is missing for all models: every line of it was rejected." in text
            assert "Declaration refused (line 82 of" in text


def test_a_pair_promises_of_its_interval_and_its_lead_what_the_order_allows(page, tmp_path):
    """Verdicts are held without an order policy; along a committed order a lead is settled before it is certain."""
    made = events(random.Random(5), {"new": 0.95, "old": 0.05}, 200, benchmark="along")
    ids = list(dict.fromkeys(event["item_id"] for event in made))
    first = {ids[k] for k in committed_order("s", ids)[:60].tolist()}
    place = {ids[k]: at for at, k in enumerate(committed_order("s", ids).tolist())}
    declared = {"declare": "along", "item_ids": ids, "order": {"policy": "committed", "seed": "s"}}
    ordered = sorted((event for event in made if event["item_id"] in first), key=lambda event: place[event["item_id"]])
    held = [{**event, "benchmark": "held"} for event in made]
    results = write(tmp_path / "runs.jsonl", [declared, *ordered, *held])
    with Watch(tmp_path / "data", results, RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: get(f"{watch.url}/api/v1/benchmarks/held")[0] == 200, "the second benchmark")
        open_view(page, watch.url, "held", "pair", "new", "old")
        text = page.locator("main").inner_text()
        assert "not valid while verdicts are held" in text
        assert page.locator(".duo").count() == 0, "no number decides"
        page.locator(".rows summary", has_text="Gap").click()
        assert page.locator("main").inner_text().count("not valid while verdicts are held") == 2
        assert "valid at any time." not in text
        assert "anytime-valid" not in text
        open_view(page, watch.url, "along", "pair", "new", "old")
        text = page.locator("main").inner_text()
        assert "settled at alpha 0.05, over all pairs" in text
        assert "cannot change it" not in text
        assert page.locator(".charts .threshold.joint").count() == 1
        page.locator(".rows summary", has_text="Gap").click()
        assert "valid at any time." in page.locator("main").inner_text()
