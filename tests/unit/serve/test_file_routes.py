"""Files of results that are posted: read as the commands read them, whole or not at all, and nothing but the file."""

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from monitor.serve.access.access_file import AccessFile, new_token
from monitor.serve.access.audit import Audit
from monitor.service import file_reader
from monitor.service.file_reader import FileReader, is_file_name
from tests import forked
from tests.commands import PATIENCE, RANKWATCH, environment
from tests.served import Served

LIMIT = 1_000_000


@pytest.fixture(scope="module")
def module_server():
    with Served(read_file=FileReader(LIMIT)) as server:
        yield server


@pytest.fixture
def server(module_server):
    return module_server.hold()


def events(count=4, benchmark="bench"):
    return [
        {"benchmark": benchmark, "item_id": f"i{k}", "model": m, "score": k % 2} for k in range(count) for m in "ab"
    ]


def lines(*records):
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def post(server, name, body, **headers):
    headers = {"content_type": "application/octet-stream"} | headers
    return server.request(
        "POST", f"/api/v1/files?name={quote(name, safe='', errors='surrogateescape')}", body, **headers
    )


def nothing_stored(server):
    return not server.partitions[0].benchmarks


TABLE = b"benchmark,item_id,model,score\nbench,i1,a,1\nbench,i1,b,0\n"


@pytest.mark.parametrize(
    ("name", "body", "count"),
    [
        ("results.jsonl", lines(*events()), 8),
        ("results.jsonl.gz", gzip.compress(lines(*events()), mtime=0), 8),
        (
            "r\u00e9sultats de mod\u00e8le=x.jsonl",
            lines({"declare": "bench", "items": 4}, *events(), {"ended": "bench"}),
            8,
        ),
        ("table.csv", TABLE, 2),
    ],
)
def test_a_file_of_any_format_is_stored(server, name, body, count):
    answer = post(server, name, body)
    assert (answer.status, answer.json["accepted"], answer.json["benchmarks"]) == (200, count, ["bench"]), answer.text
    assert answer.json["rejected"] == []
    board = server.partitions[0].benchmarks["bench"]
    assert board.counters["events"] == count
    assert len(board.ended) == (2 if b"ended" in body else 0)
    assert post(server, name, body).json["accepted"] == count
    assert board.counters["duplicates"] == count


@pytest.mark.parametrize(
    ("name", "body", "lines_at_fault"),
    [
        (
            "bad.jsonl",
            lines(*events(), {"benchmark": "bench", "item_id": "i9", "model": "a", "score": 1.2}, *events()),
            [9],
        ),
        (
            "bad.jsonl",
            lines(*events()) + b"{broken\n" + lines({"benchmark": "bench", "item_id": "", "model": "a", "score": 1}),
            [9, 10],
        ),
        ("bad.csv", TABLE + b"bench,i2,a,1.2\n", [4]),
    ],
)
def test_the_errors_are_those_of_the_command_line_and_nothing_is_stored(server, tmp_path, name, body, lines_at_fault):
    (tmp_path / name).write_bytes(body)
    answer = post(server, name, body)
    assert (answer.status, [each["line"] for each in answer.json["errors"]]) == (422, lines_at_fault)
    ended = forked.run([RANKWATCH, "report", str(tmp_path / name)], env=environment(), timeout=PATIENCE)
    printed = ended.stderr.replace(f"{tmp_path}/", "")
    for error in answer.json["errors"]:
        sentence = f"{name}:{error['line']}: {error['field']}: {error['reason']}"
        assert sentence in printed
    assert f"{name}:{lines_at_fault[0]}: " in answer.json["detail"]
    assert "/tmp" not in answer.text
    assert nothing_stored(server)


def zipped(size):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * size)
    return packed.getvalue()


@pytest.mark.fault("attacks", "uploads that cannot be read, gzip and zip bombs", "refused; nothing is stored")
@pytest.mark.parametrize(
    ("name", "body", "status", "reason"),
    [
        ("bomb.jsonl.gz", gzip.compress(b"\n" * 2 * LIMIT, mtime=0), 413, "unpacks to more than"),
        ("bomb.eval", zipped(2 * LIMIT), 413, "unpacks to more than"),
        ("cut.jsonl.gz", gzip.compress(lines(*events()), mtime=0)[:-9], 422, "breaks off"),
        ("table.parquet", b"PAR1" + b"\0" * 100, 415, "rankwatch send"),
        ("empty.jsonl", b"", 422, "has no results"),
        ("log.eval", zipped(10), 422, "log.eval"),
        ("rankwatch.toml", b"[[map]]\n", 422, "no name of a file"),
        ("../results.jsonl", lines(*events()), 422, "no name of a file"),
        ("a\n.jsonl", lines(*events()), 422, "no name of a file"),
        ("", lines(*events()), 422, "no name of a file"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_stored(server, name, body, status, reason):
    answer = post(server, name, body)
    assert answer.status == status, answer.text
    assert reason in answer.json["detail"]
    assert "rankwatch-" not in answer.text.replace("`rankwatch", "")  # the folder it is read in
    assert nothing_stored(server)


def test_a_file_of_too_many_results_is_refused(server, monkeypatch):
    monkeypatch.setattr(file_reader, "MAX_RESULTS", 100)
    answer = post(server, "results.jsonl", lines(*events(51)))
    assert (answer.status, "more than 100 results" in answer.json["detail"]) == (413, True)
    assert nothing_stored(server)


def test_a_file_that_does_not_name_its_model_needs_one(server):
    """In a folder of a run the folder gives the name; here that would be a folder of the server."""
    sample = {
        "doc_id": 0,
        "doc": {},
        "target": "x",
        "arguments": [],
        "resps": [],
        "filtered_resps": ["x"],
        "doc_hash": "h",
        "acc": 1.0,
    }
    name = "samples_task_2026-11-20T10-00-00.000000.jsonl"
    answer = post(server, name, lines(sample))
    assert (answer.status, "give the model" in answer.json["detail"]) == (422, True)
    assert nothing_stored(server)
    answer = server.request(
        "POST", f"/api/v1/files?name={name}&model=ash", lines(sample), content_type="application/octet-stream"
    )
    assert answer.status == 200, answer.text
    assert any("metric acc" in note for note in answer.json["notes"])
    assert [m["model"] for m in server.get("benchmarks/task").json["benchmarks"][0]["models"]] == ["ash"]


def test_folders_that_were_not_sent_name_neither_models_nor_repeats(server):
    trial = {"task_id": "t1", "trial_name": "t1.1-of-1.run1", "is_resolved": True, "failure_mode": "unset"}
    body = json.dumps({"id": "x", "results": [trial], "n_resolved": 1}).encode()
    answer = post(server, "results.json", body)
    assert (answer.status, "give the model" in answer.json["detail"]) == (422, True), answer.text
    assert nothing_stored(server)
    for accepted_before in (0, 1):
        target = "/api/v1/files?name=results.json&model=ash"
        answer = server.request("POST", target, body, content_type="application/octet-stream")
        assert answer.status == 200, answer.text
        (board,) = server.partitions[0].benchmarks.values()
        assert [m["model"] for m in server.get(f"benchmarks/{board.name}").json["benchmarks"][0]["models"]] == ["ash"]
        assert board.counters["duplicates"] == accepted_before


def test_a_file_that_only_its_folder_describes_is_refused(server):
    stats = [{"instance_id": "id1", "stats": [{"name": {"name": "exact_match", "split": "test"}, "mean": 1.0}]}]
    for model in ("", "&model=ash"):
        target = f"/api/v1/files?name=per_instance_stats.json{model}"
        answer = server.request("POST", target, json.dumps(stats).encode(), content_type="application/octet-stream")
        assert (answer.status, answer.json.get("errors", [])) == (422, []), answer.text
        assert "send the folder with `rankwatch send`" in answer.json["detail"]
        assert "/tmp" not in answer.text
        assert nothing_stored(server)


def test_a_note_names_the_field_of_the_upload(server):
    info = {
        "trace_id": "t1",
        "trace_metadata": {"mlflow.sourceRun": "5bd8"},
        "assessments": [{"assessment_name": "exact", "feedback": {"value": True}, "valid": True}],
    }
    answer = post(server, "traces.json", json.dumps([{"info": {**info, "trace_location": {}}}]).encode())
    assert answer.status == 200, answer.text
    assert any(
        "the model is called 5bd8; name it with NAME=PATH (the field model of an upload)" in note
        for note in answer.json["notes"]
    )


@pytest.mark.fault("attacks", "an upload whose name leads out of its folder", "not accepted as a name")
@pytest.mark.parametrize("name", ["/etc/passwd", "..", ".", "a/b.jsonl", "a\0.jsonl", "x" * 201, "\ud800.jsonl"])
def test_no_name_leaves_the_folder(name):
    assert not is_file_name(name)


def test_forms_and_servers_without_files_are_refused(server):
    for form in ("multipart/form-data; boundary=x", "text/plain", "application/x-www-form-urlencoded"):
        assert post(server, "a.jsonl", lines(*events()), content_type=form).status == 415
    with Served() as plain:
        assert post(plain, "a.jsonl", lines(*events())).status == 404


def test_only_benchmarks_of_the_scope_are_written(tmp_path):
    made = {
        name: new_token(name, [scope], datetime.now(UTC), None)
        for name, scope in (("mine", "write:mine*"), ("reader", "read"))
    }
    with AccessFile(tmp_path / "access.json").edit() as tokens:
        tokens += [token for _, token in made.values()]
    both = lines(*events(benchmark="mine 1"), *events(benchmark="other"))
    audit = tmp_path / "audit.jsonl"
    rules = {"access_file": tmp_path / "access.json"}
    with Served(read_file=FileReader(LIMIT), rules=rules, audit=Audit(audit)) as server:

        def sent(name, body, **headers):
            answer = post(server, "a.jsonl", body, Authorization=f"Bearer {made[name][0]}", **headers)
            return answer.status, answer.json

        assert post(server, "a.jsonl", both).status == 401
        assert sent("reader", both)[0] == 403
        assert sent("mine", both)[0] == 403
        assert nothing_stored(server)
        first = sent("mine", lines(*events(benchmark="mine 1")), Idempotency_Key="k")
        assert first[0] == 200
        assert sent("mine", lines(*events(benchmark="mine 1")), Idempotency_Key="k") == first
        assert sent("mine", b"not a result")[0] == 422
        assert server.partitions[0].benchmarks["mine 1"].counters["events"] == 8
    shown = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {each["file"] for each in shown if each["action"] == "write"} == {"a.jsonl"}
    assert [each["status"] for each in shown][-1] == 422
