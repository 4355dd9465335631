"""The loops over events: formulas against `stats`, the room they ask for, and the cache of compiled code."""

import json
import os
import subprocess
import sys
from itertools import islice
from math import log

import numpy as np
import pytest

from monitor.engine.loop import board, compiled, evidence, kernels
from monitor.settings import unknown_variables
from stats.evidence.eprocess import log_completion_bound, log_e_value
from stats.families.error_control import place_weights
from tests.fold_log import FoldLog, packed
from tests.golden.verdict_digests import POLICIES, RECORDED, digest, made
from tests.loop_streams import compare

MIXTURES = ["beta(1,1)", "beta(2,2)", "beta(0.5,3)", "beta(100,100)", "grid98", "two_point(0.3,0.6)"]


def rule_of(mixture="beta(1,1)", items=400, **order):
    log = FoldLog({"declare": "bench", "order": "trusted", "mixture": mixture, **order})
    log.send(packed(np.array([[1, 0]]), "ab"))
    return board.Loop(log.bench)._rule(items)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_evidence_is_that_of_the_formulas(mixture):
    rule = rule_of(mixture)
    for b, c in ((0, 0), (0, 7), (9, 9), (31, 12), (150, 160), (2, 250), (200, 0)):
        assert kernels.log_e(rule, b, c) == pytest.approx(float(log_e_value(b, c, mixture)), rel=1e-11, abs=1e-11)
        for side, half in zip((1, -1), log_completion_bound(b, c, 0, mixture), strict=True):
            assert evidence.log_half(rule, b, c, side) == pytest.approx(float(half), rel=1e-10, abs=1e-10)


def binomials(n):
    """The binomial coefficients of n, each from the one before."""
    number = 1
    for k in range(n + 1):
        yield number
        number = number * (n - k) // (k + 1)


def test_the_exact_test_is_that_of_the_formula():
    """In whole numbers, to the last digits: 2 P(X >= lead) has a numerator of sums of binomial coefficients."""
    rule = rule_of(items=12_000)
    for b, c, missing in ((0, 0, 0), (9, 2, 0), (9, 2, 7), (9, 2, 6), (40, 200, 100), (1, 0, 399), (6_300, 5_500, 200)):
        lead, trail = max(b, c), min(b, c) + missing
        tail = 2 * sum(islice(binomials(lead + trail), trail + 1))
        expected = max(0, -log(tail / 2 ** (lead + trail))) if lead > trail else 0
        assert evidence.log_exact(rule, b, c, missing) == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("capacity", [None, 1, 7, 5_000])
def test_the_weight_of_a_place_is_that_of_the_formula(capacity):
    place = np.array([*range(1, 3_000), 10**5, 12_497_500])
    weights = np.array([kernels.weight_at(capacity or 0, k) for k in place.tolist()])
    np.testing.assert_allclose(weights, place_weights(place, capacity), rtol=1e-15)
    assert kernels.weight_at(capacity or 0, 0) == 0


@pytest.mark.parametrize("policy", ["trusted", "completion", "committed"])
def test_a_loop_without_room_goes_on_where_it_stopped(policy, monkeypatch):
    monkeypatch.setattr(board, "_ROWS", 1)
    recorded = json.loads(RECORDED.read_text())
    assert digest(made(1, POLICIES[policy])) == recorded[f"made 1, {policy}"]


@pytest.mark.parametrize("seed", range(24))
def test_random_streams_agree_with_the_oracle(seed):
    compare(seed)


@pytest.mark.skipif(compiled.mode() != "compiled", reason="Numba is not installed")
def test_each_loop_is_compiled_once():
    for policy in ("trusted", "trusted grid98 capacity", "completion", "committed"):
        digest(made(2, POLICIES[policy], items=40))
    log = FoldLog({"declare": "bench", "order": "trusted"})
    # Rows of several repeats hold wider codes than those that the loop reads.
    events = [{**event, "repeat": k % 2} for k, event in enumerate(packed(np.eye(6), "abcdef")["events"])]
    log.send({"events": events})
    dispatchers = [each for each in vars(kernels).values() if hasattr(each, "signatures")]
    assert len(dispatchers) > 30
    assert max(len(each.signatures) for each in (kernels.fold, kernels.fill, kernels.rebuild, kernels.refresh)) == 1
    assert all(each.targetoptions["_nrt"] is False for each in dispatchers), (
        "a private option of Numba: see decision 38"
    )


@pytest.mark.full
@pytest.mark.parametrize("way", ["interpreted", "checked"])
def test_every_way_of_running_the_loops_gives_the_same_digest(way):
    names = "trusted", "completion", "committed", "committed look"
    code = (
        "from tests.golden.verdict_digests import *\n"
        f"print(json.dumps({{name: digest(made(1, POLICIES[name])) for name in {list(names)}}}))"
    )
    environment = os.environ | {compiled.SWITCH: way}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    recorded = json.loads(RECORDED.read_text())
    for name, result in json.loads(found.stdout).items():
        assert result == recorded[f"made 1, {name}"]


def test_a_complete_cache_next_to_the_program_need_not_be_writable(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "KERNELS", tmp_path / "kernels.py")
    monkeypatch.setattr(compiled, "_digest", lambda: "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    beside = compiled.cache_folder()
    assert beside.parent == tmp_path / "__pycache__"
    monkeypatch.setattr(compiled.os, "access", lambda *_: False)
    assert compiled.cache_folder().is_relative_to(tmp_path / "user")
    beside.mkdir(parents=True)
    (beside / "complete").touch()
    assert compiled.cache_folder() == beside


def test_a_report_without_a_declared_order_loads_no_compiler(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in packed(np.eye(4), "abcd")["events"]))
    code = "\n".join(
        [
            "import sys, monitor.cli",
            f"sys.argv = ['rankwatch', 'report', {str(path)!r}]",
            "try: monitor.cli.main()",
            "except SystemExit: pass",
            "print('numba' in sys.modules)",
        ]
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split()[-1] == "False", found.stdout


def test_the_switch_is_not_taken_for_a_misspelt_setting():
    assert unknown_variables({compiled.SWITCH: "interpreted"}) == []
