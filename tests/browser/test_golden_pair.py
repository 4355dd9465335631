"""MMLU-Pro ranks 5 and 6 on the page: see tests/golden_pair.py."""

import pytest

from monitor.words.columns import PROCEDURES
from tests.browser.pages import event_count, open_view
from tests.commands import Watch, until
from tests.golden_pair import BENCHMARK, ITEMS, NAMES, write_golden_pair

pytestmark = pytest.mark.browser

WORDS = {
    "decided": {"anytime": "decided: rank 5 is better", "anytime_family": "undecided"},
    "resolved": {"fixed_n": "resolved", "anytime": "not resolved"},
}
COLUMNS = [
    *(("decided", name) for name in PROCEDURES),
    *(("resolved", name) for name, each in PROCEDURES.items() if each.resolves),
]


@pytest.mark.smoke
def test_the_page_distinguishes_the_four_verdicts(page, tmp_path):
    with Watch(tmp_path / "data", write_golden_pair(tmp_path / "ranks.jsonl")) as watch:
        until(lambda: event_count(watch.url) == 2 * ITEMS, "all events")
        open_view(page, watch.url, BENCHMARK, "pairs")
        texts = page.locator(".verdicts tbody tr .mark .sr").all_inner_texts()
        shown_signs = dict(zip(COLUMNS, texts, strict=True))
        for kind, words in WORDS.items():
            for procedure, expected in words.items():
                assert shown_signs[kind, procedure] == expected
        open_view(page, watch.url, BENCHMARK, "pair", *NAMES)
        page.locator(".rows summary", has_text="All procedures").click()
        rows = dict(zip(COLUMNS, page.locator(".procedures li").all_inner_texts(), strict=True))
        assert "for rank 5" in rows["decided", "anytime"]
        assert "undecided" in rows["decided", "anytime_family"]
        assert "not" not in rows["resolved", "fixed_n"].split("resolved")[0]
        assert "not" in rows["resolved", "anytime"]
        assert page.locator(".verdict-line").inner_text().startswith("A tie: rank 5 is ")
        page.locator(".rows summary", has_text="In full").click()
        assert "Not decided family-wise" in page.locator(".rows [data-key=why]").inner_text()
        assert "q = 2.08" in page.locator("main").inner_text()
