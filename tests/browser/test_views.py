"""What the views say, to every reader: they agree with the API, pass axe, fit a phone, can be used from the keyboard."""

import json
import re

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe

from monitor.words.columns import STEPS
from monitor.words.points import points
from schemas.results.report import PairReport
from tests.browser.pages import EVIL, HOSTILE, VIEWS, address, open_view, overflows
from tests.commands import get, until

pytestmark = pytest.mark.browser

PAIR = ("pair", "alpha", "bravo")
MODEL = ("model", "bravo")
DECISIONS = (
    "anytime_family",
    "anytime",
    "e_bh",
    "fixed_n",
    "bonferroni",
    "holm",
    "benjamini_hochberg",
    "clustered",
)
RESOLUTIONS = ("fixed_n", "bonferroni", "anytime", "clustered")
LAID_OUT = [
    "color-contrast",
    "scrollable-region-focusable",
    "target-size",
    "link-in-text-block",
    "aria-hidden-focus",
    "label",
]
RULES = {("light", 1280): {"resultTypes": ["violations"]}, ("dark", 375): {"runOnly": LAID_OUT}}
"""What axe looks for: of the rules, these depend on the theme or on the width, which a phone has less of."""


def report(url, name):
    (benchmark,) = [b for b in json.loads(get(f"{url}/api/v1/benchmarks")[1])["benchmarks"] if b["benchmark"] == name]
    return benchmark


def cells(page, column):
    return [text.strip() for text in page.locator(f"main tbody .{column}").all_inner_texts()]


def names(page):
    return page.locator(".board tbody .model .name").all_inner_texts()


def test_the_board_is_that_of_the_report(page, monitor):
    expected = report(monitor, "ordinary")
    open_view(page, monitor, "ordinary")
    ranks = [
        f"{m['rank_low']}–{m['rank_high']}" if m["rank_low"] != m["rank_high"] else str(m["rank_low"])
        for m in expected["models"]
    ]
    assert cells(page, "rank") == ranks
    assert names(page) == [m["model"] for m in expected["models"]]
    assert cells(page, "score") == [f"{100 * m['mean']:.2f}" for m in expected["models"]]
    lines = page.locator(".result p").all_inner_texts()
    assert [line.strip() for line in lines] == [
        expected["result"][line]["text"] for line in ("best", "steps", "change")
    ]
    gaps = [0, 0.31193, -0.5, 0.00004, -0.0000123, 1e-13, -1e-13, 2.2250738585072014e-308, -2.2250738585072014e-308]
    shown = page.evaluate(
        "gaps => import('/page/format.js').then(({ points }) => gaps.map((gap) => points(gap)))", gaps
    )
    assert [text.replace("\u2212", "-") for text in shown] == [points(gap) for gap in gaps]
    words = {p["model_a"]: p["decided"]["anytime_family"] for p in expected["pairs"] if p["adjacent"]}
    shown = page.locator(".board .step-link .word").all_inner_texts()
    decided = ["decided" if words[m["model"]] == "a" else "no" for m in expected["models"][:-1]]
    assert [word if word == "decided" else "no" for word in shown] == decided
    low = [m["model"] for m in expected["models"] if m["coverage"] < 0.9]
    assert low == ["charlie"]
    assert page.locator(".board tr:has(.low.aside) .name").all_inner_texts() == low


def test_ties_and_rules_are_drawn_as_the_api_has_them(page, monitor):
    ties = json.loads(get(f"{monitor}/api/v1/board?benchmark=ordinary")[1])["ties"]
    open_view(page, monitor, "ordinary")
    rows = page.locator(".board tbody tr")
    members = [k for band in ties["bands"] for k in band["members"]]
    assert page.locator(".board circle.band, .board circle.alone").count() == len(members)
    assert page.locator(".board tr.ruled").count() == len(ties["rules"]) > 0
    for rank in ties["rules"]:
        assert "ruled" in rows.nth(rank - 1).get_attribute("class")
    assert [rows.nth(lacking["rank"] - 1).locator("circle.thread.own").count() for lacking in ties["lacking"]] == [1]
    # In another order a rule would separate nothing.
    page.get_by_label("Sort", exact=True).select_option("name")
    until(lambda: names(page) == sorted(names(page)), "the order by name")
    assert page.locator(".board tr.ruled").count() == 0


def test_every_choice_is_in_the_address_and_comes_back_with_it(page, monitor):
    open_view(page, monitor, "ordinary")
    page.get_by_label("Find a model").fill("HA")
    until(lambda: names(page) == ["alpha", "charlie"], "the models with these letters")
    assert page.url.endswith("?q=HA")
    page.get_by_role("button", name="≥ 90 % of items").click()
    until(lambda: names(page) == ["alpha"], "the model with all items")
    page.reload()
    page.wait_for_selector(".board")
    assert names(page) == ["alpha"]
    assert page.get_by_label("Find a model").input_value() == "HA"
    page.get_by_role("button", name="All 4").click()
    until(lambda: len(names(page)) == 4, "all models")
    page.get_by_role("button", name="Choose models").click()
    for model in ("bravo", "delta"):
        page.get_by_label(f"Show {model}").check()
    page.get_by_role("button", name="Done").click()
    until(lambda: names(page) == ["bravo", "delta"], "the chosen models")
    page.get_by_label("Find a model").fill("nobody")
    page.wait_for_selector("text=No model matches.")
    page.get_by_role("button", name="Show all").click()
    until(lambda: len(names(page)) == 4, "all models")


def test_all_models_are_compared_with_a_baseline(page, monitor):
    pairs = json.loads(get(f"{monitor}/api/v1/pairs?benchmark=ordinary&model=bravo")[1])["pairs"]
    gaps = {
        (p["model_a"] if p["model_b"] == "bravo" else p["model_b"]): p["gap"] * (1 if p["model_b"] == "bravo" else -1)
        for p in pairs
    }
    open_view(page, monitor, "ordinary")
    page.get_by_label("Compare all with").select_option("bravo")
    page.wait_for_selector(".board tr.own")
    shown = {
        row.locator(".model .name").inner_text(): row.locator(".points").inner_text()
        for row in page.locator(".board tbody tr:not(.own)").all()
    }
    assert shown == {model: f"{100 * gap:+.2f}".replace("-", "−") for model, gap in gaps.items()}
    assert page.url.endswith("?to=bravo")


def test_a_model_has_its_gaps_to_every_other(page, monitor):
    own = next(m for m in report(monitor, "ordinary")["models"] if m["model"] == "bravo")
    pairs = json.loads(get(f"{monitor}/api/v1/pairs?benchmark=ordinary&model=bravo")[1])["pairs"]
    open_view(page, monitor, "ordinary")
    page.get_by_role("link", name="bravo", exact=True).click()
    page.wait_for_selector(".gaps")
    assert f"rank {own['rank_low']}–{own['rank_high']} of 4" in page.locator("h1").inner_text()
    sides = {p["model_b"] if p["model_a"] == "bravo" else p["model_a"]: p["decided"]["anytime_family"] for p in pairs}
    assert sorted(page.locator(".gaps:not(.profile) tbody tr.tied .name").all_inner_texts()) == sorted(
        m for m, s in sides.items() if s is None
    )
    assert page.locator(".gaps:not(.profile) tbody tr").count() == len(pairs) + 1
    page.goto(address(monitor, "ordinary", "model", "nobody"))
    page.wait_for_selector("h1:text('No such model')")


def test_a_model_that_is_new_since_the_report_has_no_row_yet(page, monitor):
    def older(route):
        answer = route.fetch().json()
        models = answer["report"]["models"]
        models[:] = [m for m in models if m["model"] != "charlie"]
        route.fulfill(json=answer)

    page.route("**/api/v1/board?*", older)
    open_view(page, monitor, "ordinary", "model", "bravo")
    shown = page.locator(".gaps:not(.profile) tbody .name").all_inner_texts()
    assert sorted(shown) == sorted({m["model"] for m in report(monitor, "ordinary")["models"]} - {"charlie"})


def test_repeats_aliases_and_ended_runs_are_shown_where_there_are_any(page, monitor):
    models = {m["model"]: m for m in report(monitor, "repeated")["models"]}
    assert [models[name]["run_ended"] for name in ("alpha", "bravo", "charlie")] == [True, True, False]
    open_view(page, monitor, "repeated")
    rows = {row.locator("a .name").inner_text(): row for row in page.locator(".board tbody .model").all()}
    for model, expected in {
        "alpha": ["◔ 75 % low coverage scored", "run ended"],
        "bravo": ["includes bravo-0325", "◔ 75 % low coverage scored", "run ended"],
        "charlie": ["counts when its run ends"],
    }.items():
        assert rows[model].locator(".aside").all_text_contents() == expected
    open_view(page, monitor, "repeated", "data")
    facts = page.locator("dl.list").first.inner_text()
    assert "1 to 3 an item" in facts
    assert "2 of 3" in facts
    rows = page.locator("table.data tbody tr")
    found = {row.locator("th > .name").inner_text(): row.locator("td").all_inner_texts()[-2:] for row in rows.all()}
    assert found == {"alpha": ["1", "ended"], "bravo": ["2.0 (1 to 3)", "ended"], "charlie": ["1.5 (1 to 2)", "open"]}
    open_view(page, monitor, "repeated", "pairs")
    assert "their items count when both runs have ended" in page.locator(".reason").last.inner_text()
    for view in ("", "data"):
        open_view(page, monitor, "ordinary", view)
        text = page.locator("main").inner_text()
        assert not any(word in text for word in ("includes", "ended", "Repeats", "Run\n"))


def test_a_pair_of_graded_scores_has_its_path_and_no_interval(page, monitor):
    open_view(page, monitor, "repeated", *PAIR)
    assert page.locator(".charts").count() == 0, "a test of the scores decides, and not the e-value"
    page.locator(".rows summary", has_text="e-values").click()
    assert page.locator(".rows figure").count() == 1
    page.locator("summary", has_text="The charts as a table").click()
    assert page.locator("details tbody tr").last.locator("td").all_inner_texts()[-2:] == ["–", "–"]


def test_decided_and_resolved_are_distinguished_under_each_procedure(page, monitor):
    reasons = json.loads(get(f"{monitor}/api/v1/board?benchmark=ordinary")[1])["words"]["reasons"]
    expected = report(monitor, "ordinary")
    open_view(page, monitor, "ordinary", "pairs")
    rows = page.locator(".verdicts tbody tr")
    assert rows.count() == len(expected["pairs"]) == 3
    kinds = [("decided", name) for name in DECISIONS] + [("resolved", name) for name in RESOLUTIONS]
    for k, pair in enumerate(expected["pairs"]):
        texts = rows.nth(k).locator(".mark .sr").all_inner_texts()
        assert len(texts) == len(kinds)
        for (kind, procedure), words in zip(kinds, texts, strict=True):
            value = pair[kind][procedure]
            if kind == "decided" and value is not None:
                assert words == f"decided: {pair[f'model_{value}']} is better"
            elif kind == "resolved" and value is not None:
                assert words == ("resolved" if value else "not resolved")
            else:
                assert words in {"undecided", "not computed"}
        word = STEPS[msgspec.convert(pair, PairReport).step][0]
        assert rows.nth(k).locator(".reason").inner_text() == f"{word} {reasons[k]}"
        assert rows.nth(k).locator(".chip").inner_text() == word


COVERED = """() => [...document.querySelectorAll('.chart')].flatMap((chart) => {
  const along = (line) => [...Array(2000).keys()].map((k) => line.getPointAtLength((k / 2000) * line.getTotalLength()));
  const points = [...chart.querySelectorAll('.line')].flatMap(along);
  const between = (value, from, size) => value > from && value < from + size;
  const covers = ({ x, y, width, height }) =>
    points.some((at) => between(at.x, x, width) && between(at.y, y + 2, height - 4));
  return [...chart.querySelectorAll('.threshold ~ .tag')].filter((tag) => covers(tag.getBBox()));
})"""
"""The words next to a threshold that cover a line of their chart."""


def test_a_pair_is_shown_with_its_counts_and_thresholds(page, monitor):
    pair = next(p for p in report(monitor, "ordinary")["pairs"] if p["model_a"] == "alpha")
    assert pair["model_b"] == "bravo"
    open_view(page, monitor, "ordinary", *PAIR)
    both = round(pair["p_a"] * pair["n"]) - pair["b"]
    table = [both, pair["b"], pair["c"], pair["n"] - both - pair["b"] - pair["c"]]
    assert [int(text) for text in page.locator(".twobytwo td b").all_inner_texts()] == table
    assert sum(table) == pair["n"]
    path = json.loads(get(f"{monitor}/api/v1/path?benchmark=ordinary&model_a=alpha&model_b=bravo&points=40&last=5")[1])
    words = path["words"]
    assert page.locator(".verdict-line").inner_text() == words["headline"]
    assert page.locator(".pair-names").inner_text() == "alpha v. bravo"
    assert page.locator(".charts .threshold.needed").count() == 1, "the lead that the exact test needs decides"
    assert page.locator(".charts .threshold.joint").count() == 0
    assert round(path["gap"][-1] * path["n"][-1]) == pair["b"] - pair["c"] >= path["lead_needed"]
    assert path["n"][-5:] == list(range(pair["n"] - 4, pair["n"] + 1))
    assert page.locator(".duo .than").inner_text() == "≤"
    rows = page.locator(".rows > *")
    assert [row.split("\n")[0] for row in rows.all_inner_texts()] == [row["head"] for row in words["rows"]]
    longest = page.locator("main :is(p, li, .note)").evaluate_all(
        "all => all.map((one) => one.innerText.split(/\\s+/).length)"
    )
    assert max(longest) <= 40
    page.locator(".rows summary", has_text="Gap").click()
    assert page.locator(".chart .band").count() == 1
    page.locator(".rows summary", has_text="e-values").click()
    assert page.locator(".chart .threshold.joint").count() == 1
    assert page.locator(".chart .threshold.alone").count() == 1
    page.locator(".rows summary", has_text="In full").click()
    assert page.locator(".rows [data-key=why] li").all_inner_texts() == words["why"]
    assert " ".join([*words["why"], "Assumes that " + ", and that ".join(words["assumes"]) + "."]) == pair["reason"]
    assert "= =" not in page.locator("main").inner_text()
    shown = page.evaluate(
        "numbers => import('/page/format.js').then(({ apart, small, evalue }) => numbers.map(([p, limit]) => "
        "[apart(small, Math.log(p), Math.log(limit)), apart(evalue, -Math.log(p), -Math.log(limit))]))",
        [(3.5e-5, 2.45e-5), (0.05004, 0.05), (0.05, 0.05), (9.9996e-4, 1e-3), (1 / 19.8, 1 / 20), (1 / 3.5e6, 1 / 2e6)],
    )
    assert [p for p, _ in shown] == [
        ["3.5 × 10⁻⁵", "2.5 × 10⁻⁵"],
        ["0.05004", "0.05000"],
        ["0.050", "0.050"],
        ["9.9996 × 10⁻⁴", "0.0010000"],
        ["0.051", "0.050"],
        ["2.9 × 10⁻⁷", "5.0 × 10⁻⁷"],
    ]
    assert [e for _, e in shown] == [
        ["28,571", "40,816"],
        ["19.98", "20"],
        ["20", "20"],
        ["1,000.04", "1,000"],
        ["19.8", "20"],
        ["3.5 × 10⁶", "2.0 × 10⁶"],
    ]
    assert page.evaluate(COVERED) == []
    # Named the other way round it is the same pair.
    open_view(page, monitor, "ordinary", "pair", "bravo", "alpha")
    assert page.locator(".pair-names").inner_text() == "alpha v. bravo"


def test_the_matrix_is_that_of_the_api_and_has_a_table(page, monitor):
    matrix = json.loads(get(f"{monitor}/api/v1/matrix?benchmark=large")[1])
    open_view(page, monitor, "large", "matrix")
    painted = page.evaluate("(() => { const c = document.querySelector('#matrix'); return [c.width, c.height]; })()")
    assert min(painted) >= 200
    page.locator("summary", has_text="The matrix as a table").click()
    wins = [int(text) for text in page.locator("details tbody tr td:nth-child(2)").all_inner_texts()]
    assert wins == [sum(x > 0 for x in row) for row in matrix["decided"]]
    assert any(wins)
    # A click on the cell of the first row and the last column opens that pair.
    width = page.locator("#matrix").bounding_box()["width"]
    page.locator("#matrix").click(position={"x": width - 2, "y": 20})
    page.wait_for_selector("h1.versus")
    assert page.locator(".pair-names").inner_text() == f"{matrix['models'][0]} v. {matrix['models'][-1]}"


def test_a_name_is_marked_where_it_is_a_word_of_its_own(page, monitor):
    open_view(page, monitor, "ordinary")
    marked = page.evaluate(
        "texts => import('/page/parts.js').then(({ sentence }) => texts.map(([text, names]) => sentence(text, names)"
        ".filter((part) => part instanceof Element).map((part) => part.textContent)))",
        [
            ("old is better than older, old.", ["old"]),
            ("gpt-4 is 2 points ahead of gpt-4.1 and gpt-4-turbo", ["gpt-4", "gpt-4.1"]),
            ("a/b?c leads .. by 3.", ["..", "a/b?c"]),
            ("bench: new, renewed, new/old", ["new"]),
        ],
    )
    assert marked == [["old", "old"], ["gpt-4", "gpt-4.1"], ["a/b?c", ".."], ["new"]]


def test_the_items_on_which_two_models_differ(page, monitor):
    pair = next(p for p in report(monitor, "ordinary")["pairs"] if p["model_a"] == "alpha")
    open_view(page, monitor, "ordinary", "items")
    assert page.locator(".items tbody tr").count() == 50
    page.get_by_label("Where do").select_option("alpha")
    page.get_by_label("and", exact=True).select_option("bravo")
    page.wait_for_selector("h1:text('alpha and bravo')")
    path = "path?benchmark=ordinary&model_a=alpha&model_b=bravo&points=2"
    words = json.loads(get(f"{monitor}/api/v1/{path}")[1])["words"]
    (size,) = [row for row in words["rows"] if row["key"] == "size"]
    lines = [line.strip() for line in page.locator(".result p").all_inner_texts()]
    assert lines == [f"● {words['headline']}", words["turned_note"], f"{size['answer']} · {size['detail']}"]
    assert words["headline"].startswith("alpha is better than bravo: ")
    assert f"They differ on {pair['b'] + pair['c']} of {pair['n']} shared items" in page.locator("main").inner_text()
    page.get_by_role("button", name="Both wrong").click()
    url = "show=both_wrong&model_a=alpha&model_b=bravo&benchmark=ordinary&limit=1000&sort=hardest"
    page.get_by_label("Sort").select_option("hardest")
    wrong = [item["item_id"] for item in json.loads(get(f"{monitor}/api/v1/items?{url}")[1])["items"]]
    until(lambda: page.locator(".items .item .name").all_inner_texts() == wrong[:50], "the items that both get wrong")
    page.keyboard.press("Escape")
    until(lambda: "show" not in page.url, "the choice to be dropped")


def test_the_categories_answer_the_three_questions_for_the_baseline(page, monitor):
    api = json.loads(get(f"{monitor}/api/v1/categories?benchmark=ordinary&baseline=bravo")[1])
    pairs = json.loads(get(f"{monitor}/api/v1/pairs?benchmark=ordinary&model=bravo")[1])["pairs"]
    open_view(page, monitor, "ordinary", "categories", choices="?to=bravo")
    sides = [
        side
        for row, model in zip(api["baseline"]["side"], api["models"], strict=True)
        if model != "bravo"
        for side in row
    ]
    assert page.locator(".result .tally").all_inner_texts() == [
        f"{sum(p['settled'] is not None for p in pairs)} of {len(pairs)} others",
        f"{sum(side != 0 for side in sides)} of {len(sides)} cells",
        f"{sum(p['resolved']['fixed_n'] for p in pairs)} of {len(pairs)} others",
    ]
    head = page.locator(".categories.upright thead .number .name, .categories.upright thead .number .who")
    assert head.all_inner_texts() == [category["name"] for category in api["categories"]]
    assert all(head.evaluate_all("heads => heads.map((head) => head.scrollHeight <= head.clientHeight)"))
    # On a phone the cells are in view, each row below the name of its model.
    page.set_viewport_size({"width": 375, "height": 800})
    places = (
        page.locator(".categories tbody tr")
        .first.locator(".cell")
        .evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().right)")
    )
    assert sum(right <= 375 for right in places) >= 6


def test_scores_by_category_are_the_stronger_in_grey_the_higher_they_are(page, monitor):
    open_view(page, monitor, "ordinary", "categories", choices="?to=scores")
    page.wait_for_selector(".categories .cell")
    cells_ = page.locator(".categories .cell").evaluate_all(
        "cells => cells.map((c) => [c.textContent, c.classList[1]])"
    )
    levels = [int(level.removeprefix("heat-")) for _, level in sorted(cells_, key=lambda cell: float(cell[0]))]
    assert levels == sorted(levels)
    assert (levels[0], levels[-1]) == (0, 5)


def test_of_200_models_the_rows_in_view_are_drawn(page, monitor):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    open_view(page, monitor, "large")
    assert 20 < page.locator(".board tbody tr[data-rank]").count() < 150
    assert page.locator(".overview").count() == 1
    assert page.locator(".board.unlaned .lanes:visible").count() == 0, "no column of ties that are too many to draw"
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_selector(".board tr[data-rank='200']")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".board tbody tr[data-rank]").count() == 200
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".board tbody tr[data-rank]").count() < 150
    page.get_by_label("Find a model").fill("model-19")
    until(lambda: len(names(page)) == 10, "the models found")
    open_view(page, monitor, "large", "pairs")
    assert page.locator(".verdicts tbody tr").count() == 199
    open_view(page, monitor, "large", "model", "model-000")
    assert page.locator(".glyph.equal").count() > 0
    assert not any("pairs=all" in url for url in requests)
    assert all(url.startswith(monitor) for url in requests)


def test_the_menus_of_models_are_built_once_for_the_same_names(page, monitor):
    open_view(page, monitor, "large")
    page.evaluate(
        """() => {
            const make = document.createElement.bind(document);
            window.made = 0;
            document.createElement = (tag) => (tag === "option" ? (window.made += 1) : 0, make(tag));
        }"""
    )
    page.evaluate("scrollTo(0, 3000)")
    page.wait_for_selector(".board tbody tr[data-rank='120']")
    assert page.evaluate("window.made") == 0
    menu = page.locator("select[aria-label='Compare all with'] option")
    assert menu.count() == 201
    for view in ("", "items", ""):
        page.evaluate("(to) => { location.hash = to }", address("", "ordinary", view).partition("#")[2])
        page.wait_for_selector(".tools.two" if view else ".board [data-key=bravo]")
    assert menu.all_inner_texts() == [
        "Compare all with…",
        *[f"\u2068{m['model']}\u2069" for m in report(monitor, "ordinary")["models"]],
    ]


def test_axe_finds_nothing(page, monitor):
    places = [
        ((), ""),
        *((("ordinary", view), "") for view in VIEWS),
        *((("repeated", view), "") for view in ("", "pairs", "data")),
        (("ordinary", *PAIR), ""),
        (("ordinary", *MODEL), ""),
        (("ordinary",), "?to=bravo"),
        (("ordinary", "items"), "?a=alpha&b=bravo"),
        (("ordinary", "categories"), "?to=scores"),
        (("no such benchmark",), ""),
    ]
    for place, choices in places:
        open_view(page, monitor, *place, choices=choices)
        for summary in page.locator("main summary").all():
            summary.click()
        for (scheme, width), options in RULES.items():
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            violations = Axe().run(page, options=options)
            assert violations.violations_count == 0, (
                f"{place}{choices} {scheme} {width}\n{violations.generate_report()}"
            )


def test_the_tools_of_a_board_with_a_model_that_lacks_items_keep_to_one_line(page, monitor):
    open_view(page, monitor, "ordinary")
    tools = page.locator(".tools > *:visible:not(.sr, .spacer)")
    assert page.locator("button:text('% of items')").is_visible()
    middles = {round(box["y"] + box["height"] / 2) for box in (tool.bounding_box() for tool in tools.all())}
    assert max(middles) - min(middles) <= 2


def test_a_phone_names_each_group_of_procedures(page, monitor):
    page.set_viewport_size({"width": 375, "height": 740})
    open_view(page, monitor, "ordinary", "pairs")
    row = page.locator(".verdicts tbody tr").first
    names = row.locator(".edge").evaluate_all(
        "cells => cells.map((cell) => getComputedStyle(cell, '::before').content)"
    )
    assert names == ['"Any time"', '"Planned n"', '"Resolved"']
    tops = [round(cell.bounding_box()["y"]) for cell in row.locator(".mark").all()]
    assert [tops.count(top) for top in sorted(set(tops))] == [3, 5, 4]


def test_a_phone_shows_the_numbers_of_every_axis(page, monitor):
    page.set_viewport_size({"width": 375, "height": 740})
    open_view(page, monitor, "ordinary", "model", "bravo")
    for axis in page.locator(".axis").all():
        assert axis.is_visible()
    assert page.locator(".gaps:not(.profile) .axis text").count() > 2


@pytest.mark.parametrize("benchmark", ["ordinary", "repeated", EVIL])
def test_a_phone_does_not_scroll_sideways(page, monitor, benchmark):
    page.set_viewport_size({"width": 360, "height": 740})
    pair = HOSTILE[:2] if benchmark == EVIL else PAIR[1:]
    for place in [
        (),
        *((benchmark, view) for view in VIEWS),
        (benchmark, "pair", *pair),
        (benchmark, "model", pair[0]),
    ]:
        open_view(page, monitor, *place)
        for summary in page.locator("main summary").all():
            summary.click()
        assert overflows(page) == 0, place


def test_hostile_names_are_text(page, monitor):
    open_view(page, monitor, EVIL)
    assert page.locator("h1").inner_text() == EVIL
    assert sorted(page.locator(".board tbody .model .name").all_inner_texts()) == sorted(HOSTILE)
    for view in VIEWS:
        open_view(page, monitor, EVIL, view)
        assert page.locator("main img, main script, main b b").count() == 0
    for place in ((HOSTILE[0], HOSTILE[1]), ("..", "a/b?c=d#e&f%2F")):
        open_view(page, monitor, EVIL, "pair", *place)
        assert set(page.locator("h1 .name").all_inner_texts()) == set(place)
    for model in HOSTILE:
        open_view(page, monitor, EVIL, "model", model)
        assert page.locator("h1 .name").inner_text() == model
    assert page.evaluate("window.pwned") is None


def test_the_keyboard_is_enough(page, monitor):
    open_view(page, monitor, "ordinary")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(12):  # the views are ahead of it, in the head of the page
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent") == "Pairs":
            break
    assert page.evaluate("document.activeElement.textContent") == "Pairs"
    page.keyboard.press("Enter")
    page.locator("nav[aria-label=Below] a:text('All pairs')").press("Enter")
    page.wait_for_selector("#matrix")
    until(lambda: page.evaluate("document.activeElement.tagName") == "H1", "the heading to have the focus")
    page.focus("#matrix")
    page.keyboard.press("ArrowRight")
    assert page.locator("#readout").inner_text().startswith("1. alpha v. 2.")
    page.keyboard.press("Enter")
    until(lambda: page.evaluate("document.activeElement.className") == "versus", "the pair to have the focus")
    assert page.title().startswith("alpha v. ")


def test_the_legend_stays_until_the_reader_knows_it(page, monitor):
    open_view(page, monitor, "ordinary")
    legend = page.locator(".signs-key")
    assert {"decided", "open"} <= set(legend.locator("b").all_inner_texts())
    assert "items missing" in page.locator(".board .need").all_inner_texts()[1]
    legend.get_by_role("button", name="Got it").click()
    assert not legend.is_visible()
    page.reload()
    page.wait_for_selector(".board")
    assert not legend.is_visible()
    page.keyboard.press("?")
    assert legend.is_visible()


def test_keys_move_choose_and_go_back(page, monitor):
    open_view(page, monitor, "ordinary")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    second = names(page)[1]
    assert page.evaluate("document.activeElement.textContent") == second
    page.keyboard.press("b")
    page.wait_for_selector(".board tr.own")
    assert page.url.endswith(f"?to={second}")
    page.keyboard.press("x")
    until(lambda: f"m={second}" in page.url, "the chosen model in the address")
    page.keyboard.press("Escape")
    until(lambda: "?" not in page.url, "an address without choices")
    page.keyboard.press("Enter")
    page.wait_for_selector(".gaps")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys:not([open])", state="attached")
    page.keyboard.press("Escape")
    page.wait_for_selector(".board")


def test_the_theme_can_be_chosen_and_stays(page, monitor):
    page.emulate_media(color_scheme="light")
    open_view(page, monitor, "ordinary")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch to the dark theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_an_address_without_a_meaning_says_so(page, monitor):
    for hash_ in ("#/nowhere", "#/b/ordinary/nowhere", "#/b/%E0%A4%A"):
        page.goto(f"{monitor}/{hash_}")
        page.wait_for_selector("h1:text('No such page')")
    page.goto(address(monitor, "unknown"))
    page.wait_for_selector("text=Benchmark 'unknown' has no events")
    page.wait_for_selector("[data-state=live]")
    assert page.locator(".tabs").count() == 0
    page.goto(address(monitor, "ordinary", "pair", "alpha", "nobody"))
    page.wait_for_selector("main >> text=nobody")


def test_the_board_of_any_moment_is_in_the_address(page, monitor):
    now = json.loads(get(f"{monitor}/api/v1/moments?benchmark=moving")[1])
    assert len(now["moments"]) > 2
    open_view(page, monitor, "moving", "time")
    assert "offset" not in page.locator("main").inner_text()
    assert now["first_time"] <= now["last_time"]
    assert page.locator(".span-of-log").inner_text().count("20") >= 2, "the years of the first and the last verdict"
    page.focus("#moment")
    page.keyboard.press("Home")
    first = now["moments"][0]["offset"]
    until(lambda: page.url.endswith(f"?at={first}"), "the first moment in the address")
    then = json.loads(get(f"{monitor}/api/v1/moments?benchmark=moving&at={first}")[1])
    wide = [f"{a}–{b}" if a != b else str(a) for a, b in zip(then["rank_low"], then["rank_high"], strict=True)]
    until(lambda: cells(page, "rank") == wide, "the ranks that were open then")
    assert page.evaluate("document.activeElement.id") == "moment"
    page.keyboard.press("ArrowRight")
    until(lambda: page.url.endswith(f"?at={now['moments'][1]['offset']}"), "the second moment in the address")
    page.reload()
    page.wait_for_selector(".past")
    assert page.locator("#moment").get_attribute("data-at") == str(now["moments"][1]["offset"])
    page.get_by_role("button", name="Now").click()
    until(lambda: "at=" not in page.url, "the present")
    ranks = [f"{a}–{b}" if a != b else str(a) for a, b in zip(now["rank_low"], now["rank_high"], strict=True)]
    until(lambda: cells(page, "rank") == ranks, "the ranks that are open now")
    page.goto(f"{address(monitor, 'moving', 'time')}?at=javascript:alert(1)")
    page.wait_for_selector(".past")
    replay = json.loads(get(f"{monitor}/api/v1/replay?benchmark=moving")[1])
    assert replay["reason"] is None
    assert page.locator(".replay tbody tr").count() == len(replay["steps"]) > 1
    calls = sum(len(step["called"]) for step in replay["steps"])
    assert page.locator(".replay rect.call").count() == calls
    assert page.locator(".replay circle.verdict").count() == sum(step["decided_side"] != 0 for step in replay["steps"])


def test_the_board_leaves_its_plot_the_room_of_unused_lanes(page, monitor):
    open_view(page, monitor, "ordinary")
    width = {kind: page.locator(f".board thead .{kind}").bounding_box()["width"] for kind in ("lanes", "rank", "plot")}
    assert width["lanes"] <= 60
    assert width["rank"] <= 70
    assert width["plot"] >= 250


def test_a_change_compares_two_numbers(page, monitor):
    open_view(page, monitor, "ordinary", "changes")
    page.wait_for_selector(".feed li")
    evidence = [text for text in page.locator(".feed .evidence").all_inner_texts() if "p = " in text]
    assert evidence
    number = r"[\d.]+(?: × 10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?"
    assert all(re.search(rf" p = {number} ≤ {number} ", text) for text in evidence)


def test_what_verdicts_assume_is_stated_once(page, monitor):
    clause = "the declared number of items is the whole benchmark"
    changes = json.loads(get(f"{monitor}/api/v1/changes?benchmark=ordinary&newest=true&limit=200")[1])["changes"]
    decided = [pair for pair in report(monitor, "ordinary")["pairs"] if pair["status"] == "decided"]
    for view, texts in (("changes", [c["sentence"] for c in changes]), ("pairs", [p["reason"] for p in decided])):
        assert texts
        assert all(clause in text for text in texts)
        open_view(page, monitor, "ordinary", view)
        page.wait_for_selector(".feed li, .verdicts .reason")
        shown = page.inner_text("main")
        assert shown.count(clause) == 1
        assert "Assumes that" not in shown
        assert all(text.partition(" Assumes that ")[0] in shown for text in texts)
