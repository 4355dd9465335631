"""`reproduce`: what agrees, what differs and why, and that the computed column is computed."""

import doctest
import json
import os
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from scipy.stats import binom

from monitor.paper.reproduce import PAPER, Row, Section, as_json, counts, render_table, run, simulations
from monitor.paper.reproduce.lattice import bootstrap_power, bootstrap_rejects, bootstrap_tails
from monitor.paper.reproduce.rows import UNEXPLAINED, figures, items, number, parse, proportion, word
from monitor.paper.reproduce.simulations import STREAMS, stopping_times


@pytest.fixture(scope="module")
def sections():
    return run()


def rows(sections, title):
    (section,) = [section for section in sections if section.title.startswith(title)]
    return {row.name: row for row in section.rows}


def test_every_row_that_is_not_equal_is_explained(sections):
    for section in sections:
        for row in section.rows:
            assert row.verdict in {"equal", "compatible", "differs", "not_recomputable", "not_printed"}
            assert row.note or row.verdict == "equal", row
            assert UNEXPLAINED not in row.note
            assert (row.computed is None) == (row.verdict == "not_recomputable")


def test_equal_means_equal_to_the_printed_digits(sections):
    """Of 169 rows once called the same 35 lay outside the printed digits, 26 were words, and others were made of what is printed."""
    equal = [row for section in sections for row in section.rows if row.verdict == "equal"]
    for row in equal:
        if isinstance(row.computed, str):
            assert re.findall(r"\d+", row.published) == re.findall(r"\d+", row.computed) != []
        else:
            value, half_unit = parse(row.published)
            assert row.published[0] not in "<>"
            assert abs(row.computed - value) <= half_unit * (1 + 1e-9), row
    names = {row.name for row in equal}
    assert not any(name.endswith(("printed design effect", ": verdict", "contains 0")) for name in names)
    assert not names & {"median ICC", "unresolved, anytime with the paper's constant 2.15"}


def test_a_compatible_number_names_its_distance(sections):
    for section in sections:
        for row in section.rows:
            if row.verdict == "compatible" and isinstance(row.computed, float) and row.published[0] not in "<>":
                distance = row.computed - parse(row.published)[0]
                off = float(row.note.removeprefix("off by ").partition(";")[0].replace(",", ""))
                assert off == pytest.approx(distance, rel=0.05), row
                assert len(row.note.partition("; ")[2]) > 10, row


def test_what_agrees_and_what_differs(sections):
    differing = {row.name for section in sections for row in section.rows if row.verdict == "differs"}
    assert differing == {
        "unresolved, all pairs m = 45",
        "not decided by the e-process (e < 20 at the end)",
        "pairs that flip to N* > 3 N",
        "pairs that drive the flip (4 v 5, 5 v 6, 6 v 7)",
        "midpoint of the unresolved counts [5, 9] over cluster definitions",
        "largest |n_h / N* - 1/2| at delta .05, below",
        "largest |n_h / N* - 1/2| at delta .20, below",
        "median relative error of C delta^2, delta up to .05",
        "MMLU-Pro: smallest n_h / N*",
        "MMLU-Pro: largest n_h / N*",
        "C grows with rho off the midpoint (p = .8)",
        "R pwr.2p.test per group",
        "R pwr.2p.test per group, times (1 - rho)",
        "anytime, smallest over the pairs (52 discordant items)",
        "anytime, largest over the pairs (3134 discordant items)",
        "anytime, of the pair whose boundary is nearest",
        *(
            f"{test}: largest deviation from power .80 (pp)"
            for test in ("chi2", "exact", "mid", "corrected", "bootstrap")
        ),
    }
    total = counts(sections)
    assert (total["equal"], total["compatible"]) == (109, 60)
    assert total["differs"] == len(differing)


def test_every_row_of_the_tables_of_counts_agrees(sections):
    for title, pairs in (("Open LLM Leaderboard v1: close", 7), ("MMLU-Pro: adjacent", 9)):
        table = rows(sections, title)
        assert len(table) == 4 * pairs
        assert all(row.verdict in {"equal", "compatible"} for row in table.values())


def test_reference_values_of_the_verdict_and_arbiter_tables(sections):
    verdicts = rows(sections, "MMLU-Pro: verdicts")
    assert_allclose(verdicts["5 v 6: ln e (grid98)"].computed, 4.3737559114, atol=1e-9)
    assert_allclose(verdicts["4 v 5: ln e (grid98)"].computed, 104.7856, atol=1e-4)
    assert verdicts["not decided by the e-process (e < 20 at the end)"].computed == "4/9"
    assert verdicts["unresolved, all pairs m = 45"].computed == "5/9"
    hella = rows(sections, "Four arbiters")["HS gem/L8B: bootstrap interval contains 0"]
    assert hella.computed == "yes"
    assert "P(mean <= 0) = 0.0254, P(mean < 0) = 0.0230" in hella.note


def test_changing_one_input_count_changes_the_computed_column(sections):
    pairs = list(PAPER.mmlu)
    pairs[0] = pairs[0]._replace(b=254)
    changed = run(paper=replace(PAPER, mmlu=tuple(pairs)))
    before, after = (rows(s, "MMLU-Pro: adjacent") for s in (sections, changed))
    moved = {name for name in before if before[name].computed != after[name].computed}
    assert moved == {"1 v 2: rho", "1 v 2: p chi2", "1 v 2: p exact", "1 v 2: N*"}
    assert {before[name].published for name in moved} == {after[name].published for name in moved}
    assert after["1 v 2: N*"].verdict == "differs"
    assert after["1 v 2: N*"].note == UNEXPLAINED
    name = "1 v 2: ln e (grid98)"
    assert rows(sections, "MMLU-Pro: verdicts")[name].computed != rows(changed, "MMLU-Pro: verdicts")[name].computed


def test_a_tie_in_the_input_is_shown_and_breaks_nothing():
    pairs = list(PAPER.mmlu)
    pairs[5] = pairs[5]._replace(b=1439)
    changed = run(paper=replace(PAPER, mmlu=tuple(pairs)))
    assert rows(changed, "MMLU-Pro: adjacent")["6 v 7: N*"].computed == np.inf
    assert '"computed": "inf"' in as_json(changed)


def test_json_and_table_hold_every_row(sections):
    data = json.loads(as_json(sections))
    assert data["summary"] == counts(sections)
    first = data["sections"][0]["rows"][0]
    assert set(first) == {"name", "published", "computed", "verdict", "note"}
    assert sum(len(section["rows"]) for section in data["sections"]) == sum(data["summary"].values())
    out = StringIO()
    Console(file=out, width=300).print(render_table(sections))
    for section in sections:
        assert section.title in out.getvalue()
        for row in section.rows:
            assert row.name in out.getvalue()
    assert "5,786.8" in out.getvalue()
    assert "9.86e-14" in out.getvalue()


def test_progress_counts_the_steps():
    seen = []
    run(progress=lambda name, done, total: seen.append((name, done, total)))
    assert [done for _, done, _ in seen] == list(range(len(seen)))
    assert seen[-1] == ("done", len(seen) - 1, len(seen) - 1)


@pytest.mark.parametrize(
    ("published", "value", "half_unit"),
    [
        ("1,697", 1697, 0.5),
        (".049", 0.049, 0.0005),
        ("9.9e-14", 9.9e-14, 5e-16),
        ("<1e-15", 1e-15, 5e-16),
        ("7e3", 7000, 500),
    ],
)
def test_printed_numbers_are_read_with_their_precision(published, value, half_unit):
    assert_allclose(parse(published), (value, half_unit))


def test_rules_of_agreement():
    def verdicts(*rows):
        return [row.verdict for row in rows]

    assert verdicts(number("", "0.049", 0.04949), number("", "0.049", 0.04951)) == ["equal", "differs"]
    assert verdicts(number("", "<1e-15", 1e-16), number("", "<1e-15", 1e-14)) == ["compatible", "differs"]
    assert verdicts(number("", ">0.97", 0.98)) == ["compatible"]
    assert verdicts(items("", "433", 432.6), items("", "433", 432.01), items("", "433", 431.9)) == [
        "equal",
        "compatible",
        "differs",
    ]
    assert items("", "433", 432.01).note == "off by -0.99; the paper rounds up"
    assert verdicts(items("", "2,727,127", 2727353.5), items("", "100", np.inf)) == ["compatible", "differs"]
    assert verdicts(proportion("", "0.80", 0.82, (1000,)), proportion("", "0.80", 0.85, (1000,))) == [
        "compatible",
        "differs",
    ]
    assert verdicts(figures("", "4/9", "4/9"), figures("", "4/9", "5/9"), figures("", "3 of 3", "3 of 3")) == [
        "equal",
        "differs",
        "equal",
    ]
    assert verdicts(word("", "yes", "yes"), word("", "yes", "no")) == ["compatible", "differs"]
    assert number("", "1", 1.0, reuses="that").note == "off by +0; made of that"
    assert number("", "1", 1.0, reuses="that").verdict == "compatible"
    assert number("", "1", 2.0, because="of this").note == "of this"
    assert counts([Section("", "", (Row("", "", None, "not_recomputable"), number("", "1", 1.0)))]) == {
        "equal": 1,
        "compatible": 0,
        "differs": 0,
        "not_recomputable": 1,
        "not_printed": 0,
    }


@pytest.mark.parametrize(("n", "b", "c"), [(40, 7, 3), (40, 40, 0), (12, 1, 0), (30, 4, 11)])
def test_exact_bootstrap_tails_equal_the_enumeration_of_all_resamples(n, b, c):
    wins, losses = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    inside = wins + losses <= n
    share = binom.pmf(losses, n - wins, min(1.0, c / (n - b)) if n > b else 0.0)
    law = np.where(inside, binom.pmf(wins, n, b / n) * share, 0.0)
    expected = [law[wins <= losses].sum(), law[wins < losses].sum()]
    assert_allclose(bootstrap_tails(n, b, c), expected, atol=1e-9)


def test_exact_bootstrap_power_is_the_mean_of_its_rejections():
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(500, [0.12, 0.08, 0.8], size=4000)
    assert_allclose(
        bootstrap_power(500, 0.12, 0.08), bootstrap_rejects(500, drawn[:, 0], drawn[:, 1]).mean(), atol=0.03
    )


def test_stopping_times_keep_their_level_and_grow_with_n_star():
    rng = np.random.default_rng(1)
    false = (stopping_times(0.1, 0.1, 1500, rng) > 0).mean()
    assert 0.01 < false < 0.05 + 2 * np.sqrt(0.05 * 0.95 / STREAMS)
    stops = stopping_times(115 / 1172, 87 / 1172, 5 * 2362, rng)
    assert (stops > 0).mean() > 0.98
    assert 1.2 < stops[stops > 0].mean() / 2362 < 1.4


FULL = os.environ.get("RANKWATCH_SLOW") == "1"


@pytest.mark.slow
def test_simulated_sections_agree_with_the_exact_ones(sections):
    trials = simulations.TRIALS if FULL else 400
    exact = rows(sections, "Five tests of a pair: exact")
    section = simulations.resampled_variants(PAPER, trials, 1000 if FULL else 200)
    for row in section.rows:
        if row.name.endswith("median power"):
            assert_allclose(row.computed, exact[row.name].computed, atol=2 * np.sqrt(0.16 / trials))
        assert row.verdict != "differs" or UNEXPLAINED not in row.note


@pytest.mark.slow
def test_simulated_bootstrap_power_crosses_near_n_star():
    for section in (
        simulations.bernoulli_power(2000 if FULL else 400),
        simulations.graded_power(*((1500, 400) if FULL else (150, 150))),
    ):
        for row in section.rows:
            assert abs(float(row.computed.rstrip(" %"))) < (6 if FULL else 20), row


@pytest.mark.slow
def test_simulated_e_process_rows():
    wide = 4 * 0.9 / np.sqrt(STREAMS if FULL else 500)
    table = {row.name: row for row in simulations.streams(PAPER, STREAMS if FULL else 500).rows}
    assert_allclose(table["mean stopping time over N*, smallest"].computed, 1.17, atol=wide)
    assert_allclose(table["mean stopping time over N*, largest"].computed, 1.27, atol=wide)
    for name in ("ARC, gap 2.4 pp: type I error", "ARC, gap 7.8 pp: type I error"):
        assert table[name].computed < 0.05 + 2 * np.sqrt(0.05 * 0.95 / (STREAMS if FULL else 500))
    for row in table.values():
        assert row.verdict != "differs" or UNEXPLAINED not in row.note


def test_full_adds_the_simulations(monkeypatch):
    made = Section("simulated", "", ())
    monkeypatch.setattr(simulations, "steps", lambda _: [("simulated", lambda: made)])
    assert made in run(full=True)
    assert made not in run(full=False)


def test_every_line_of_the_errata_gives_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "reference" / "errata.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 25
