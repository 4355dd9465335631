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


def test_a_pilot_gives_a_range_and_its_clusters_but_never_its_gap(pilot):
    planned = plan("--pilot", pilot, "--pair", "b", "a", "--benchmark", "one")
    (pair,) = (p for p in report(pilot)[0]["benchmarks"][0]["pairs"] if {p["model_a"], p["model_b"]} == {"a", "b"})
    low, high = planned["effect"]["interval"]
    assert low < planned["effect"]["gap"] < planned["effect"]["pilot_gap"] == pytest.approx(pair["gap"])
    assert planned["gap"] is None
    assert planned["required_n"]["fixed_n"] > pair["required_n"]
    lower, upper = planned["required_n_interval"]["fixed_n"]
    assert upper < planned["required_n"]["fixed_n"]
    assert (lower is None) == (low < 0 < high)
    assert planned["clusters"] == {"clusters": 8, "icc": max(pair["cluster"]["icc"], 0), "items": 25}
    other = plan("--pilot", pilot, "--pair", "a", "c", "--gap", "0.05")
    assert (other["gap"], other["effect"], other["source"].split(" in ")[0]) == (0.05, None, "200 items of one")
    text = rankwatch("plan", "--pilot", pilot, "--pair", "a", "b", "--benchmark", "one").stdout
    assert text.index("the gap is between") < text.index("procedure")


def test_a_table_names_each_procedure_and_what_it_holds_for():
    text = rankwatch(
        "plan", "--gap", "0.02", "--accuracy", "0.6", "--rho", "0.5", "--items", "12032", "--family", "45"
    ).stdout
    assert all(
        words in text
        for words in (
            "fixed n",
            "Bonferroni",
            "completion",
            "45 declared pairs",
            "pair 45 of `watch`",
            "4,807",
            "0.994",
        )
    )
    assert "four times" not in text
    assert "Bonferroni" not in rankwatch("plan", "--items", "12032", "--discordance", "0.26").stdout


def test_clusters_and_their_correlation_replace_a_design_effect():
    planned = plan("--gap", "0.05", "--discordance", "0.26", "--clusters", "14", "--icc", "0.05")
    assert planned["required_n"]["clustered"] is None
    assert planned["clusters_needed"]["any_size"] > 14
    text = rankwatch("plan", "--gap", "0.05", "--discordance", "0.26", "--clusters", "14", "--icc", "0.05").stdout
    assert "no number of items suffices" in " ".join(text.split())
    assert "no such option: --design-effect" in rankwatch("plan", "--design-effect", "2", code=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gap", ".5", "--accuracy", ".5", "--rho", "0"],
        ["--items", "100", "--discordance", "1"],
        ["--gap", "1", "--discordance", "1"],
        ["--gap", "1e-9", "--discordance", "1e-9"],
        ["--items", "1", "--discordance", ".5"],
        ["--items", "1000000000000", "--gap", ".1", "--discordance", ".5"],
    ],
)
def test_extremes_have_a_plan(arguments):
    text = rankwatch("plan", *arguments).stdout
    assert "nan" not in text.lower()
    assert "completion" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gap", "0.1"], "--accuracy and --rho, --discordance, or --pilot"),
        (["--gap", "0.1", "--rho", "0.5"], "give --accuracy and --rho together"),
        (["--gap", "0.1", "--discordance", "0.2", "--accuracy", "0.5", "--rho", "0"], "in one way"),
        (["--discordance", "0.2"], "give a target"),
        (["--discordance", "0.2", "--gap", "0.3"], "at most 0.2"),
        (["--discordance", "0.2", "--gap", "0"], "no number of items decides a gap of 0"),
        (["--discordance", "0.2", "--gap", "-0.1"], "--gap -0.1: use 0 or more"),
        (["--discordance", "0.2", "--gap", "20"], "--gap 20: use 1 or less"),
        (["--discordance", "nan", "--gap", "0.1"], "--discordance nan: use"),
        (["--discordance", "0", "--gap", "0.1"], "no gap is possible"),
        (["--accuracy", "0.5", "--rho", "1", "--gap", "0.1"], "no gap is possible"),
        (["--discordance", "0.2", "--gap", "0.1", "--clusters", "5"], "give --clusters and --icc together"),
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
