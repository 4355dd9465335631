"""A writer of results names paths in them, and puts files next to them: none of these reads anything outside their folder."""

import json
import os
from pathlib import Path

import pytest

from monitor.files.streams.paths import PathError
from monitor.files.streams.regular import UnsafePathError, inside, open_regular
from tests.commands import rankwatch, write
from tests.unit.files.native_logs import TIME, Read, lm_eval_run, sample
from tests.unit.files.tool_files import TOOLS

SECRET = "machine_hub_login_me_password_hunter2"
SCORES = [
    {"benchmark": "quiz", "item_id": f"q{k}", "model": model, "score": (k + (model == "b")) % 2}
    for k in range(30)
    for model in "ab"
]
ROWS = {"rows": [{"id": "q1", "model": "a"}]}
MAP = (
    '[[map]]\nfiles = "failed.json"\nrecords = "rows.*"\nitem_id = "id"\nmodel = "model"\nscore = { value = 0 }\n'
    'benchmark = { value = "quiz" }\nothers = 1\nitems = "NAME"\n'
)
SPANS = '[[map]]\nfiles = "logs.jsonl"\nevaluation = "*"\nitem_id = "test.case.id"\nmodel = { value = "m" }\nspans = "NAME"\n'
LOG_RECORD = {
    "resourceLogs": [
        {
            "scopeLogs": [
                {
                    "logRecords": [
                        {
                            "eventName": "gen_ai.evaluation.result",
                            "traceId": "t",
                            "spanId": "s",
                            "attributes": [
                                {"key": "gen_ai.evaluation.name", "value": {"stringValue": "right"}},
                                {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 1.0}},
                            ],
                        }
                    ]
                }
            ]
        }
    ]
}
SPAN = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "t",
                            "spanId": "s",
                            "attributes": [{"key": "test.case.id", "value": {"stringValue": SECRET}}],
                        }
                    ]
                }
            ]
        }
    ]
}


@pytest.fixture
def folder(tmp_path):
    """A folder of results; next to it a file that its writer may not read."""
    secrets = f"q1\n{SECRET}\n"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".netrc").write_text(secrets)
    (tmp_path / "home" / "results.jsonl").write_text(json.dumps(SCORES[0] | {"item_id": SECRET}) + "\n")
    (tmp_path / "home" / "spans.json").write_text(json.dumps(SPAN))
    inner = tmp_path / "results"
    inner.mkdir()
    write(inner / "a.jsonl", SCORES)
    return inner


def names(folder, target):
    """Each name that leads out of the folder to a file: a path, a link, and a link on the way."""
    outside = folder.parent / "home" / target
    (folder / "link").symlink_to(outside)
    (folder / "below").symlink_to(outside.parent)
    os.link(outside, folder / "copy")  # what a link looks like if it is followed
    return [f"../home/{target}", str(outside), "link", f"below/{target}", f"./x/../../home/{target}"]


@pytest.mark.fault("attacks", "a `rankwatch.toml` that names a list of items outside its folder", "refused")
@pytest.mark.parametrize("target", [".netrc", "results.jsonl"])
def test_a_declared_list_of_items_is_inside_the_folder(folder, target):
    for name in names(folder, target):
        (folder / "rankwatch.toml").write_text(f'[benchmark.quiz]\nitem_file = "{name}"\n')
        for command in (
            ["report"],
            ["gate", "--pair", "a", "b"],
            ["watch", "--once", "--data-dir", folder.parent / "data"],
        ):
            ended = rankwatch(*command, folder, code=2)
            assert SECRET not in ended.stdout + ended.stderr
            assert "item_file: " in ended.stderr


@pytest.mark.parametrize(
    "name", ["/proc/self/environ", "/dev/zero", "pipe", "device", ".", "", "below/none", "x\\u0000y"]
)
def test_what_is_no_file_is_refused_at_once(folder, name):
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "rankwatch.toml").write_text(f'[benchmark.quiz]\nitem_file = "{name}"\n')
    ended = rankwatch("report", folder, code=2, HIDDEN=SECRET)
    assert SECRET not in ended.stderr
    assert "item_file: " in ended.stderr


@pytest.mark.fault("attacks", "a list of items that is a secret file", "no message quotes it")
def test_a_message_about_a_list_quotes_nothing_of_it(folder):
    for content in (f"{SECRET}\n{SECRET}\n", f"{SECRET}\x01\n", f"{SECRET} {'x' * 300}\n"):
        (folder / "ids").write_text(content)
        (folder / "rankwatch.toml").write_text('[benchmark.quiz]\nitem_file = "ids"\n')
        ended = rankwatch("report", folder, code=2)
        assert SECRET not in ended.stderr
        assert "ids:" in ended.stderr
    (folder / "ids.jsonl").write_text(
        json.dumps({"benchmark": "quiz", "item_id": "q", "model": "a", "score": SECRET}) + "\n"
    )
    (folder / "rankwatch.toml").write_text('[benchmark.quiz]\nitem_file = "ids.jsonl"\n')
    assert SECRET not in rankwatch("report", folder / "a.jsonl", code=2).stderr


@pytest.mark.fault("attacks", "a `rankwatch.toml` that is a link, a pipe or a device", "refused")
def test_the_file_of_declarations_is_no_link_pipe_or_device(folder, tmp_path):
    toml = folder / "rankwatch.toml"
    (tmp_path / "home" / "rankwatch.toml").write_text(f"{SECRET} = 1\n[benchmark.quiz]\nalpha = 0.01\n")
    for target in (
        tmp_path / "home" / "rankwatch.toml",
        Path("/proc/self/environ"),
        Path("/dev/zero"),
        tmp_path / "none",
    ):
        toml.symlink_to(target)
        for path in (folder, folder / "a.jsonl"):
            ended = rankwatch("report", path, code=2)
            assert SECRET not in ended.stderr
            assert "rankwatch.toml: it is a link" in ended.stderr
        toml.unlink()
    os.mkfifo(toml)
    assert "not a regular file" in rankwatch("report", folder, code=2).stderr


def test_a_file_of_declarations_has_a_bounded_size(folder):
    with (folder / "rankwatch.toml").open("wb") as file:
        file.truncate(1 << 40)  # 1 TB, without a block
    assert "more than 1,048,576 bytes" in rankwatch("report", folder, code=2).stderr


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "[benchmark.quiz]\nalpha = " + "1" * 5_000,
        "[benchmark.quiz]\nitems = 0x" + "f" * 50_000,
        "[[map]]\nscale = 0x" + "f" * 50_000,
        "[benchmark.quiz]\nalpha = 1e-320",
        "\x00",
    ],
)
def test_a_file_of_declarations_that_no_parser_bears_is_refused(folder, text):
    (folder / "rankwatch.toml").write_text(text)
    for path in (folder, folder / "a.jsonl"):
        assert "rankwatch.toml" in rankwatch("report", path, code=2).stderr


def test_the_list_of_a_mapping_is_inside_the_folder(folder):
    (folder / "failed.json").write_text(json.dumps(ROWS))
    (folder / "all.txt").write_text("q1\nq2\n")
    (folder / "rankwatch.toml").write_text(MAP.replace("NAME", "all.txt"))
    assert {e.item_id for e in Read(folder / "failed.json").events} == {"q1", "q2"}
    for name in [*names(folder, ".netrc"), "/dev/zero"]:
        (folder / "rankwatch.toml").write_text(MAP.replace("NAME", name))
        read = Read(folder / "failed.json")
        assert SECRET not in str(read.events) + str(read.rejects) + str(read.notes)
        assert [each["field"] for each in read.rejects] == ["items"]


def test_the_spans_of_a_mapping_are_inside_the_folder(folder):
    write(folder / "logs.jsonl", [LOG_RECORD])
    for name in [*names(folder, "spans.json"), "/dev/zero"]:
        (folder / "rankwatch.toml").write_text(SPANS.replace("NAME", name))
        read = Read(folder / "logs.jsonl")
        assert SECRET not in str(read.events) + str(read.rejects) + str(read.notes)
        assert [each["field"] for each in read.rejects] == ["spans"]
    (folder / "rankwatch.toml").write_text(SPANS.replace("NAME", "copy"))
    assert [e.item_id for e in Read(folder / "logs.jsonl").events] == [SECRET]


def test_a_mapping_is_not_appended_to_what_a_link_leads_to(folder, tmp_path):
    (folder / "odd.json").write_text(json.dumps([{"q": "1", "who": "a", "right": True}]))
    profile = tmp_path / "home" / ".profile"
    for content in (None, "", "x = 1\n"):
        if content is not None:
            profile.write_text(content)
        (folder / "rankwatch.toml").symlink_to(profile)
        assert "it is a link" in rankwatch("map", folder / "odd.json", code=2).stderr
        assert (profile.read_text() if profile.exists() else None) == content
        (folder / "rankwatch.toml").unlink()


@pytest.mark.fault("attacks", "a file next to results that is a link", "not read")
@pytest.mark.parametrize("made", TOOLS.values(), ids=TOOLS)
def test_no_file_of_a_harness_is_read_through_a_link(tmp_path, made):
    for each in made.files:
        folder, outside = (tmp_path / each.replace("/", "_") / name for name in ("in", "out"))
        made.write(folder)
        (folder / each).rename(outside)
        removed = _read(folder)[0]
        (folder / each).touch()
        emptied = _read(folder)[0]
        (folder / each).unlink()
        (folder / each).symlink_to(outside)
        events, refused = _read(folder)
        assert events in (removed, emptied) or (refused and all(event in removed for event in events))


def _read(folder):
    """The events of a folder, and whether it was refused: as a whole, or by a reject that names a link."""
    try:
        read = Read(folder)
    except PathError:
        return [], True
    return list(map(str, read.events)), any("is a link" in each["reason"] for each in read.rejects)


def test_the_results_file_of_lm_eval_is_read_through_no_link(tmp_path):
    run = lm_eval_run(tmp_path / "run", "acme", [sample(k) for k in range(3)])
    results = run.with_name(f"results_{TIME}.json")
    results.rename(tmp_path / "elsewhere.json")
    for target in (tmp_path / "elsewhere.json", tmp_path / "none", Path("/dev/zero")):
        results.symlink_to(target)
        read = Read(run)
        assert not read.events
        assert "is a link" in read.rejects[0]["reason"]
        results.unlink()


def test_only_regular_files_below_a_folder_are_opened(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    file = tmp_path / "a" / "b" / "c"
    file.write_text("c")
    (tmp_path / "a" / "link").symlink_to("b")
    assert inside(tmp_path, "a/b/c") == file
    assert inside(tmp_path, "./a/b") == tmp_path / "a" / "b"
    for name in ("a/link/c", "a/link", "a/b/../b/c", str(file), "..", "", "."):
        with pytest.raises(UnsafePathError):
            inside(tmp_path, name)
    with pytest.raises(FileNotFoundError):
        inside(tmp_path, "a/none/c")
    with pytest.raises(NotADirectoryError):
        inside(tmp_path, "a/b/c/d")
    for special in ("/dev/null", "/dev/zero"):
        with pytest.raises(UnsafePathError):
            open_regular(Path(special))
