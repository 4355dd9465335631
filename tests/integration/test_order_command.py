"""`rankwatch order`, and `rankwatch.toml` beside the results: real commands, real files."""

import gzip
import hashlib
import json
import random
import re

import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.files.declaration_file import DeclaredError, ItemListError, read_declared, read_items
from tests.commands import rankwatch, report, watch_once, write

IDS = [f"item-{k}" for k in range(1, 11)]
VECTOR = [f"item-{k}" for k in (1, 2, 8, 4, 5, 3, 7, 6, 9, 10)]
"""The published order of docs/how-to/committed-order.md."""


def results(seed, items=150, **more):
    """Scores of a good and a bad model, item by item in the order that the seed commits to."""
    rng = random.Random(1)
    ids = [f"q{k}" for k in range(items)]
    ids.sort(key=lambda item: hashlib.sha256(f"{seed}\0{item}".encode()).digest())
    return [
        {"benchmark": "bench", "item_id": item, "model": model, "score": int(rng.random() < right), **more}
        for item in ids
        for model, right in (("good", 0.9), ("bad", 0.4))
    ]


def toml(folder, text):
    path = folder / "rankwatch.toml"
    path.write_text(text)
    return path


def test_the_published_order(tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_bytes("\ufeff".encode() + "\r\n".join(reversed(IDS)).encode())
    for arguments in (IDS, ["--items", listed]):
        ended = rankwatch("order", "--seed", "2026-leaderboard", *arguments)
        assert ended.stdout.split("\n") == [*VECTOR, ""]


def test_the_items_of_results(tmp_path):
    path = tmp_path / "r.jsonl.gz"
    events = results("s", 20) + [e | {"benchmark": "other"} for e in results("s", 30)]
    path.write_bytes(gzip.compress("".join(json.dumps(e) + "\n" for e in events).encode()))
    ended = rankwatch("order", "--seed", "s", "--items", path, "--benchmark", "bench")
    assert ended.stdout.split() == list(dict.fromkeys(e["item_id"] for e in results("s", 20)))
    ended = rankwatch("order", "--seed", "s", "--items", path, code=1)
    assert "results are of 2 benchmarks (bench, other); choose one with --benchmark" in ended.stderr


def test_the_declaration_is_a_line_of_a_log(tmp_path):
    events = results("S")
    ids = sorted({e["item_id"] for e in events})
    ended = rankwatch("order", "--seed", "S", "--benchmark", "bench", "--format", "json", *ids)
    path = tmp_path / "log.jsonl"
    path.write_text(ended.stdout + "".join(json.dumps(e) + "\n" for e in events))
    (benchmark,) = report(path)[0]["benchmarks"]
    assert (benchmark["order"]["policy"], benchmark["pairs"][0]["status"]) == ("committed", "decided")
    assert benchmark["pairs"][0]["decided_at_n"] < 100
    assert benchmark["look"] == json.loads(ended.stdout)["look"] == 0.2


@pytest.mark.parametrize(("look", "declared"), [("0", None), ("0.5", 0.5)])
def test_a_declaration_has_the_look_that_was_asked_for(look, declared):
    ended = rankwatch("order", "--seed", "S", "--benchmark", "b", "--format", "json", "--look", look, "a", "b")
    assert json.loads(ended.stdout).get("look") == declared


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--seed", "s", "a", "b", "a"], 2, "argument 3: item 'a' is repeated, first at argument 1"),
        (["--seed", "s"], 2, "give the item ids"),
        (["--seed", "s", "a", "--items", "x"], 2, "give the item ids"),
        (["--seed", "", "a"], 2, "--seed: "),
        (["--seed", "s", "--items", "/nowhere/ids"], 1, "/nowhere/ids does not exist; check the path"),
        (["--seed", "s", "a\nb"], 2, "forbidden character U+000A"),
        (["--seed", "s", "--format", "json", "a"], 2, "give --benchmark"),
        (["--seed", "s", "--format", "json", "--benchmark", "\x1b[31m", "a"], 2, "--benchmark: "),
        (["--seed", "s", "--look", "0.5", "a"], 2, "--look: is part of a declaration"),
        (["--seed", "s", "--format", "json", "--benchmark", "b", "--look", "1", "a"], 2, "--look: "),
        (["--seed", "s", "--format", "json", "--benchmark", "b", "--look", "nan", "a"], 2, "--look"),
        (["a"], 2, "--seed"),
    ],
)
def test_calls_that_cannot_be_right(arguments, code, says):
    ended = CliRunner().invoke(app, ["order", *arguments])
    assert ended.exit_code == code
    assert says in ended.stderr
    assert "\x1b[31m" not in ended.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a\nb\n\na\n", ":4: item 'a' is repeated, first at "),
        (b"a\n\x1b[2J\n", ":2: item '\\x1b[2J': the name holds the forbidden character U+001B"),
        (b"a\n\xff\n", ":2: byte 0xff is not valid UTF-8"),
        (b"\n\n", "no items"),
    ],
)
def test_lists_that_cannot_be_used_are_named_by_line(tmp_path, content, says):
    path = tmp_path / "ids"
    path.write_bytes(content)
    with pytest.raises(ItemListError, match=re.escape(says)):
        read_items(path)


def test_a_report_honours_what_is_declared_beside_it(tmp_path):
    path = write(tmp_path / "a.jsonl", results("S"))
    plain = report(path)[0]["benchmarks"][0]
    assert (plain["alpha"], plain["order"]["policy"]) == (0.05, "completion")
    assert plain["order"]["reason"].startswith("asserted that ")
    (tmp_path / "ids").write_text("".join(f"q{k}\n" for k in range(150)))
    toml(
        tmp_path,
        """
        [benchmark.bench]
        alpha = 0.01
        mixture = "grid98"
        family = { policy = "capacity", size = 7 }
        order = { policy = "committed", seed = "S" }
        item_file = "ids"

        [benchmark."not here"]
        items = 5
        """,
    )
    for argument in (path, tmp_path):
        (benchmark,) = report(argument)[0]["benchmarks"]
        assert (benchmark["alpha"], benchmark["mixture"], benchmark["family"]) == (
            0.01,
            "grid98",
            {"policy": "capacity", "size": 7, "families": 1},
        )
        assert (benchmark["order"]["policy"], benchmark["order"]["reason"]) == ("committed", None)
        assert benchmark["pairs"][0]["status"] == "decided"


def test_watch_declares_it_before_the_first_score_and_a_change_as_the_next_version(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs / "a.jsonl", results("S"))
    toml(logs, "[benchmark.bench]\nitems = 200\nalpha = 0.01\nmargin = 0.2\n")
    (benchmark,) = json.loads(watch_once(tmp_path / "data", logs))["benchmarks"]
    assert (benchmark["alpha"], benchmark["order"]["policy"]) == (0.01, "completion")
    toml(logs, "[benchmark.bench]\nitems = 200\nalpha = 0.05\nmargin = 0.2\n")
    ended = rankwatch("watch", logs, "--once", "--data-dir", tmp_path / "data")
    assert "bench: declared again, as version 2: alpha = 0.05 (was 0.01)" in ended.stderr
    # A flag overrides the file.
    (benchmark,) = json.loads(watch_once(tmp_path / "other", logs, "--items", 150))["benchmarks"]
    assert benchmark["pairs"][0]["status"] == "decided"
    assert benchmark["alpha"] == 0.05


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "unknown key 'x'"),
        ("[benchmark.b]\nalpa = 1", "[benchmark.\"b\"]: unknown key 'alpa'; use alpha, power"),
        ("[benchmark.b]\nalpha = 1", '[benchmark."b"]: alpha: 1 is out of range; use a number from 1e-100 to below 0.5'),
        ('[benchmark.b]\nfamily = {policy = "capacity", seize = 3}', '[benchmark."b"]: family.seize: '),
        ('[benchmark.b]\norder = "committed"', "needs a seed and the items"),
        ('[benchmark.b]\nitem_file = "none"', "item_file: "),
        ("[benchmark.b]\nitem_file = 3", "item_file: 3 is not a path"),
        ('[benchmark.b]\nitem_file = "dup"', "dup:2: the item is repeated, first at"),
        ('[benchmark."\\u001b[2J"]\nalpha = 0.1', "the name holds the forbidden character"),
        ("benchmark = 3", "benchmark is not a table"),
        ("[benchmark", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_file_of_declarations_that_cannot_be_used(tmp_path, text, says):
    path = write(tmp_path / "a.jsonl", results("S", 3))
    (tmp_path / "dup").write_text("a\na\n")
    file = toml(tmp_path, text)
    with pytest.raises(DeclaredError) as refused:
        read_declared([path])
    message = str(refused.value)
    assert says in message
    assert message.startswith(f"{file}: ")
    assert "\x1b" not in message


def test_two_files_may_not_disagree(tmp_path):
    for k in (1, 2):
        folder = tmp_path / f"run {k}"
        folder.mkdir()
        write(folder / "a.jsonl", results("S", 3))
        toml(folder, f"[benchmark.bench]\nitems = {k}0\n")
    ended = rankwatch("report", tmp_path / "run 1", tmp_path / "run 2", code=2)
    assert "is declared differently in" in ended.stderr
