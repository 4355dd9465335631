"""The README is short, and its numbers come from the code that it prints and from the published counts."""

import json
import math
import re
import subprocess
import sys
from itertools import combinations

from scipy.stats import norm

from docs.generate.outputs import TWO_MODELS
from monitor.paper.demo.top_ten import MODELS, PAIRS
from monitor.paper.published import PAPER
from stats.fixed_n.mcnemar import exact_p
from tests.commands import rankwatch
from tests.unit.test_documented_commands import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_is_read_in_five_minutes():
    assert len(README.encode()) <= 6 * 1024


def test_the_ten_lines_print_the_p_value_of_the_gate():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    wins, losses, p = ran.stdout.split()
    files = [str(ROOT / TWO_MODELS / f"{name}.csv") for name in ("new", "old")]
    pair = json.loads(rankwatch("gate", *files, "--pair", "new", "old", "--format", "json").stdout)["pair"]
    assert (int(wins), int(losses)) == (pair["b"], pair["c"])
    assert math.isclose(float(p), pair["p_exact"])
    assert f"# {wins} {losses} {float(p):.2g}" in code


def rows():
    """The rows of the table of changed verdicts: neighbours, scores, usual reading and verdict."""
    section = README.partition("## What it changed")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "][
        1:
    ]


def published(neighbours):
    """The printed counts of the pair that a row names."""
    if ranks := re.search(r"ranks (\d+) and \d+: (\S+), (\S+)", neighbours):
        k = int(ranks[1])
        assert MODELS[k - 1].startswith(ranks[2])
        assert MODELS[k].startswith(ranks[3])
        return PAIRS[k - 1]
    return next(pair for pair in PAPER.oll if pair.name == "HS gem/L8B")


def test_the_table_of_changed_verdicts_follows_from_the_published_counts():
    assert len(rows()) == 4
    pairs_of_ten = len(list(combinations(MODELS, 2)))
    for neighbours, scores, usual, verdict in rows():
        pair = published(neighbours)
        assert scores == f"{100 * pair.p_a:.2f}, {100 * pair.p_b:.2f}"
        if "error bars overlap" in usual:
            bars = [norm.ppf(0.975) * math.sqrt(p * (1 - p) / pair.items) for p in (pair.p_a, pair.p_b)]
            assert pair.p_a - bars[0] < pair.p_b + bars[1]
        exact = float(exact_p(pair.b, pair.c))
        if verdict.startswith("decided"):
            assert exact <= 0.05 / pairs_of_ten  # the strictest level of a step-down over all pairs
        else:
            assert exact > 0.05
        if items := re.search(r"(\d+) items to (\d+)", verdict):
            assert (pair.b, pair.c) == (int(items[1]), int(items[2]))
        if p := re.search(r"chi-squared p = (\.\d+)", usual):
            assert float(p[1]) < 0.05
            assert p[1] == pair.p_chi2[1:]
            assert verdict.endswith(f"p = {pair.p_exact[1:]}")
