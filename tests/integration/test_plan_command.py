"""`rankwatch plan` from the command line, with a pilot and without."""

import json
import random

import pytest

from tests.commands import events, rankwatch, report, write


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    rng = random.Random(2)
    records = events(rng, {"a": 0.7, "b": 0.6, "c": 0.6}, 200, benchmark="one")
    for k, record in enumerate(records):
        record["cluster"] = f"c{k % 8}"
    records += events(rng, {"a": 0.5, "b": 0.6}, 100, benchmark="two")
    return write(tmp_path_factory.mktemp("pilot") / "pilot.jsonl", records)


def plan(*arguments):
    return json.loads(rankwatch("plan", *arguments, "--format", "json").stdout)


def test_a_pilot_gives_gap_discordance_and_design_effect(pilot):
    planned = plan("--pilot", pilot, "--pair", "b", "a", "--benchmark", "one")
    (pair,) = (p for p in report(pilot)[0]["benchmarks"][0]["pairs"] if {p["model_a"], p["model_b"]} == {"a", "b"})
    assert planned["gap"] == pytest.approx(abs(pair["gap"]))
    assert planned["discordance"] == pytest.approx((pair["b"] + pair["c"]) / pair["n"])
    assert planned["design_effect"] == pair["cluster"]["design_effect"]
    assert planned["required_n"]["fixed_n"] == pytest.approx(pair["required_n"])
    assert "a small pilot may exaggerate" in planned["source"]
    other = plan("--pilot", pilot, "--pair", "a", "c", "--gap", "0.05")
    assert (other["gap"], other["source"].split(" in ")[0]) == (0.05, "200 items of one")


def test_a_table_names_each_procedure_and_what_it_holds_for():
    text = rankwatch(
        "plan", "--gap", "0.02", "--accuracy", "0.6", "--rho", "0.5", "--items", "12032", "--family", "45"
    ).stdout
    assert all(
        words in text for words in ("fixed n", "Bonferroni", "anytime family", "45 pairs", "4,708", "1.25 points")
    )
    assert "Bonferroni" not in rankwatch("plan", "--items", "12032", "--discordance", "0.26").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gap", "0.1"], "--accuracy and --rho, --discordance, or --pilot"),
        (["--gap", "0.1", "--rho", "0.5"], "give --accuracy and --rho together"),
        (["--gap", "0.1", "--discordance", "0.2", "--accuracy", "0.5", "--rho", "0"], "in one way"),
        (["--discordance", "0.2"], "give a target"),
        (["--discordance", "0.2", "--gap", "0.3"], "at most 0.2"),
        (["--discordance", "0.2", "--gap", "0.1", "--pair", "a", "b"], "give --pilot PATH too"),
        (["--discordance", "0.2", "--gap", "0.1", "--mixture", "flat"], "mixture 'flat' is unknown"),
        (["--pilot", "PILOT"], "--pilot needs --pair A B"),
        (["--pilot", "PILOT", "--pair", "a", "b"], "choose one with --benchmark"),
        (["--pilot", "PILOT", "--pair", "a", "z"], "no model z; the files have a, b, c"),
        (["--pilot", "PILOT", "--pair", "a", "b", "--benchmark", "none"], "choose one of one, two"),
        (["--pilot", "missing.jsonl", "--pair", "a", "b"], "missing.jsonl does not exist"),
    ],
)
def test_what_cannot_be_planned_is_said(pilot, arguments, says):
    arguments = [str(pilot) if x == "PILOT" else x for x in arguments]
    ended = rankwatch("plan", *arguments, code=2)
    assert ended.stdout == ""
    assert says in ended.stderr


def test_the_pilot_is_the_benchmark_in_which_the_two_models_share_items(tmp_path):
    rng = random.Random(4)
    apart = [*events(rng, {"a": 0.7}, 50, benchmark="two"), *events(rng, {"b": 0.6}, 50, benchmark="two", start=50)]
    path = write(tmp_path / "pilot.jsonl", [*events(rng, {"a": 0.7, "b": 0.6}, 60, benchmark="one"), *apart])
    assert plan("--pilot", path, "--pair", "a", "b", "--gap", "0.02")["source"].startswith("60 items of one in ")
    refused = rankwatch("plan", "--pilot", write(tmp_path / "apart.jsonl", apart), "--pair", "a", "b", code=2).stderr
    assert "--pair: a, b share no items in two; compare two that do" in refused
