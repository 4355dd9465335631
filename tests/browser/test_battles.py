"""The page of a benchmark of battles: ratings, the win matrix, judges, position and islands."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.pages import HOSTILE, event_count, open_view, overflows, post_lines
from tests.browser.test_views import RULES
from tests.commands import Watch, get, until, write
from tests.unit.engine.test_battles import battle, stream

pytestmark = [pytest.mark.browser, pytest.mark.full]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    """A monitor with an arena, and one of two islands with hostile names, among them an unbeaten model."""
    base = tmp_path_factory.mktemp("battles")
    arena = stream(1, 900, models=5, cluster=["ash", HOSTILE[1]], prompts=400)
    islands = [battle(k, *HOSTILE[:2], "ab"[k % 3 == 0], benchmark="islands") for k in range(30)]
    islands += [battle(f"x{k}", *HOSTILE[2:4], "ab"[k % 2], benchmark="islands") for k in range(10)]
    islands += [battle("y", HOSTILE[4], HOSTILE[0], "a", benchmark="islands")]
    with Watch(base / "data", write(base / "none.jsonl", [])) as watch:
        declared = [{"declare": name, "order": "trusted"} for name in ("bench", "islands")]
        post_lines(watch.url, [declared[0] | {"repeats": "all"}, declared[1], *arena, *islands, {"ended": "bench"}])
        until(lambda: event_count(watch.url) == len(arena) + len(islands), "the battles")
        yield watch.url


def test_the_board_shows_ratings_and_what_to_check(page, monitor):
    open_view(page, monitor, "bench")
    (report,) = json.loads(get(f"{monitor}/api/v1/benchmarks/bench")[1])["benchmarks"]
    shown = page.locator(".board tbody .score").all_inner_texts()
    assert [text.replace(",", "") for text in shown] == [f"{r['rating']:.0f}" for r in report["battles"]["ratings"]]
    assert "which models meet does not depend on the prompt" in page.locator(".assumes").inner_text()
    position = page.get_by_role("table", name="Wins by position")
    assert str(report["battles"]["position"]["first_wins"]) in position.inner_text().replace(",", "")
    judges = page.get_by_role("table", name="Judges").locator("tbody tr")
    assert judges.locator("th .name").all_inner_texts() == [j["judge"] for j in report["battles"]["judges"]]
    open_view(page, monitor, "islands")
    assert page.get_by_role("heading", name="2 islands of models that never met").is_visible()
    page.get_by_text("1 model without a finite rating").click()
    assert "it won every battle" in page.get_by_role("table", name="Models without a finite rating").inner_text()
    assert not page.evaluate("window.pwned")
    assert page.locator(".tabs a").all_inner_texts() == ["Ranking", "Pairs", "Time", "Data"]


def test_a_model_of_battles_has_prompts_and_no_items(page, monitor):
    (report,) = json.loads(get(f"{monitor}/api/v1/benchmarks/bench")[1])["benchmarks"]
    open_view(page, monitor, "bench", "model", report["models"][1]["model"])
    page.wait_for_selector(".gaps")
    shown = page.inner_text("main")
    assert "Enough prompts for" in shown
    assert "Gap on the shared prompts" in shown
    assert "item" not in shown


def test_the_win_matrix_reads_its_cells_to_the_keyboard_and_the_pointer(page, monitor):
    matrix = json.loads(get(f"{monitor}/api/v1/matrix?benchmark=bench")[1])
    prompts, wins = matrix["prompts"][0][1], (matrix["wins"][0][1], matrix["wins"][1][0])
    expected = f"{prompts} prompts: {wins[0]} won, {wins[1]} lost, {prompts - sum(wins)} tie"
    open_view(page, monitor, "bench", "matrix")
    page.locator("#matrix").focus()
    page.keyboard.press("ArrowRight")
    assert expected in page.locator("#readout").inner_text()
    open_view(page, monitor, "islands", "matrix")
    box = page.locator("#matrix").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 23)
    until(lambda: "they never met" in page.locator("#readout").inner_text(), "the reading of the cell")


def test_axe_finds_nothing_and_it_fits_a_phone(page, monitor):
    for place in (("bench",), ("bench", "matrix"), ("islands",)):
        open_view(page, monitor, *place)
        for summary in page.locator("main summary").all():
            summary.click()
        for (scheme, width), options in RULES.items():
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            violations = Axe().run(page, options=options)
            assert violations.violations_count == 0, f"{place} {scheme} {width}\n{violations.generate_report()}"
            assert overflows(page) == 0
