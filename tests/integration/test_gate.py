"""`rankwatch gate`: the exit code is the answer."""

import json
import random
from xml.etree import ElementTree as ET

import pytest

from tests.commands import events, rankwatch, write

SKILLS = {"strong": 0.8, "twin": 0.8, "weak": 0.4}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("gate") / "results.jsonl"
    write(path, events(random.Random(12), SKILLS, 200))
    return path


def test_reasons_name_flags_on_the_command_line_and_fields_in_json(tmp_path):
    """A reader of JSON may have no flags: the declaration has fields."""
    items = [{"benchmark": "b", "item_id": str(k), "model": m, "score": k % 2} for k in range(9) for m in "xy"]
    path = write(tmp_path / "a.jsonl", items)
    wrong = (path, "--items", 5)
    field, flag = "declare the right one (items: N)", "declare the right one (--items N)"
    for form, said, other in (
        ("json", field, flag),
        ("table", flag, field),
        ("markdown", flag, field),
        ("html", flag, field),
    ):
        shown = " ".join(rankwatch("report", *wrong, "--format", form).stdout.split())
        assert said in shown
        assert other not in shown
    assert flag in rankwatch("gate", *wrong, "--pair", "x", "y", code=3).stdout
    answer = json.loads(rankwatch("gate", *wrong, "--pair", "x", "y", "--format", "json", code=3).stdout)
    assert field in answer["pair"]["reason"]


def test_a_verdict_has_one_scope_and_a_held_board_promises_nothing(results):
    assert "for this pair only" not in rankwatch("gate", results, "--pair", "strong", "weak").stdout
    for form in ("table", "markdown", "html"):
        assert "At most" in rankwatch("report", results, "--format", form).stdout
        assert "At most" not in rankwatch("report", results, "--items", "5", "--format", form).stdout


@pytest.mark.parametrize(
    ("pair", "code", "words"),
    [
        (("strong", "weak"), 0, "decided family-wise: strong is better than weak"),
        (("weak", "strong"), 4, "decided family-wise: strong is better than weak"),
        (("strong", "twin"), 3, "undecided: no verdict for strong against twin"),
    ],
)
def test_the_exit_code_answers_for_the_pair_in_the_order_in_which_it_was_named(results, pair, code, words):
    printed = rankwatch("gate", results, "--pair", *pair, code=code).stdout
    assert printed.startswith(words)
    full = json.loads(rankwatch("gate", results, "--pair", *pair, "--format", "json", code=code).stdout)
    assert (full["exit_code"], full["decided"]) == (code, {0: "a", 4: "b", 3: None}[code])
    gap, interval = full["pair"]["gap"], (full["pair"]["gap_low"], full["pair"]["gap_high"])
    sign = 1 if full["pair"]["model_a"] == pair[0] else -1
    assert f"gap A - B {100 * sign * gap:+.2f} points" in printed
    assert (
        f"interval {100 * min(sign * x for x in interval):+.2f} to {100 * max(sign * x for x in interval):+.2f}"
        in printed
    )


@pytest.mark.parametrize(
    ("pair", "code", "level"), [(("strong", "weak"), 0, "notice"), (("weak", "strong"), 4, "error")]
)
def test_the_formats_of_pipelines(results, pair, code, level):
    annotation = rankwatch("gate", results, "--pair", *pair, "--format", "github", code=code).stdout
    assert annotation.startswith(f"::{level} title=rankwatch gate ")
    assert annotation.count("\n") == 1
    suite = ET.fromstring(rankwatch("gate", results, "--pair", *pair, "--format", "junit", code=code).stdout)
    assert suite[0].get("failures") == ("0" if code == 0 else "1")
    assert (suite[0][0].find("failure") is None) == (code == 0)


def test_names_from_outside_cannot_break_out_of_a_format(tmp_path):
    hostile = ['a"><x>]]>&', "::error::,%0A:b"]
    write(tmp_path / "r.jsonl", events(random.Random(1), dict.fromkeys(hostile, 0.5), 30))
    command = ("gate", tmp_path / "r.jsonl", "--pair", *hostile)
    suite = ET.fromstring(rankwatch(*command, "--format", "junit", code=3).stdout)
    assert suite[0][0].get("name") == f"{hostile[0]} better than {hostile[1]}"
    lines = rankwatch(*command, "--format", "github", code=3).stdout.splitlines()
    assert len(lines) == 1
    assert "%250A" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--pair", "strong", "weke"), 2, "no model weke; did you mean weak?"),
        (("--pair", "strong", "strong"), 2, "names strong twice"),
        (("--pair", "strong", "weak", "--benchmark", "other"), 2, "--benchmark other is not in the files"),
        (("--pair", "strong"), 2, "--pair needs 2 values"),
        ((), 2, "--pair"),
    ],
)
def test_a_call_that_cannot_be_right_is_refused_with_the_remedy(results, arguments, code, words):
    assert words in rankwatch("gate", results, *arguments, code=code).stderr


def test_two_benchmarks_have_to_be_chosen_from(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / f"{name}.jsonl", events(random.Random(5), SKILLS, 60, benchmark=name))
    refused = rankwatch("gate", tmp_path, "--pair", "strong", "weak", code=2).stderr
    assert "2 benchmarks have results of both models; choose one with --benchmark: one, two" in refused
    assert "on two" in rankwatch("gate", tmp_path, "--pair", "strong", "weak", "--benchmark", "two").stdout


def test_without_an_order_the_pair_is_held(tmp_path):
    records = [{"declare": "bench", "order": "none", "alpha": 0.01}, *events(random.Random(5), SKILLS, 60)]
    name = records[1]["benchmark"]
    records[0] = {"declare": name, "order": {"policy": "completion"}, "items": 10}
    write(tmp_path / "r.jsonl", records)
    printed = rankwatch("gate", tmp_path / "r.jsonl", "--pair", "strong", "weak", code=3).stdout
    assert printed.startswith("held: ")
    assert printed.count("60 items arrived and 10 were declared") == 1


def test_a_broken_file_is_a_fault(tmp_path):
    (tmp_path / "r.jsonl").write_text("{}\n")
    assert "benchmark" in rankwatch("gate", tmp_path / "r.jsonl", "--pair", "a", "b", code=1).stderr


def test_the_gate_takes_an_epoch_as_the_report_does(tmp_path):
    first = write(tmp_path / "1.jsonl", [{**each, "score": 1 - each["score"]} for each in pair_of_models()])
    second = write(tmp_path / "2.jsonl", pair_of_models())
    gate = ["gate", first, second, "--pair", "a", "b"]
    rankwatch(*gate, code=4)
    rankwatch(*gate, "--epoch", "next", code=0)
    part = write(tmp_path / "3.jsonl", pair_of_models()[:10])
    rankwatch("gate", second, part, "--pair", "a", "b", "--epoch", "next", "--inherit", code=0)
    assert "--inherit: give the epoch" in rankwatch(*gate, "--inherit", code=2).stderr


def pair_of_models():
    """Forty items of two models: a is right on all, b on none."""
    return [
        {"benchmark": "bench", "item_id": f"i{k}", "model": model, "score": int(model == "a")}
        for model in "ab"
        for k in range(40)
    ]
