"""Evaluation results over OTLP/HTTP: as the exporters of the OpenTelemetry SDK posted them (`otlp/record.py`), and by hand."""

import gzip
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from monitor.files.formats.choices import ChoiceError
from monitor.serve.access.access_file import AccessFile, new_token
from monitor.serve.access.limits import ClientLimits
from monitor.serve.api.writing.request import ReadOnlyIntake
from monitor.service.otlp_reader import OtlpReader
from tests.served import Served
from tests.unit.files.test_ingest_open_telemetry import case, logs, result, traces

MAP = "".join(f'[[map]]\nevaluation = "{name}"\nitem_id = "test.case.id"\n' for name in ("Correctness", "arena"))
JSON = {"content_type": "application/json"}
PROTOBUF = "application/x-protobuf"


@pytest.fixture(scope="module")
def mapping(tmp_path_factory):
    file = tmp_path_factory.mktemp("otel") / "map.toml"
    file.write_text(MAP)
    return file


@pytest.fixture(scope="module")
def module_server(mapping):
    with Served(read_otlp=OtlpReader(mapping).read) as server:
        yield server


@pytest.fixture
def otel(module_server):
    return module_server.hold()


def export(server, signal, line, **headers):
    return server.request("POST", f"/v1/{signal}", json.dumps(line).encode(), **(JSON | headers))


def post(server, path, body, **headers):
    """Post, and return the answer, whose body may be bytes."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        return urllib.request.urlopen(urllib.request.Request(server.url + path, body, names), timeout=60)
    except urllib.error.HTTPError as error:
        return error


def kept(server):
    """What the log keeps of records that are rejected: where, in which field, of which benchmark, and how they begin."""
    rejects = [each for record in server.log.records for each in json.loads(record).get("rejected", ())]
    return [(each["source"], each["line"], each["field"], each["benchmark"], each["raw"]) for each in rejects]


def counters(server):
    (partition,) = server.partitions
    return {name: (b.counters["events"], b.counters["duplicates"]) for name, b in partition.benchmarks.items()}


def test_span_and_log_copies_of_a_result_from_the_sdk_count_once(otel):
    for signal in ("logs", "traces"):
        body = (Path(__file__).with_name("otlp") / f"{signal}.pb.gz").read_bytes()
        with post(otel, f"/v1/{signal}", body, content_encoding="gzip", content_type=PROTOBUF) as response:
            assert (response.status, response.read()) == (200, b"")
    report = otel.get("benchmarks/Correctness").json["benchmarks"][0]
    assert (report["items"], report["duplicates"], report["conflicts"]) == (5, 10, 0)
    assert {each["model"]: each["mean"] for each in report["models"]} == {"a": 1.0, "b": 0.0}


def test_json_and_gzip_are_accepted(otel):
    assert export(otel, "traces", traces((case("q1"), [result()]))).json == {}
    body = gzip.compress(json.dumps(logs(result() + case("q2"))).encode())
    answer = otel.request("POST", "/v1/logs", body, content_encoding="gzip", **JSON)
    assert (answer.status, answer.json, answer.headers["content-type"]) == (200, {}, "application/json")
    assert counters(otel) == {"Correctness": (2, 0)}


def test_a_record_that_cannot_be_used_is_rejected_and_the_others_are_stored(otel):
    line = logs(result() + case("q1"), result(), result(7.0) + case("q2"), result() + case("q" * 300))
    answer = export(otel, "logs", line)
    partial = answer.json["partialSuccess"]
    assert (answer.status, partial["rejectedLogRecords"]) == (200, "3")
    assert "log record 2: item_id" in partial["errorMessage"]
    assert "/" not in partial["errorMessage"]  # no path of the server
    assert counters(otel) == {"Correctness": (1, 0)}
    without_item, out_of_range, long = kept(otel)
    assert without_item[:4] == ("OTLP logs", 2, "item_id", "Correctness")
    assert json.loads(without_item[4])["gen_ai.evaluation.name"] == "Correctness"
    assert out_of_range[:4] == ("OTLP logs", 3, "score", "Correctness")
    assert json.loads(out_of_range[4])["score"] == 7  # the event, to be corrected and sent
    assert long[2] == "item_id"
    assert otel.partitions[0].benchmarks["Correctness"].counters["rejected"] == 3
    assert (
        export(otel, "traces", traces((case("q1"), [result()]), ([], [result()]))).json["partialSuccess"][
            "rejectedSpans"
        ]
        == "1"
    )


def test_what_the_state_refuses_is_rejected(otel):
    export(otel, "logs", logs(result() + case("q1")))
    otel.request("POST", "/api/v1/benchmarks/Correctness/ended", b"{}", **JSON)
    answer = export(otel, "logs", logs(result() + case("q2"), result() + case("q1")))
    assert answer.json["partialSuccess"]["rejectedLogRecords"] == "1"
    correct = otel.partitions[0].benchmarks["Correctness"].counters
    assert (correct["events"], correct["duplicates"], correct["rejected"]) == (2, 1, 1)


def test_results_for_a_board_of_battles_are_rejected_and_the_others_are_stored(otel):
    battle = {"benchmark": "arena", "item_id": "1", "model_a": "a", "model_b": "b", "winner": "a"}
    assert otel.post([battle]).status == 200
    for name in ("1", "2"):
        line = logs(result(name="arena") + case(name), result() + case(name))
        assert export(otel, "logs", line).status == 200
    assert counters(otel)["Correctness"] == (2, 0)
    assert otel.partitions[0].benchmarks["arena"].counters["rejected"] == 2


def test_protobuf_gets_answers_in_protobuf(otel):
    body = LogsData()
    record = body.resource_logs.add().scope_logs.add().log_records.add(event_name="gen_ai.evaluation.result")
    record.attributes.add(key="gen_ai.evaluation.name").value.string_value = "Correctness"
    whole = body.resource_logs[0].scope_logs.add().log_records.add(event_name="gen_ai.evaluation.result")
    for key, value in ("gen_ai.evaluation.name", "Correctness"), ("test.case.id", "q1"), ("gen_ai.request.model", "m"):
        whole.attributes.add(key=key).value.string_value = value
    whole.attributes.add(key="gen_ai.evaluation.score.value").value.double_value = float("nan")
    record.attributes.add(key="tags").value.array_value.values.add().string_value = "not read"
    with post(otel, "/v1/logs", body.SerializeToString(), content_type=PROTOBUF) as response:
        answer = ExportLogsServiceResponse.FromString(response.read())
    assert answer.partial_success.rejected_log_records == 1
    assert counters(otel) == {"Correctness": (1, 0)}
    with post(otel, "/v1/logs", b"\xff\xff", content_type=PROTOBUF) as response:
        assert response.status == 400
        assert "not OTLP protobuf" in Status.FromString(response.read()).message


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"resourceLogs":3}', b"\xff", b"[" * 100_000, b'{"resourceLogs":' * 9_000]
)
def test_a_body_that_is_no_export_is_refused_with_a_status_message(otel, body):
    answer = otel.request("POST", "/v1/logs", body, **JSON)
    assert answer.status == 400
    assert "not OTLP JSON" in answer.json["message"]
    assert counters(otel) == {}


def test_other_types_are_refused(otel):
    assert otel.request("POST", "/v1/logs", b"{}", content_type="text/plain").status == 415
    assert otel.request("POST", "/v1/logs", b"{}", content_type="application/grpc").status == 415


def test_without_a_mapping_nothing_is_read():
    with Served() as server:
        answer = export(server, "logs", logs(result() + case("q1")))
    assert answer.status == 404
    assert "otel_map" in answer.json["message"]


def test_a_reader_takes_none(mapping):
    with Served(read_otlp=OtlpReader(mapping).read, intake=ReadOnlyIntake()) as server:
        answer = export(server, "logs", logs(result() + case("q1")))
        nothing = export(server, "logs", logs())
    assert answer.status == 503
    assert "read-only" in answer.json["message"]
    assert (nothing.status, nothing.json) == (200, {})


def test_tokens_scopes_and_limits_hold(mapping, tmp_path):
    now, scopes = (
        datetime.now(UTC),
        {"reader": "read:*", "ci": "write:Correct*", "other": "write:mmlu", "third": "write:arc"},
    )
    made = [new_token(name, [scope], now, None) for name, scope in scopes.items()]
    with AccessFile(tmp_path / "access.json").edit() as tokens:
        tokens += [token for _, token in made]
    reader, secret, other, third = (secret for secret, _ in made)
    limits = ClientLimits(events=0.1)
    line = logs(result() + case("q1"), result() + case("q2"))
    rules = {"access_file": tmp_path / "access.json"}
    with Served(read_otlp=OtlpReader(mapping).read, rules=rules, limits=limits) as server:
        assert export(server, "logs", line).status == 401
        without_item = logs(result())  # it would be a dead letter of the benchmark
        for token, sent in ((reader, line), (other, line), (third, without_item)):
            assert export(server, "logs", sent, authorization=f"Bearer {token}").status == 403
        assert export(server, "logs", line, authorization=f"Bearer {secret}").status == 200
        answer = export(server, "logs", line, authorization=f"Bearer {secret}")
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (429, True)


@pytest.mark.parametrize(
    ("table", "said"),
    [("", "has evaluation"), ('[[map]]\nevaluation = "*"\nitem_id = "i"\nspans = "x"\n', "for files")],
)
def test_a_file_that_maps_nothing_posted_is_refused(tmp_path, table, said):
    (tmp_path / "map.toml").write_text(table)
    with pytest.raises(ChoiceError, match=said):
        OtlpReader(tmp_path / "map.toml")
