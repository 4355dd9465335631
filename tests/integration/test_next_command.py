"""`rankwatch next`: what runs next, from files and from a server, as text, JSON and lines for a shell loop."""

import json
import subprocess

import pytest

from stats.order import committed_order
from tests.client.test_race import score
from tests.commands import Watch, environment, rankwatch, write
from tests.forked import RANKWATCH

IDS = [f"q{k}" for k in range(200)]
ORDER = [IDS[k] for k in committed_order("s", IDS)]
MODELS = ["strong", "middle", "weak"]


def events(model, items):
    return [{"benchmark": "b", "item_id": item, "model": model, "score": score(model, item)} for item in items]


@pytest.fixture
def files(tmp_path):
    """A folder for results, and the flags of a race in it."""
    (tmp_path / "results").mkdir()
    (tmp_path / "ids.txt").write_text("\n".join(IDS))
    flags = ["--seed", "s", "--items", tmp_path / "ids.txt", "--benchmark", "b", "--models", ",".join(MODELS)]
    return tmp_path / "results", [tmp_path / "results", *flags, "--goal", "best"]


def test_the_first_block_needs_no_results(files):
    _, flags = files
    ended = rankwatch("next", *flags, "--model", "weak")
    assert ended.stdout.split("\n") == [*ORDER[:10], ""]
    assert "no results yet, so this is the first block" in ended.stderr
    answer = json.loads(rankwatch("next", *flags, "--format", "json").stdout)
    assert {run["model"]: run["items"] for run in answer["models"]} == dict.fromkeys(MODELS, ORDER[:10])
    assert f"strong  run        0  {' '.join(ORDER[:5])}" in rankwatch("next", *flags).stdout


def test_exit_codes_follow_the_race(files):
    folder, flags = files
    write(folder / "strong.jsonl", events("strong", ORDER[:10]))
    write(folder / "weak.jsonl", events("weak", ORDER[:4]))  # a block half done
    assert rankwatch("next", *flags, "--model", "strong", code=3).stdout == ""
    assert rankwatch("next", *flags, "--model", "weak").stdout.split() == ORDER[4:10]
    late = rankwatch("next", *flags, "--model", "late", code=1).stderr
    assert "declares its models, and late is none of them; declare it too, or omit it" in late
    for model in MODELS:
        write(folder / f"{model}.jsonl", events(model, ORDER[:40]))
    ended = rankwatch("next", *flags, code=5)
    assert "best: met. strong is the best of 3 models." in ended.stdout
    assert "120 of 600 scores run; 80.0 % saved" in ended.stdout
    assert rankwatch("next", *flags[:-1], "ranking", "--model", "strong", code=4).stdout == ""
    for model in MODELS:  # equal on every item: a tie that nothing breaks
        write(folder / f"{model}.jsonl", [e | {"score": 1} for e in events(model, IDS)])
    assert "best: impossible" in rankwatch("next", *flags, code=6).stdout


def test_a_declaration_in_the_files_needs_no_flags(files):
    folder, _ = files
    declared = {
        "declare": "b",
        "order": {"policy": "committed", "seed": "s"},
        "item_ids": IDS,
        "family": {"models": MODELS},
        "goal": "top:2",
    }
    write(folder / "log.jsonl", [declared])
    assert rankwatch("next", folder, "--model", "weak").stdout.split() == ORDER[:10]
    write(folder / "log.jsonl", [declared, *events("weak", ORDER[:10])])
    answer = json.loads(rankwatch("next", folder, "--format", "json", "--block", "3").stdout)
    assert answer["goal"]["goal"] == "top:2"
    assert {run["model"]: run["items"] for run in answer["models"]} == {
        "strong": ORDER[:3],
        "middle": ORDER[:3],
        "weak": [],
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give files or folders of results, or --server"),
        (["--seed", "s", "--goal", "best"], 2, "--seed and --items FILE belong together"),
        (["--goal", "first"], 2, "--goal: the goal 'first' is unknown"),
        (["--goal", "best"], 1, "has no list of items, so none can be chosen"),
        (["--goal", "best", "--benchmark", "c"], 2, "the files hold no benchmark of that name; they hold b"),
    ],
)
def test_wrong_calls_name_the_fix(files, arguments, code, message):
    folder, _ = files
    write(folder / "log.jsonl", [{"declare": "b", "items": 200}, *events("weak", ORDER[:3])])
    assert message in rankwatch("next", *([folder] if arguments else []), *arguments, code=code).stderr


def test_a_shell_loop_asks_a_server_until_the_goal_is_met(tmp_path):
    hostile = ["-rf *", "$(touch pwned)", "a b'\"c", "% <b>", "ü½;ls"]
    ids = IDS[:60] + hostile
    declared = {"order": {"policy": "committed", "seed": "s"}, "item_ids": ids, "family": {"models": MODELS[::2]}}
    write(tmp_path / "log.jsonl", [{"declare": "b", "goal": "best", **declared}])
    loop = tmp_path / "loop.sh"
    loop.write_text(
        f"while {RANKWATCH} next --server $1 --benchmark b --model $2 --wait 60 > $2.txt; code=$?; [ $code = 0 ]; do\n"
        "  while IFS= read -r item; do\n"
        '    printf "%s\\n" "$item" >> $2.ran\n'
        "  done < $2.txt\n"
        f"  python3 $3 $2 < $2.txt | {RANKWATCH} send - --to $1 --data-dir $2.sent --again 2>> $2.log\n"
        "done\necho $code > $2.code\n"
    )
    program = tmp_path / "evaluate.py"
    program.write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        "    print(json.dumps({'benchmark': 'b', 'item_id': line[:-1], 'model': sys.argv[1], 'score': int(sys.argv[1] == 'strong')}))\n"
    )
    with Watch(tmp_path / "data", tmp_path / "log.jsonl") as watch:
        racers = [
            subprocess.Popen(["sh", loop, watch.url, model, program], cwd=tmp_path, env=environment())
            for model in MODELS[::2]
        ]
        assert [racer.wait(60) for racer in racers] == [0, 0]
    assert [(tmp_path / f"{model}.code").read_text() for model in MODELS[::2]] == ["5\n", "5\n"]
    ran = (tmp_path / "weak.ran").read_text().splitlines()
    assert ran == [ids[k] for k in committed_order("s", ids)][: len(ran)]
    assert len(ran) < len(ids)
    assert not (tmp_path / "pwned").exists()
