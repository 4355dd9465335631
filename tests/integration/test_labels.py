"""`rankwatch report --labels`: what people prefer of a pair that a judge compared."""

import json
import random

import msgspec
import pytest

from schemas.results.report import Report
from stats.order import committed_order
from tests.commands import rankwatch, write

IDS = [f"q{k}" for k in range(600)]
ORDER = [IDS[k] for k in committed_order("people", IDS)]
PART = ORDER[::4]


def rows(score, items, models=("a", "b"), benchmark="chat"):
    return [
        {"benchmark": benchmark, "item_id": item, "model": model, "score": score(item, model)}
        for item in items
        for model in models
    ]


@pytest.fixture
def judge(tmp_path):
    """Results of a judge that favours a on every third item; of all others it finds both right."""
    path = tmp_path / "judge" / "judge.jsonl"
    path.parent.mkdir()
    write(path, rows(lambda item, model: int(model == "a" or int(item[1:]) % 3 > 0), IDS))
    return path


def people(tmp_path, score, items=PART, name="labels.jsonl", **more):
    return write(tmp_path / name, rows(score, items, **more))


def agrees(item, model):
    return int(model == "a" or int(item[1:]) % 3 > 0)


def labelled(judge, labels, *more, every=4, code=0):
    arguments = ("--labels", labels, "--label-seed", "people", "--label-every", every, *more)
    return rankwatch("report", judge, *arguments, code=code)


def read(judge, labels, **more):
    text = labelled(judge, labels, "--format", "json", **more).stdout
    (benchmark,) = msgspec.json.decode(text, type=Report).benchmarks
    return benchmark.labels


def test_people_agree_with_the_judge(judge, tmp_path):
    found = read(judge, people(tmp_path, agrees))
    (pair,) = found.pairs
    assert (pair.model_a, pair.model_b, pair.judge, pair.decided, pair.settled) == ("a", "b", "a", "a", "a")
    assert (pair.labels, pair.items, pair.next_item, pair.facts[0]["code"]) == (150, 600, None, "labels_agree")
    assert pair.correlation == pytest.approx(1)
    assert (found.seed, found.every, found.part, found.labelled, found.notes) == ("people", 4, 150, 150, [])
    text = labelled(judge, people(tmp_path, agrees)).stdout
    assert "People prefer a on items of this kind, as the judge alone does (150 labels, p = " in text.replace(
        "\n  ", " "
    )


def test_the_judge_alone_finds_what_the_labels_do_not_support(judge, tmp_path):
    rng = random.Random(4)
    labels = people(tmp_path, lambda _, __: rng.randint(0, 1))
    (pair,) = read(judge, labels).pairs
    assert (pair.judge, pair.decided, pair.facts[0]["code"]) == ("a", None, "labels_unsupported")
    for form in ("markdown", "html"):
        shown = labelled(judge, labels, "--format", form).stdout
        assert "What people prefer" in shown
        assert "The judge alone finds a better; the labels do not support it (150 labels" in shown


def test_people_contradict_the_judge(judge, tmp_path):
    (pair,) = read(judge, people(tmp_path, lambda item, model: 1 - agrees(item, model))).pairs
    assert (pair.judge, pair.decided, pair.settled) == ("a", "b", "b")
    assert pair.facts[0]["code"] == "labels_contradict"


def test_a_tie_of_all_items_is_settled(judge, tmp_path):
    (pair,) = read(judge, people(tmp_path, lambda _, __: 1, IDS), every=1).pairs
    assert (pair.labels, pair.decided, pair.settled) == (600, None, "tie")


def test_labels_that_were_chosen_by_their_scores_do_not_count(judge, tmp_path):
    """Items outside the part, and items of the part after one that was left out."""
    chosen = [item for item in ORDER if int(item[1:]) % 3 == 0 and item != PART[0]]
    found = read(judge, people(tmp_path, agrees, chosen))
    (pair,) = found.pairs
    assert (pair.labels, pair.decided, pair.settled, pair.next_item) == (0, None, None, PART[0])
    assert pair.waiting == len(set(chosen) & set(PART))
    assert found.outside == len(set(chosen) - set(PART)) > 0
    other = read(judge, people(tmp_path, agrees), every=3)
    assert other.pairs[0].labels < 10
    assert any("do not count. Check --label-seed and --label-every." in note for note in other.notes)


def test_a_label_of_one_model_is_none_and_one_without_a_score_counts_at_its_worst(judge, tmp_path):
    def some(item, model):
        return None if (item, model) == (PART[20], "b") else agrees(item, model)

    (pair,) = read(judge, people(tmp_path, some)).pairs
    assert (pair.labels, pair.refused) == (150, 1)
    lines = [each for each in rows(agrees, PART) if (each["item_id"], each["model"]) != (PART[20], "b")]
    (pair,) = read(judge, write(tmp_path / "one.jsonl", lines)).pairs
    assert (pair.labels, pair.waiting, pair.next_item) == (20, 129, PART[20])


def test_labels_come_in_any_order_and_again(judge, tmp_path):
    first = read(judge, people(tmp_path, agrees))
    lines = rows(agrees, PART)
    random.Random(1).shuffle(lines)
    again = read(judge, write(tmp_path / "again.jsonl", [*lines, *lines[:7]]))
    assert again.pairs == first.pairs
    assert len(again.notes) == 1


def test_an_item_without_a_score_of_the_judge_counts_as_its_tie(judge, tmp_path):
    lines = [json.loads(line) for line in judge.read_text().splitlines()]
    less = write(
        tmp_path / "less.jsonl", [each for each in lines if each["item_id"] != PART[3] or each["model"] == "b"]
    )
    (pair,) = read(less, people(tmp_path, agrees)).pairs
    assert (pair.unjudged, pair.labels, pair.decided) == (1, 150, "a")


def test_three_models_share_alpha(tmp_path):
    judge = write(tmp_path / "judge.jsonl", rows(agrees, IDS, ("a", "b", "c")))
    labels = people(tmp_path, agrees, models=("a", "b", "c", "stranger"))
    found = read(judge, labels)
    assert [(each.model_a, each.model_b, each.decided) for each in found.pairs] == [
        ("a", "b", "a"),
        ("a", "c", "a"),
        ("b", "c", None),
    ]
    assert found.pairs[0].p == pytest.approx(3 * 2.718281828459045 ** -found.pairs[0].log_e)
    assert any("stranger" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda each: {**each, "model": "a", "score": each["model"] == "b"}, 1, "labels contradict earlier ones"),
        (lambda each: {**each, "model": f"new-{each['model']}"}, 2, "the labels are of none of its models"),
        (lambda each: {**each, "item_id": f"x{each['item_id']}"}, 2, "no labelled item is one of the results"),
        (
            lambda each: {**each, "benchmark": "translation"},
            2,
            "translation is no benchmark of the results, which have chat",
        ),
        (lambda each: {**each, "score": 4 * each["score"] + 1}, 1, "score"),
        (lambda each: {**each, "model": "a", "score": 1}, 2, "the labels are only of a"),
    ],
)
def test_labels_that_cannot_count_are_refused(judge, tmp_path, change, code, words):
    bad = write(tmp_path / "bad.jsonl", [change(each) for each in rows(agrees, PART)])
    assert words in labelled(judge, bad, code=code).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--labels", "x.csv"), "add --label-every R"),
        (("--label-every", 4), "are for --labels FILE"),
        (("--labels", "-", "--label-every", 4), "give a file"),
        (("--labels", "x.csv", "--label-every", 4, "--format", "csv"), "not available with --format csv"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_read(judge, arguments, words):
    assert words in rankwatch("report", judge, *arguments, code=2).stderr


def test_labels_have_a_seed_and_a_file_of_their_own(judge, tmp_path):
    labels = people(tmp_path, agrees)
    assert "add --label-seed SEED" in rankwatch("report", judge, "--labels", labels, "--label-every", 4, code=2).stderr
    nameless = ("--labels", labels, "--label-seed", "", "--label-every", 4)
    assert "add --label-seed SEED" in rankwatch("report", judge, *nameless, code=2).stderr
    table = tmp_path / "people.csv"
    table.write_text("item_id,model,score\n" + "".join(f"{i},{m},{agrees(i, m)}\n" for i in PART for m in "ab"))
    assert [each.labels for each in read(judge, table).pairs] == [150]
    again = ("--labels", judge, "--label-seed", "people", "--label-every", 4)
    assert "read as results of the judge too" in rankwatch("report", judge, *again, code=2).stderr


def test_a_declared_order_has_the_seed(tmp_path):
    declaration = {"declare": "chat", "order": {"policy": "committed", "seed": "people"}, "item_ids": IDS}
    judge = write(tmp_path / "judge.jsonl", [declaration, *rows(agrees, IDS)])
    labels = people(tmp_path, agrees)
    text = rankwatch("report", judge, "--labels", labels, "--label-every", 4, "--format", "json").stdout
    assert json.loads(text)["benchmarks"][0]["labels"]["pairs"][0]["decided"] == "a"
    assert (
        "--label-seed another"
        in rankwatch("report", judge, "--labels", labels, "--label-every", 4, "--label-seed", "x", code=2).stderr
    )


def test_an_order_lists_what_people_label(tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(IDS))
    assert rankwatch("order", "--seed", "people", "--items", ids, "--every", 4).stdout.split() == PART
    assert (
        "--every" in rankwatch("order", "--seed", "x", "--items", ids, "--every", 4, "--format", "json", code=2).stderr
    )


def gate(judge, labels, *more, code):
    arguments = (
        "--pair",
        "a",
        "b",
        "--labels",
        labels,
        "--label-seed",
        "people",
        "--label-every",
        4,
        "--format",
        "json",
    )
    return json.loads(rankwatch("gate", judge, *arguments, *more, code=code).stdout)


def test_a_gate_answers_what_people_prefer(judge, tmp_path):
    found = gate(judge, people(tmp_path, agrees), code=0)
    assert (found["decided"], found["labels"]["pairs"][0]["decided"]) == ("a", "a")
    turned = gate(judge, people(tmp_path, lambda item, model: 1 - agrees(item, model)), code=4)
    assert (turned["decided"], turned["labels"]["pairs"][0]["judge"]) == ("b", "a")
    rng = random.Random(4)
    unsure = people(tmp_path, lambda _, __: rng.randint(0, 1))
    assert gate(judge, unsure, code=3)["decided"] is None
    text = rankwatch(
        "gate", judge, "--pair", "a", "b", "--labels", unsure, "--label-seed", "people", "--label-every", 4, code=3
    ).stdout
    assert "The judge alone finds a better; the labels do not support it (150 labels" in text
    people_find, judge_finds = text.split("  By the judge alone:\n")
    assert "The gap a - b is +" in people_find
    assert "a is better than b, decided" not in people_find
    assert "a is better than b, decided" in judge_finds


@pytest.mark.parametrize("margin", ["0.05", "5%"])
def test_a_gate_with_a_margin_answers_what_people_prefer(judge, tmp_path, margin):
    (passed,) = gate(judge, people(tmp_path, agrees), "--margin", margin, code=0)["comparisons"]
    assert (passed["verdict"], passed["judge_verdict"], passed["rule"]) == ("pass", "pass", "labels")
    turned = people(tmp_path, lambda item, model: 1 - agrees(item, model))
    (failed,) = gate(judge, turned, "--margin", margin, code=4)["comparisons"]
    assert (failed["verdict"], failed["judge_verdict"]) == ("fail", "pass")
    rng = random.Random(4)
    unsure = people(tmp_path, lambda _, __: rng.randint(0, 1))
    (left,) = gate(judge, unsure, "--margin", margin, code=3)["comparisons"]
    assert (left["verdict"], left["facts"][0]["code"]) == ("undecided", "labels_gate")
    assert "the judge alone passes it, and the labels do not support it (150 labels" in left["reason"]
    shown = rankwatch(
        "gate", judge, "--margin", margin, "--baseline", "b", "--labels", unsure, "--label-seed", "people", "--label-every", 4,
        "--format", "markdown", code=3,
    ).stdout  # fmt: skip
    assert "the labels do not support it" in shown
    assert "Labels on chat" in shown


def test_a_gate_marks_what_the_judge_alone_finds_on_every_surface(judge, tmp_path):
    turned = people(tmp_path, lambda item, model: 1 - agrees(item, model))
    asked = ("--labels", turned, "--label-seed", "people", "--label-every", 4, "--margin", 0.05)
    files = {form: tmp_path / f"gate.{form}" for form in ("junit", "svg", "markdown", "html")}
    written = [f"--write={form}={path}" for form, path in files.items()]
    for pair, people_find, judge_finds in ((("a", "b"), "-32.00", "+33.33"), (("b", "a"), "+32.00", "-33.33")):
        text = rankwatch("gate", judge, "--pair", *pair, *asked, *written, code=0 if pair[0] == "b" else 4).stdout
        texts = {form: path.read_text() for form, path in files.items()} | {"text": text}
        for form in ("text", "junit"):
            assert f"gap {people_find} points by labels and judge, {judge_finds} by the judge alone" in texts[form]
        assert "% (judge)" in text
        assert " j" in text
        assert "j gap by the judge alone" in text
        assert f"{judge_finds} points by the judge alone" in texts["svg"]
        assert texts["svg"].count("<circle") == 2
        assert "with labels" in texts["markdown"]
        assert f"{judge_finds} (judge)" in texts["markdown"]
        assert f"{people_find}" in texts["markdown"]
        assert f"{judge_finds} (judge)" in texts["html"]
    plain = rankwatch("gate", judge, "--pair", "a", "b", "--margin", 0.05).stdout
    assert "judge" not in plain


def test_a_gate_refuses_labels_that_it_cannot_use(judge, tmp_path):
    labels = people(tmp_path, agrees, models=("a", "c"))
    three = write(tmp_path / "three.jsonl", rows(agrees, IDS, ("a", "b", "c")))
    asked = ("--labels", labels, "--label-seed", "people", "--label-every", 4)
    for question in (("--pair", "a", "b"), ("--pair", "a", "b", "--margin", "0.05")):
        assert "b has no labels" in rankwatch("gate", three, *question, *asked, code=2).stderr
    assert "omit --labels" in rankwatch("gate", "--check", "--margin", "0.05", *asked, code=2).stderr


def test_a_suite_of_a_labelled_benchmark_is_refused(tmp_path):
    both = [*rows(agrees, IDS), *rows(agrees, [f"q{k + 600}" for k in range(600)], benchmark="other")]
    judge, labels = write(tmp_path / "judge.jsonl", both), people(tmp_path, agrees)
    refused = labelled(judge, labels, "--suite", "all=chat,other", code=2)
    assert "the suite all would rank by the judge alone, and people labelled its benchmark chat" in refused.stderr
    assert not refused.stdout
    assert "all" in rankwatch("report", judge, "--suite", "all=chat,other").stdout


def test_a_plan_names_the_labels_that_a_gap_takes():
    asked = ("--gap", 0.2, "--discordance", 0.3, "--items", 400)
    found = json.loads(rankwatch("plan", "--labels", 0.9, *asked, "--format", "json").stdout)
    assert 0 < found["settled"] < found["corrected"] < found["alone"] < 400
    text = rankwatch("plan", "--labels", 0.9, *asked).stdout
    assert f"on items of this kind: about {found['corrected']} labels (label every" in text
    none = rankwatch("plan", "--labels", 0.5, "--gap", 0.01, "--discordance", 0.3, "--items", 50).stdout
    assert "on items of this kind: not even labels of all items" in none
    for wrong in (("--gap", 0.2), (*asked, "--rho", 0.5), ("--gap", 0.4, *asked[2:]), (*asked[:4], "--items", 10**6)):
        rankwatch("plan", "--labels", 0.9, *wrong, code=2)
