"""The report as a file: on a phone what a reader needs is in view."""

import random

import pytest

from tests.commands import events, rankwatch, write

pytestmark = [pytest.mark.browser, pytest.mark.full]

MODELS = {"meta-llama/Llama-3.1-70B-Instruct": 0.9, "mistralai/Mixtral-8x22B-Instruct-v0.1": 0.6, "bad": 0.3}


def test_rank_model_score_gap_and_decided_are_in_view_on_a_phone(page, tmp_path):
    rows = events(random.Random(6), MODELS, 200)
    html = rankwatch("report", write(tmp_path / "runs.jsonl", rows), "--format", "html").stdout
    (tmp_path / "report.html").write_text(html)
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto((tmp_path / "report.html").as_uri())
    ranked, pairs = page.locator("table").nth(0), page.locator("table").nth(1)
    seen = [
        *(ranked.locator(f"tbody tr:first-child > :nth-child({k})") for k in (2, 3, 4, 5)),  # rank, ranks, model, score
        pairs.locator("tbody th").first,
        pairs.locator("tbody td:nth-child(2)").first,
        pairs.locator("tbody td:nth-child(3)").first,
    ]
    for cell in seen:
        box = cell.bounding_box()
        assert box["width"] > 0
        assert box["x"] + box["width"] <= 375, cell.inner_text()
