"""What the page shows of files that were not read whole, and of declarations that do not count."""

import random

import pytest

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
