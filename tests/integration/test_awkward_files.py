"""What each command says of files that others refuse or misread: exit codes and messages."""

import gzip
import json
import re
import shlex

import pytest

from tests import forked
from tests.commands import RANKWATCH, Watch, environment, get, rankwatch, report, until, watch_once, write
from tests.served import Served

MODELS = "ab"
RECORDS = [
    {"benchmark": "bench", "item_id": str(k), "model": model, "score": int((k + j) % 3 > 0)}
    for k in range(30)
    for j, model in enumerate(MODELS)
]


def run(command, path, tmp_path, *more, code=0):
    """A command that reads files, with what it needs besides them."""
    arguments = {
        "report": ("report", path),
        "gate": ("gate", path, "--pair", *MODELS),
        "watch": ("watch", path, "--once", "--data-dir", tmp_path / "data"),
    }[command]
    return rankwatch(*arguments, *more, code=code)


@pytest.mark.parametrize("command", ["report", "gate", "watch"])
def test_most_lines_refused_is_exit_1_however_few_there_are(command, tmp_path):
    path = write(tmp_path / "a.jsonl", [*RECORDS[:2], "{", "{", "{", "{"])
    ended = run(command, path, tmp_path, code=1)
    assert (
        "4 of 6 lines cannot be read, more than half; fix the files, or raise the limit with --max-rejected"
        in ended.stderr
    )
    assert ended.stdout == ""


def test_a_larger_share_can_be_allowed(tmp_path):
    path = write(tmp_path / "a.jsonl", [*RECORDS[:2], "{", "{", "{", "{"])
    assert "2 events" in rankwatch("report", path, "--max-rejected", "0.7").stdout


@pytest.mark.parametrize("command", ["report", "watch"])
def test_conversions_are_said_once_and_change_no_result(command, tmp_path):
    plain = write(tmp_path / "plain.jsonl", RECORDS)
    odd = tmp_path / "odd.jsonl"
    records = [{**r, "item_id": int(r["item_id"]), "score": str(r["score"])} for r in RECORDS]
    odd.write_bytes(b"\xef\xbb\xbf" + b"".join(json.dumps(r).encode() + b"\r\n\r\n" for r in records))
    expected, _ = report(plain)
    ended = run(command, odd, tmp_path, "--format", "json", *(["--items", 30] if command == "watch" else []))
    result = json.loads(ended.stdout)
    assert result["benchmarks"][0]["models"] == expected["benchmarks"][0]["models"]
    assert ended.stderr.count("odd.jsonl: item_id is a number and is read as text") == 1
    assert ended.stderr.count("odd.jsonl: score is text and is read as the number or boolean that it writes") == 1


def test_a_percent_scale_is_refused_with_the_flag_and_read_with_it(tmp_path):
    path = write(tmp_path / "a.jsonl", [{**r, "score": 100 * r["score"]} for r in RECORDS])
    ended = rankwatch("report", path, code=1)
    assert re.search(r"the largest 100, the first in \S+:\d+\); add --scale 100 if they go up to 100", ended.stderr)
    expected, _ = report(write(tmp_path / "b.jsonl", RECORDS))
    assert report(path, "--scale", 100)[0] == expected
    assert "give the largest score" in rankwatch("report", path, "--scale", "no", code=2).stderr


def test_a_link_out_of_the_folder_is_followed_only_if_asked(tmp_path):
    write(tmp_path / "in.jsonl", RECORDS[::2])
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder/a.jsonl", RECORDS[1::2])
    (tmp_path / "folder/b.jsonl").symlink_to(tmp_path / "in.jsonl")
    result, notes = report(tmp_path / "folder")
    assert result["benchmarks"][0]["events"] == 30
    assert "b.jsonl is skipped: it links to" in notes
    result, notes = report(tmp_path / "folder", "--follow-symlinks")
    assert result["benchmarks"][0]["events"] == 60
    assert "skipped" not in notes


def test_a_wide_table_and_battles_name_what_to_do(tmp_path):
    (tmp_path / "wide.csv").write_text("question_id,gpt-4,llama\n1,1,0\n2,0,1\n")
    ended = rankwatch("report", tmp_path / "wide.csv", code=1)
    assert "add --columns 'models=*'; else" in ended.stderr
    assert "2 models" in rankwatch("report", tmp_path / "wide.csv", "--columns", "models=*", "--benchmark", "q").stdout
    (tmp_path / "arena.csv").write_text("id,model_a,model_b,winner\n1,x,y,1\n2,x,y,0\n")
    columns = ("--columns", "item_id=id,model=model_a,score=winner", "--benchmark", "arena")
    assert "a battle of two models" in rankwatch("report", tmp_path / "arena.csv", *columns, code=1).stderr


def test_two_columns_of_one_name_are_refused(tmp_path):
    """The last one counted, and the other model led."""
    rows = "".join(f"{k},{m},{int(k % 3 > 0)},{int(k % 3 == 0)}\n" for k in range(30) for m in "ab")
    (tmp_path / "a.csv").write_text("item_id,model,score,score\n" + rows)
    refused = rankwatch("report", tmp_path / "a.csv", "--benchmark", "q", code=1).stderr
    assert "2 columns are called score; rename or remove all but one" in refused
    (tmp_path / "b.csv").write_text("id,gpt,gpt,llama\n1,1,0,1\n2,0,1,1\n")
    wide = ("--columns", "models=*", "--benchmark", "q")
    assert "2 columns are called gpt" in rankwatch("report", tmp_path / "b.csv", *wide, code=1).stderr
    (tmp_path / "c.csv").write_text("item_id,model,score,note,note\n1,a,1,,\n1,b,0,,\n")
    assert "2 models" in rankwatch("report", tmp_path / "c.csv", "--benchmark", "q").stdout


def test_a_json_array_is_read_under_any_name(tmp_path):
    for name, text in {
        "a.json": json.dumps(RECORDS),
        "b.json": json.dumps(RECORDS, indent=1),
        "c.jsonl": json.dumps(RECORDS),
        "d.jsonl": json.dumps(RECORDS) + "\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert "2 models" in rankwatch("report", tmp_path / name).stdout


def test_messages_of_a_topic_are_no_lines_of_a_file(tmp_path):
    columns = {"benchmark": "bench", "model": "a", "item_ids": ["1", "2"], "scores": [1, 0]}
    path = write(tmp_path / "dump.jsonl", [{"events": RECORDS}, columns])
    refused = rankwatch("report", path, code=1).stderr
    assert refused.count("packs several events, as only a message of a topic may; write each event on a line") == 2


def test_files_without_any_score_are_no_report(tmp_path):
    ended = write(tmp_path / "a.jsonl", [{"ended": "bench"}])
    declared = write(tmp_path / "b.jsonl", [{"declare": "bench", "items": 5}])
    for path, words in ((ended, "rejected"), (declared, "no results")):
        for command in ("report", "watch"):
            assert words in run(command, path, tmp_path, code=1).stderr


def test_named_models_of_a_wide_table_reach_every_command(tmp_path):
    path = tmp_path / "wide.csv"
    rows = "".join(f"{k},what is {k}?,{int(k % 9 > 0)},{int(k % 3 > 0)}\n" for k in range(90))
    path.write_text("question_id,prompt,gpt-4,llama\n" + rows)
    refused = rankwatch("report", path, code=1).stderr
    assert "prompt" not in refused.partition("; if ")[2]
    flags = shlex.split(refused.partition("add ")[2].partition(";")[0])
    assert flags == ["--columns", "models=gpt-4|llama"]  # a table on its own is named like its file

    def means(benchmark):
        return {model["model"]: round(model["mean"], 4) for model in benchmark["models"]}

    expected = {"gpt-4": 0.8889, "llama": 0.6667}
    result, _ = report(path, *flags)
    assert means(result["benchmarks"][0]) == expected
    assert means(json.loads(watch_once(tmp_path / "data", path, *flags))["benchmarks"][0]) == expected
    with Watch(tmp_path / "other") as watch:
        rankwatch("send", path, "--to", watch.url, "--data-dir", tmp_path / "sent", *flags)

        def arrived():
            benchmarks = json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"]
            return benchmarks and means(benchmarks[0]) == expected

        until(arrived, "the scores of both models")


def piped(data, *arguments, code=0):
    """A command that reads standard input."""
    command = [RANKWATCH, *map(str, arguments)]
    ended = forked.run(command, env=environment(), input=data, text=False, timeout=120)
    assert ended.returncode == code, ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    return ended.stdout.decode(), ended.stderr.decode()


def test_standard_input_is_a_path(tmp_path):
    path = write(tmp_path / "a.jsonl", RECORDS)
    data = path.read_bytes()
    expected, _ = report(path)
    assert json.loads(piped(data, "report", "-", "--format", "json")[0]) == expected
    assert json.loads(piped(gzip.compress(data), "report", "-", "--format", "json")[0]) == expected
    assert "undecided" in "".join(piped(data, "gate", "-", "--pair", *MODELS, code=3))
    for _ in range(2):  # the same input again is nothing new
        arguments = ("watch", "-", "--once", "--items", 30, "--format", "json", "--data-dir", tmp_path / "data")
        benchmark = json.loads(piped(data, *arguments)[0])["benchmarks"][0]
        assert (benchmark["events"], benchmark["duplicates"]) == (60, 0)
    assert "standard input:1: record" in piped(b"{\n" + data, "report", "-")[1]
    assert "read standard input and URLs with --once" in piped(data, "watch", "-", code=2)[1]
    assert "standard input: the file is empty; write one JSON object" in piped(b"", "report", "-", code=1)[1]


def test_standard_input_is_sent(tmp_path):
    data = write(tmp_path / "a.jsonl", RECORDS).read_bytes()
    with Served() as served:
        arguments = ("send", "-", "--to", served.url, "--data-dir", tmp_path / "sent")
        assert "60 events of 1 benchmark sent" in piped(data, *arguments)[0]
        assert "nothing new sent" in piped(data, *arguments)[0]
        assert served.get("benchmarks").json["benchmarks"][0]["events"] == 60


def test_utf16_text_is_read_and_said(tmp_path):
    path = write(tmp_path / "a.jsonl", RECORDS)
    expected, _ = report(path)
    for name, encoding in (("b.jsonl", "utf-16"), ("c.jsonl", "utf-16-be")):
        text = path.read_text()
        data = (text if encoding == "utf-16" else "\ufeff" + text).encode(encoding)
        (tmp_path / name).write_bytes(data)
        result, notes = report(tmp_path / name)
        assert result == expected
        assert notes.count("the text is UTF-16 and is read as UTF-8") == 1
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(data))
    assert report(tmp_path / "d.jsonl.gz")[0] == expected
    table = "id\tmodel\ttask\tscore\n1\tä\tquiz\t1\n1\tb\tquiz\t0\n"
    (tmp_path / "e.tsv").write_bytes(table.encode("utf-16"))
    assert [m["model"] for m in report(tmp_path / "e.tsv")[0]["benchmarks"][0]["models"]] == ["ä", "b"]


LINES = "".join(json.dumps(each) + "\n" for each in RECORDS)
PAGE = "\n<!DOCTYPE HTML>\n<html><head><title>Sign in</title></head></html>"


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".json", ".parquet", ".eval", ".jsonl.gz", ""])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (LINES.encode("utf-16-le"), "the text is UTF-16 without a byte order mark; write it as UTF-8"),
        (LINES.encode("utf-16-be"), "the text is UTF-16 without a byte order mark; write it as UTF-8"),
        (PAGE.encode(), "the file is an HTML page, not results; download the file itself"),
        (b'<?xml version="1.0"?><results/>', "the file is an XML document, not results; convert it"),
        (bytes(range(256)) * 20, "the file is binary data, not results; use JSON lines"),
    ],
)
def test_a_file_of_another_kind_is_named_once(tmp_path, suffix, content, reason):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    ended = rankwatch("report", path, code=1)
    assert ended.stderr.startswith(f"rankwatch: {path}:1: file: {reason}")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["report", "watch"])
@pytest.mark.parametrize(
    "url", ["ftp://example.org/x.jsonl", "s3://bucket/x.jsonl", "file:///x.jsonl", "a=ftp://example.org/x?q=1"]
)
def test_a_url_of_another_scheme_is_refused_with_what_is_read(tmp_path, command, url):
    ended = run(command, url, tmp_path, code=2)
    scheme = url.removeprefix("a=").partition(":")[0]
    assert f": {scheme}:// is not read; use http:// or https://, or the path of a file" in ended.stderr
    assert "q=1" not in ended.stderr
