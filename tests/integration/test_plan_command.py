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


# --- goals ------------------------------------------------------------------------------------------------------------------------------

GOAL = ("--boards", "10", "--items", "300")


def test_a_goal_is_planned_from_a_pilot_with_costs(pilot):
    planned = plan("--goal", "top:1", pilot, "--benchmark", "one", *GOAL, "--price", "a=0.5", "--price", "0.1")
    assert (planned["goal"], planned["models"], planned["items"]) == ("best", ["a", "b", "c"], 300)
    assert planned["source"].startswith("3 models on 200 items of one in ")
    race, full = planned["procedures"]["committed"], planned["procedures"]["completion"]
    assert race["benchmark_items"] == full["benchmark_items"] == 300
    assert race["scores"]["0.5"] <= full["scores"]["0.5"] <= 900
    assert 0.1 * race["scores"]["0.9"] < race["cost"]["0.9"] < 0.5 * race["scores"]["0.9"]
    assert planned == plan(
        "--goal", "best", "--pilot", pilot, "--benchmark", "one", *GOAL, "--price", "a=0.5", "--price", "0.1"
    )


def test_a_goal_is_planned_from_accuracies():
    models = "--model", "good=0.9", "--model", "bad=0.4", "--rho", "0.2"
    planned = plan("--goal", "pair:good,bad", *models, *GOAL)
    race = planned["procedures"]["committed"]
    assert race["met"] == 1
    assert race["items"]["0.5"] <= 100
    assert race["median_items_by_model"].keys() == {"good", "bad"}
    text = rankwatch("plan", "--goal", "best", *models, *GOAL).stdout
    assert "committed race" in text
    assert "accuracies bad 0.4, good 0.9" in text


def test_prices_may_be_those_of_tokens(tmp_path):
    table = tmp_path / "prices.csv"
    table.write_text("model,price,tokens\ngood,0.000001,2000\nbad,0.000002,500\n", encoding="utf-8")
    models = "--model", "good=0.9", "--model", "bad=0.4", "--rho", "0.2"
    race = plan("--goal", "best", *models, *GOAL, "--prices", table)["procedures"]["committed"]
    assert race["cost"]["0.5"] == pytest.approx(race["scores"]["0.5"] / 2 * 0.003)


MADE = ("--model", "a=0.9", "--model", "b=0.4")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--goal", "best"], "give a pilot"),
        (["--goal", "first", *MADE], "the goal 'first' is unknown"),
        (["--goal", "best", *MADE], "give --rho with --model"),
        (["--goal", "best", *MADE, "--rho", "0.9"], "not possible between these models"),
        (["--goal", "best", "--model", "a", "--rho", "0.1"], "give a name and an accuracy"),
        (["--goal", "best", "--model", "a=0.5", "--rho", "0.1"], "needs two models"),
        (["--goal", "top:2", *MADE, "--rho", "0.1"], "it is met without an item"),
        (["--goal", "pair:a,z", *MADE, "--rho", "0.1"], "there is no model z; the models are a, b"),
        (["--goal", "best", *MADE, "--rho", "0.1", "--price", "a=1"], "b has no price"),
        (["--goal", "best", *MADE, "--rho", "0.1", "--price", "z=1", "--price", "1"], "there is no model z"),
        (["--goal", "best", *MADE, "--rho", "0.1", "--price", "a=-1"], "a price of 0 or more"),
        (["--goal", "best", *MADE, "--rho", "0.1", "--gap", "0.1"], "--gap is not for a plan of a goal"),
        (["--goal", "best", *MADE, "--rho", "0.1", "--items", "1000000000"], "takes at most"),
        (["--goal", "best", "PILOT"], "choose one with --benchmark: one, two"),
        (["--gap", "0.1", "--price", "1"], "--price is for a plan of a goal"),
    ],
)
def test_goals_that_cannot_be_planned(pilot, arguments, says):
    ended = rankwatch("plan", *[str(pilot) if x == "PILOT" else x for x in arguments], code=2)
    assert ended.stdout == ""
    assert says in ended.stderr


def test_a_look_is_part_of_a_plan_of_a_gap_and_of_a_goal():
    asked = ("--gap", "0.05", "--discordance", "0.2", "--items", "1500")
    bets, with_look = plan(*asked), plan(*asked, "--look", "0.2")
    assert with_look["levels"]["anytime"] == pytest.approx(0.04)
    assert with_look["levels_at_end"]["anytime"] == pytest.approx(0.01)
    assert with_look["required_n"]["anytime"] < bets["required_n"]["anytime"]
    assert with_look["required_n"]["completion"] == bets["required_n"]["completion"]
    assert "one pair at p ≤ 0.01" in rankwatch("plan", *asked, "--look", "0.2").stdout
    goal = (
        "--goal",
        "best",
        "--model",
        "a=0.7",
        "--model",
        "b=0.6",
        "--rho",
        "0.5",
        "--items",
        "200",
        "--boards",
        "20",
    )
    assert plan(*goal, "--look", "0.5")["look"] == 0.5
    ended = rankwatch("plan", "--admit", "a", "--look", "0.2", code=2)
    assert "--look is not for a plan of an admission" in ended.stderr
