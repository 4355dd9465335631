"""A newcomer is admitted to a board from the command line, and its certificate verified, also under attack."""

import json
import random
import re
import tracemalloc

import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.files import newcomer
from monitor.view import admission
from tests.commands import rankwatch, write
from tests.served import Served

random.seed(1)
ITEMS = [f"q{k}" for k in range(160)]
HARD = {item: random.gauss(0, 1) for item in ITEMS}
BOARD = {"ash": 1.5, "birch": 1.0, "cedar": 0.4, "elm": 0.0, "fir": -0.6, "gum": -1.2}
TRUTH = {item: int(random.gauss(0.6, 0.6) > hard) for item, hard in HARD.items()}


def rows(model, scores):
    return [{"benchmark": "demo", "item_id": item, "model": model, "score": score} for item, score in scores.items()]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the results of a board; the newcomer has none yet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    rng = random.Random(2)
    for model, ability in BOARD.items():
        scores = {item: int(rng.gauss(ability, 0.6) > hard) for item, hard in HARD.items()}
        write(tmp_path / f"results/{model}.jsonl", rows(model, scores))
    return tmp_path


def run(*arguments, code=0):
    """Run a command in this process, to this code unless it is None: its lines on standard output, and its text on standard error."""
    ended = CliRunner().invoke(app, list(map(str, arguments)))
    assert ended.exit_code == code or code is None, (
        f"exit {ended.exit_code}, not {code}\n{ended.output}\n{ended.exception!r}"
    )
    return ended.stdout.splitlines(), re.sub(r"\s+", " ", ended.stderr)


def admit(*more, model="new", code=0):
    return run("admit", model, "--board", "results", "--scores", f"{model}.jsonl", *more, code=code)


def score(place, items, model="new", **other):
    write(place / f"{model}.jsonl", rows(model, {item: TRUTH[item] for item in items} | other), mode="a")


def facts(*more, code=0, **keys):
    return json.loads("\n".join(admit(*more, "--format", "json", code=code, **keys)[0]))


def admitted(place, count=40):
    """Commit an order and score its first items; return the order."""
    order = admit("--next", 160)[0]
    score(place, order[:count])
    admit()
    return order


def test_a_newcomer_is_admitted_by_a_part_of_the_items_and_the_certificate_verifies_elsewhere(place):
    goal = ("--goal", "model:new,width=3")
    items = admit(*goal, "--seed", "lottery", "--next", 10)[0]
    run_items = 0
    while items:
        assert len(set(items)) == 10
        score(place, items)
        run_items += 10
        items = facts(*goal, "--next", 10, code=None)["next"]
    met = facts(*goal, "--next", 10, code=5)
    assert met["goal"] == {"goal": "model:new,width=3", "state": "met", "among": None}
    assert met["result"]["items_run"] == run_items < 160
    assert met["result"]["last_rank"] - met["result"]["first_rank"] < 3
    (place / "elsewhere").mkdir()
    (place / "new.admit.json").rename(place / "elsewhere/certificate.json")
    lines = rankwatch("verify", place / "elsewhere/certificate.json").stdout.splitlines()
    assert "verifies: every number follows" in lines[0]
    assert f"after {run_items} of 160 items" in lines[1]


def test_a_full_run_gives_the_rank_and_every_goal_ends(place):
    order = admitted(place)
    score(place, order[40:])
    total = sum(TRUTH.values())
    whole = facts(code=5)
    assert whole["over"]
    assert (whole["result"]["least"], whole["result"]["most"]) == (total, total)
    assert facts("--goal", "score,width=1", code=5)["goal"]["state"] == "met"
    assert facts("--goal", "top:6", code=5)["goal"]["among"] == (whole["result"]["last_rank"] <= 6)
    assert "need not be run" not in "\n".join(admit("--goal", "best", code=5)[0])


@pytest.mark.parametrize("goal", ["model:new,width=3", "top:3", "score,width=2"])
def test_no_goal_is_met_where_no_rank_is_left(place, goal):
    order = admit("--next", 160)[0]
    write(place / "new.jsonl", rows("new", {item: int(k < 60) for k, item in enumerate(order)}))
    lines, _ = admit("--goal", goal, code=6)
    assert "no rank is left after 160 of 160 items" in lines[0]
    assert "is out of reach" in lines[3]
    answer = facts("--goal", goal, code=6)
    assert (answer["goal"]["state"], answer["goal"]["among"]) == ("out of reach", None)


def test_a_model_of_the_same_total_is_equal_once_every_item_is_run(place):
    twin = dict.fromkeys(ITEMS[:159], 1) | {ITEMS[159]: 0}
    write(place / "results/oak.jsonl", rows("oak", twin))
    order = admit("--next", 160)[0]
    write(place / "new.jsonl", rows("new", {item: twin[item] for item in order}))
    lines, _ = admit(code=5)
    assert lines[1] == "Higher than 6 models and lower than 0; one is equal: oak."
    assert lines[2] == "Score on all 160 items: 99.4 %; 99.4 % on the items scored."


def test_no_total_that_is_possible_lies_outside_of_the_printed_interval(place):
    order = admitted(place, 47)
    result = facts()["result"]
    low, high = map(float, re.search(r"items: ([\d.]+) to ([\d.]+) %", admit()[0][2]).groups())
    assert low <= result["least"] / 1.6 < low + 0.1
    assert high - 0.1 < result["most"] / 1.6 <= high
    score(place, order[47:55])
    result = facts()["result"]
    low, high = map(float, re.search(r"items: ([\d.]+) to ([\d.]+) %", admit()[0][2]).groups())
    assert low <= result["least"] / 1.6
    assert result["most"] / 1.6 <= high


def test_the_order_is_drawn_for_each_newcomer_and_the_answer_comes_first(place):
    first, second = (admit("--next", 160, model=model)[0] for model in ("one", "two"))
    assert sorted(first) == sorted(second) == sorted(ITEMS)
    assert first != second
    lines, _ = admit(model="one")
    assert lines[0] == "one is between rank 1 and 7 of 7, after 0 of 160 items."
    assert lines[-1].startswith("At most 5 % chance that any of this is ever wrong, for this newcomer alone")


def test_scores_out_of_order_wait(place):
    order = admit("--next", 160)[0]
    score(place, sorted(order[1:]))
    answer = facts()
    assert (answer["result"]["items_run"], answer["ahead"]) == (0, 159)
    assert f"the next item is {order[0]}" in admit()[1]


def test_a_skip_may_be_any_score_and_stays_one(place):
    order = admit("--next", 160)[0]
    score(place, order[:9], **{order[9]: None})
    skipped = facts()["result"]
    assert (skipped["items_run"], skipped["skipped"]) == (10, 1)
    path = place / "new.jsonl"
    path.write_text(path.read_text().replace('"score": null', '"score": 1'))
    assert "was skipped at an earlier look; its later score does not count" in admit()[1]
    assert facts()["result"] == skipped


def spoil(place, old, new):
    path = place / "new.jsonl"
    path.write_text("".join(line.replace(old, new, 1) for line in path.read_text().splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("attack", "problem"),
    [
        (lambda place, order: spoil(place, f'"{order[3]}"', f'"{order[60]}"'), "had a score at an earlier look"),
        (lambda place, order: spoil(place, f'"{order[3]}", "model": "new", "score": {TRUTH[order[3]]}',
                                    f'"{order[3]}", "model": "new", "score": {1 - TRUTH[order[3]]}'),
         "had another score at an earlier look"),
        (lambda place, order: write(place / "new.jsonl", rows("twin", {order[41]: 1}), mode="a"), "scores of twin"),
        (lambda place, order: score(place, [], **{order[0]: 1 - TRUTH[order[0]]}), "has two scores"),
        (lambda place, order: score(place, [], other=1), "item other is not on the board"),
        (lambda place, order: score(place, [], **{order[50]: 0.5}), "the board has 0 and 1 alone"),
        (lambda place, order: write(place / "new.jsonl", ['{"benchmark":"demo",']), "run again"),
        (lambda place, order: write(place / "results/ash.jsonl", rows("ash", dict.fromkeys(ITEMS, 1))),
         "the scores of ash have changed"),
        (lambda place, order: write(place / "results/oak.jsonl", rows("oak", dict.fromkeys(ITEMS, 1))),
         "it has a new model oak"),
        (lambda place, order: write(place / "results/b.jsonl", rows("ash", {"q999": 1})), "it has a new item q999"),
        (lambda place, order: write(place / "results/b.jsonl", rows("new", {"q1": 1})), "scores of new already"),
    ],
    ids=[
        *("item renamed", "score changed", "best of several", "two scores", "other item", "graded", "half a line"),
        *("regraded", "a model joins", "an item joins", "on the board"),
    ],
)  # fmt: skip
def test_what_would_make_the_answer_wrong_is_refused(place, attack, problem):
    order = admitted(place)
    before = (place / "new.admit.json").read_bytes()
    attack(place, order)
    assert problem in admit(code=1)[1]
    assert (place / "new.admit.json").read_bytes() == before


def test_an_order_after_a_look_is_refused(place):
    score(place, ITEMS[:5])
    assert "5 scores of new already, and an order that is drawn after a look is not random" in admit(code=1)[1]
    assert not (place / "new.admit.json").exists()


def test_a_seed_and_alpha_are_fixed_and_no_two_newcomers_share_a_seed(place):
    admit("--seed", "lottery", "--alpha", 0.1)
    assert "each newcomer needs its own" in admit("--seed", "lottery", model="two", code=1)[1]
    for more in (("--seed", "other"), ("--alpha", 0.05)):
        assert "has another seed or alpha" in admit(*more, code=1)[1]
    lines = admit("--seed", "lottery")[0]
    assert lines[-1].startswith("At most 10 %")
    assert "the given seed was chosen before the first score" in lines[-1]


@pytest.mark.parametrize(
    "goal", ["ranking", "score", "score,width=0", "score,width=nan", "model:ash", "model:new,margin=.1", "top:0", "?"]
)
def test_a_goal_of_another_kind_is_a_wrong_call(place, goal):
    assert "--goal: " in admit("--goal", goal, code=2)[1]


@pytest.mark.parametrize("scores", ["-", "https://example.org/new.jsonl", "new=-"])
def test_scores_that_cannot_be_read_again_are_no_missing_file(place, scores):
    error = run("admit", "new", "--board", "results", "--scores", scores, code=2)[1]
    assert "--scores: give a file or a folder" in error
    assert not (place / "new.admit.json").exists()


@pytest.mark.parametrize("seed", ["", "a\udcff", "a" * 10_000])
def test_what_is_no_seed_is_a_wrong_call(place, seed):
    assert "--seed: " in admit("--seed", seed, code=2)[1]


def test_another_file_is_not_overwritten(place):
    before = (place / "results/ash.jsonl").read_bytes()
    assert "is no certificate of rankwatch" in admit("--certificate", "results/ash.jsonl", code=1)[1]
    assert (place / "results/ash.jsonl").read_bytes() == before


def test_no_byte_of_a_certificate_can_change(place):
    admitted(place)
    good = (place / "new.admit.json").read_bytes()
    assert "verifies" in run("verify", "new.admit.json")[0][0]
    rng = random.Random(4)
    for at in [0, 1, len(good) - 2, len(good) - 1, *rng.sample(range(len(good)), 40)]:
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(7)
        (place / "bad.json").write_bytes(bad)
        assert run("verify", "bad.json", code=1)[0] == []
    deep = b"[" * 100_000
    (place / "bad.json").write_bytes(deep)
    assert "Invalid JSON: recursion limit exceeded at line 1" in run("verify", "bad.json", code=1)[1]
    for bad in (b"", good[:-1], good + b"\n", good[:100], b"{}", b"[1]", b"\xff"):
        (place / "bad.json").write_bytes(bad)
        assert "bad.json" in run("verify", "bad.json", code=1)[1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: c["result"].update(first_rank=1, last_rank=1), "its result has another last_rank: it is 1"),
        (lambda c: c["result"]["opponents"][0].update(side="above", after=3), "its result has another opponents"),
        (lambda c: c["scores"].__setitem__(0, 1 - c["scores"][0]), "its result has another total"),
        (lambda c: c["commitment"].update(seed="another"), "its result has another"),
        (lambda c: c["result"].update(least=10**4000), "(4,001 characters), recomputed"),
        (lambda c: c["board"]["difficulty"].__setitem__(0, 1), "its board is not the one that was committed"),
        (lambda c: c["board"]["models"][0].update(low=0, high=160), "its board is not the one that was committed"),
        (lambda c: c["scores"].append(10**30), "its numbers fit no admission"),
        (lambda c: c["board"].update(unit=2**62), "its numbers fit no admission"),
        (lambda c: c["board"]["difficulty"].__setitem__(0, 401), "its difficulties are not those of models with these"),
        (lambda c: c["board"].update(difficulty=[0] * 160), "its difficulties are not those of models with these"),
        (lambda c: c["board"]["models"][0].update(low=3, high=3), "its difficulties are not those of models with these"),
        (lambda c: c["board"]["items"].reverse(), "its items are not a sorted list"),
        (lambda c: c.update(method="admission-9"), "its method is admission-9"),
    ],
)  # fmt: skip
def test_a_certificate_that_was_sealed_again_still_has_to_follow_from_its_scores(place, change, problem):
    from schemas.results.admission import Certificate, canonical

    admitted(place)
    contents = json.loads((place / "new.admit.json").read_text())
    change(contents)
    forged = Certificate.model_validate_json(json.dumps(contents))
    forged = forged.model_copy(update={"digest": forged.seal()})
    (place / "forged.json").write_bytes(canonical(forged))
    error = run("verify", "forged.json", code=1)[1]
    assert "forged.json does not verify: " in error
    assert problem in error


@pytest.mark.parametrize("alpha", [1e-320, 9e-7, 0.51, 0.9999])
def test_a_certificate_has_an_alpha_that_admit_takes(place, alpha):
    admitted(place)
    text = (place / "new.admit.json").read_text().replace('"alpha":0.05', f'"alpha":{alpha!r}')
    (place / "new.admit.json").write_text(text)
    assert "is out of range; use" in run("verify", "new.admit.json", code=1)[1]


def test_a_certificate_that_would_take_hours_is_refused(place, monkeypatch):
    order = admitted(place)
    score(place, order[40:50])
    monkeypatch.setattr(admission, "MOST_CELLS", 900)
    assert "160 items times 6 different totals are more than 900" in run("verify", "new.admit.json", code=1)[1]
    assert "admit on fewer models" in admit(code=1)[1]
    (place / "new.admit.json").unlink()
    (place / "new.jsonl").unlink()
    assert "admit on fewer models" in admit(code=1)[1]
    assert not (place / "new.admit.json").exists()


@pytest.mark.parametrize("bomb", ['{"board":{"models":[%s{}]}}', '{"result":{"items_run":[%s{}]}}', "[%s{}]"])
def test_a_large_file_that_is_no_certificate_takes_little_memory(place, bomb):
    (place / "bomb.json").write_text(bomb % ("{}," * 2_000_000))
    tracemalloc.start()
    assert "no certificate of rankwatch" in run("verify", "bomb.json", code=1)[1]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200_000_000  # the buffer of the largest file that is read; its objects would take 500 MB


def test_a_board_of_more_than_a_certificate_holds_is_refused_before_its_order_is_committed(place, monkeypatch):
    monkeypatch.setattr(newcomer, "_LARGEST", 500)
    assert "shorten the item ids" in admit(code=1)[1]
    assert not (place / "new.admit.json").exists()


def test_a_newcomer_is_admitted_on_a_server_and_its_certificate_verifies_elsewhere(place):
    with Served() as served:
        for path in (place / "results").iterdir():
            served.post(path.read_bytes())
        there = ("admit", "new", "--server", served.url, "--benchmark", "demo")
        lines, notes = run(*there, "--next", 20)
        assert f"the log of {served.url} holds the frozen board" in notes
        looks = 0
        while lines:
            looks += 1
            served.post(rows("new", {item: TRUTH[item] for item in lines}))
            lines, notes = run(*there, "--goal", "model:new,width=3", "--next", 20, code=None)
        assert 1 < looks < 8
        assert "holds the frozen board" not in notes
        shown, _ = run(*there, "--goal", "model:new,width=3", "--certificate", place / "copy.json", code=5)
        assert rankwatch("verify", place / "copy.json").stdout.splitlines()[1] == shown[0]
        answer = json.loads("\n".join(run(*there, "--format", "json")[0]))
        assert (answer["result"]["items_run"], answer["certificate"]) == (20 * looks, None)
        assert "another seed or alpha" in run(*there, "--seed", "other", code=1)[1]
        assert "drawn after a look" in run("admit", "ash", *there[2:], code=1)[1]
    for wrong, reason in (
        (there[:4], "name the benchmark"),
        ((*there, "--board", "results"), "omit them"),
        (("admit", "new", "--board", "results"), "give --board and --scores, or --server"),
        (("admit", "new", "--server", "ftp://x", "--benchmark", "demo"), "is not the address of a server"),
    ):
        assert reason in run(*wrong, code=2)[1]
