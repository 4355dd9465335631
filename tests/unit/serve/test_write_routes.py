"""Events and declarations over HTTP: whole requests or nothing, and every refusal says what to do."""

import gzip
import http.client
import json
import random
import socket
import threading
import zlib

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.engine.limits import Limits
from monitor.serve.api.writing import appending, body_reader
from tests.commands import Counted, events, pairs_of
from tests.served import Served, folded

SKILLS = {"a": 0.9, "b": 0.6, "c": 0.2}
RECORDS = events(random.Random(1), SKILLS, 50)


def lines(records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def counted(served, records):
    """Check what was folded against plain dictionaries."""
    (benchmark,) = served.get("benchmarks?pairs=all").json["benchmarks"]
    expected = Counted(records)
    assert pairs_of(benchmark) == expected.pairs()
    assert (benchmark["events"], benchmark["duplicates"]) == (expected.events, expected.duplicates)


WAYS = {
    "json lines": (lines(RECORDS), {}),
    "without a last newline": (lines(RECORDS)[:-1], {}),
    "blank lines and returns": (lines(RECORDS).replace(b"\n", b"\r\n\n"), {}),
    "gzip": (gzip.compress(lines(RECORDS)), {"content_encoding": "gzip"}),
    "gzip in two members": (
        gzip.compress(lines(RECORDS[:70])) + gzip.compress(lines(RECORDS[70:])),
        {"content_encoding": "GZIP"},
    ),
    "an array": (json.dumps(RECORDS).encode(), {"content_type": "application/json; charset=utf-8"}),
    "an array as gzip": (
        gzip.compress(json.dumps(RECORDS, indent=1).encode()),
        {"content_type": "application/json", "content_encoding": "gzip"},
    ),
    "fields that are not read": (lines([{**r, "attributes": {"events": [1]}, "x": 1} for r in RECORDS]), {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_events_are_taken_as(served, way):
    body, headers = WAYS[way]
    answer = served.post(body, **headers)
    assert (answer.status, answer.json) == (
        200,
        {"accepted": 150, "declarations": 0, "ended": 0, "rejected": [], "converted": [], "set_aside": []},
    )
    counted(served, RECORDS)


def test_a_request_is_one_record_of_the_log(served):
    served.post(RECORDS)
    assert len(served.log.records) == 1


def test_sending_again_changes_no_score(served):
    for _ in range(2):
        assert served.post(RECORDS).status == 200
    counted(served, RECORDS * 2)


def test_an_empty_request_is_no_record(served):
    assert served.post(b"\n\n").json["accepted"] == 0
    assert served.post(b"[]", content_type="application/json").json["accepted"] == 0
    assert served.log.records == []


@pytest.mark.parametrize(
    ("bad", "field", "found"),
    [
        (b'{"benchmark":"bench","item_id":"1","model":"m","score":1.5}', "score", "1.5"),
        (b'{"benchmark":"bench","item_id":"1","model":"m"}', "score", "nothing"),
        (b'{"benchmark":"bench","item_id":"1","model":"a\\u202eb","score":1}', "model", '"a\\u202eb"'),
        ('{"benchmark":"bench","item_id":"1","model":"a\u202eb","score":1}'.encode(), "model", '"a\\u202eb"'),
        (b'{"benchmark":"bench"', "record", '{"benchmark":"bench"'),
        (b'{"model":"\xff"}', "record", "byte 0xff at position 10"),
        (b'{"events":[]}', "benchmark", "nothing"),
        (b"[1]", "record", "[1]"),
        (b'{"declare":"bench","items":0}', "items", "0"),
    ],
)
def test_a_bad_line_refuses_the_request_and_is_named(served, bad, field, found):
    body = lines(RECORDS[:7]) + bad + b"\n" + lines(RECORDS[7:])
    answer = served.post(body)
    assert answer.status == 422
    (error,) = answer.json["errors"]
    assert (error["line"], error["field"], error["found"]) == (8, field, found)
    assert error["reason"]
    assert "Nothing was stored: 1 bad record. Line 8: " in answer.json["detail"]
    assert served.log.records == []


def test_bad_records_of_an_array_are_named_by_place(served):
    values = [*RECORDS[:2], {"model": 1}, RECORDS[2], 7, RECORDS[3] | {"item_id": "a\u202eb"}]
    answer = served.post(json.dumps(values).encode(), content_type="application/json")
    assert answer.status == 422
    assert [(error["line"], error["field"]) for error in answer.json["errors"]] == [
        (3, "benchmark"),
        (5, "record"),
        (6, "item_id"),
    ]
    for body in (b"{}", b"[1", b"nonsense", b"\xff", b"[" * 100_000):
        answer = served.post(body, content_type="application/json")
        assert answer.status == 422
        assert answer.json["detail"].startswith("The body is not a JSON array of events")


def test_what_is_taken_does_not_depend_on_the_lines_around_it(served):
    """`timestamp` is not looked at: neither in a plain request nor beside a line that needs a closer look."""
    record = {**RECORDS[0], "timestamp": "yesterday"}
    assert served.post([record]).status == 200
    assert served.post([{"declare": "other"}, record]).status == 200


def test_many_bad_lines_are_not_all_read(served):
    answer = served.post(b"{\n" * 1_000_000)
    assert answer.status == 422
    assert len(answer.json["errors"]) == 100
    assert "Parsing stopped there" in answer.json["detail"]


@pytest.mark.parametrize(
    ("headers", "status", "detail"),
    [
        ({"content_type": "text/plain"}, 415, "application/x-ndjson"),
        (
            {"content_type": "application/x-www-form-urlencoded"},
            415,
            "Content-Type 'application/x-www-form-urlencoded'",
        ),
        ({"content_encoding": "br"}, 415, "Content-Encoding 'br' is not supported"),
        ({"content_encoding": "gzip"}, 400, "the body is truncated or not gzip"),
        ({"origin": "http://attacker.example"}, 403, "Origin 'http://attacker.example' may not write"),
        ({"origin": "null"}, 403, "Origin"),
        ({"host": "attacker.example"}, 400, "Host"),
    ],
)
def test_what_is_not_taken(served, headers, status, detail):
    answer = served.post(RECORDS, **headers)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json["detail"]
    assert served.log.records == []


def test_the_page_itself_may_post(served):
    assert served.post(RECORDS, origin=served.url).status == 200


def test_a_body_that_is_too_long_is_cut_off():
    with Served(body_bytes=10_000) as served:
        bomb = gzip.compress(b" " * 50_000_000)
        for body, headers in (
            (lines(RECORDS), {}),
            (bomb, {"content_encoding": "gzip"}),
            (gzip.compress(b" " * 9_999) + bomb, {"content_encoding": "gzip"}),
        ):
            answer = served.post(body, **headers)
            assert answer.status == 413
            assert "the limit is 10,000 bytes" in answer.json["detail"]
        assert served.post(b" " * 10_000).status == 200
        assert served.log.records == []


@pytest.mark.fault("attacks", "1,001 gzip members without content", "413")
def test_gzip_members_that_inflate_to_nothing_are_counted(served):
    """Their size has no bound of its own: a body of them would be read for as long as bodies may take."""
    empty = gzip.compress(b"")
    answer = served.post(empty * 999 + gzip.compress(lines(RECORDS)), content_encoding="gzip")
    assert answer.status == 200
    answer = served.post(empty * 1_001, content_encoding="gzip")
    assert (answer.status, "more than 1,000 gzip members" in answer.json["detail"]) == (413, True)


def test_a_body_is_cut_off_by_what_arrives_too():
    """A member may carry a long name, which inflates to nothing either; the length of a body in chunks is not announced."""
    with Served(body_bytes=10_000) as served:
        connection = http.client.HTTPConnection(served.url.partition("//")[2], timeout=60)
        pieces = (b"\x1f\x8b\x08\x08" + bytes(6), *[b"x" * 1_000] * 200)
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        connection.request("POST", "/api/v1/events", iter(pieces), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()


@pytest.mark.parametrize("cut", [0, 1, 20, -1])
def test_gzip_that_is_cut_short_is_refused(served, cut):
    answer = served.post(gzip.compress(lines(RECORDS))[:cut], content_encoding="gzip")
    assert answer.status == 400
    assert served.log.records == []


def test_inflating_is_the_inverse_of_gzip_however_it_is_cut():
    rng = random.Random(5)
    text = rng.randbytes(3_000)
    packed = b"".join(gzip.compress(text[k : k + 1_000]) for k in range(0, 3_000, 1_000))
    for _ in range(20):
        body, at = body_reader._GzipBody(10_000), 0
        while at < len(packed):
            step = rng.randrange(1, 400)
            body.add(packed[at : at + step])
            at += step
        body.finish()
        assert bytes(body.data) == text
    with pytest.raises(zlib.error):
        body.add(b"no gzip")


def test_a_body_that_drips_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr(body_reader, "READ_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 60) as connection:
        head = "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 99\r\n\r\n"
        connection.sendall(head.encode() + b"{")
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_ends_early_is_not_taken(served):
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 60) as connection:
        head = "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9999\r\n\r\n"
        connection.sendall(head.encode() + lines(RECORDS[:3]))
    assert served.get("summaries").json == []
    assert served.log.records == []


def test_a_log_that_takes_nothing_is_said_so(served):
    served.log.fault = OSError("No space left on device")
    answer = served.post(RECORDS)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert "No space left on device" in answer.json["detail"]
    served.log.fault = None
    assert served.post(RECORDS).status == 200
    counted(served, RECORDS)


# --- declarations ---------------------------------------------------------------------------------------------------------------------


def put(served, spec, benchmark="bench", **headers):
    body = spec if isinstance(spec, bytes) else json.dumps(spec).encode()
    headers = {"content_type": "application/json"} | headers
    return served.request("PUT", f"/api/v1/declarations?benchmark={benchmark}", body, **headers)


def test_a_declaration_is_in_force_before_the_first_score(served):
    assert served.get("declarations?benchmark=bench").status == 404
    answer = put(served, {"items": 50, "alpha": 0.01})
    assert (answer.status, answer.json["in_force"]) == (202, True)
    spec = served.get("declarations?benchmark=bench").json
    assert (spec["items"], spec["alpha"], spec["order"]["policy"]) == (50, 0.01, "completion")
    served.post(RECORDS)
    assert served.get("benchmarks").json["benchmarks"][0]["order"]["policy"] == "completion"
    # What no latch rests on may change; the rest may not, and saying the same again is nothing new.
    assert put(served, {"items": 50, "alpha": 0.01, "power": 0.9}).status == 202
    refused = put(served, {"items": 51, "alpha": 0.01})
    assert refused.status == 409
    assert '{"items":51}' in refused.json["detail"]
    assert "send the whole declaration as version 2" in refused.json["detail"]
    assert served.get("declarations?benchmark=bench").json["power"] == 0.9
    second = {"items": 51, "alpha": 0.01, "version": 2}
    again = put(served, second)
    assert (again.status, again.json["in_force"], again.json["spec"]["version"]) == (202, True, 2)
    assert put(served, second).status == 202, "a duplicate"
    assert "the next one is version 3, not 5" in put(served, {"items": 52, "version": 5}).json["detail"]


def test_a_benchmark_without_a_declaration_names_what_can_be_put(served):
    served.post(RECORDS)
    answer = served.get("declarations?benchmark=bench")
    assert (answer.status, "It has scores: PUT one with version 2." in answer.json["detail"]) == (404, True)
    refused = put(served, {"items": 50}).json["detail"]
    assert "as version 2" in refused
    assert "--" not in refused
    assert put(served, {"items": 50, "version": 2}).json["in_force"]
    assert "before the first score" in served.get("declarations?benchmark=other").json["detail"]


def test_fields_that_a_record_may_have_are_those_of_its_kind(served):
    assert "use one of alpha, power, mixture" in put(served, {"itmes": 5}).json["detail"]
    (error,) = served.post([{"ended": "bench", "modle": "a"}]).json["errors"]
    assert error["reason"].endswith("use one of model, epoch, base, ended, run, state, reason")
    (error,) = served.post([{"declare": "bench", "itmes": 5}]).json["errors"]
    assert error["reason"].endswith("version, declare")


def test_declarations_and_ends_are_converted_as_events_are(served):
    body = b"\xef\xbb\xbf" + json.dumps({"items": "2", "alpha": "0.01", "item_ids": [1, 2]}).encode()
    answer = put(served, body)
    assert (answer.status, answer.json["spec"]["item_ids"], answer.json["spec"]["alpha"]) == (202, ["1", "2"], 0.01)
    served.post([{"benchmark": "bench", "item_id": 1, "model": 7, "score": 1}])
    answer = end(served, {"model": 7, "epoch": "0"})
    assert (answer.status, answer.json["runs"]) == (200, [{"model": "7", "epoch": 0}])
    assert ended(served) == {"7": True}


def test_a_declaration_in_a_request_holds_before_its_events(served):
    answer = served.post([*RECORDS[:3], {"declare": "bench", "items": 50}, *RECORDS[3:]])
    assert answer.json == {
        "accepted": 150,
        "declarations": 1,
        "ended": 0,
        "rejected": [],
        "converted": [],
        "set_aside": [],
    }
    counted(served, RECORDS)
    assert served.get("declarations?benchmark=bench").json["items"] == 50
    refused = served.post([{"declare": "bench", "order": "trusted"}, *RECORDS])
    assert refused.status == 409
    counted(served, RECORDS)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"items": 0}', {}, 422),
        (b'{"unknown": 1}', {}, 422),
        (b"{", {}, 422),
        (b'{"order": "committed"}', {}, 422),
        (b'{"items": 5}', {"content_type": "text/plain"}, 415),
        (b'{"items": 5}', {"origin": "http://attacker.example"}, 403),
    ],
)
def test_a_declaration_that_cannot_be_read(served, body, headers, status):
    answer = put(served, body, **headers)
    assert answer.status == answer.json["status"] == status
    assert served.log.records == []


def test_a_name_with_forbidden_characters_is_not_declared(served):
    answer = put(served, {"items": 5}, benchmark="a%E2%80%AEb")
    assert answer.status == 422
    assert "forbidden character U+202E" in answer.json["detail"]


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"alpha": 5}, "alpha", "5 is out of range; use a number from 1e-100 to below 0.5"),
        ({"repeats": "many"}, "repeats", '"many" is not a whole number; use a whole number from 1 to 1000, or all'),
        (
            {"order": "comitted"},
            "order.policy",
            '"comitted" is unknown; use completion, committed, trusted, none, or an object with policy and seed',
        ),
        ({"aliases": {"a": "b", "b": "a"}}, "body", "aliases: a and b are aliases of each other; omit one of the two"),
    ],
)
def test_a_wrong_field_of_a_declaration_is_described_once(served, spec, field, reason):
    assert put(served, spec).json["errors"] == [{"field": field, "found": json_found(spec), "reason": reason}]


def json_found(spec):
    (value,) = spec.values()
    return str(spec) if isinstance(value, dict) else f'"{value}"' if isinstance(value, str) else str(value)


def test_a_missing_parameter_is_named(served):
    answer = served.request("PUT", "/api/v1/declarations", b"{}", content_type="application/json")
    assert answer.json["detail"] == "benchmark: the query parameter is missing; add benchmark=VALUE."


def test_a_declaration_that_lost_the_race_is_reported(served, monkeypatch):
    """Scores are in the log before the declaration, and were not folded yet when it was checked."""

    async def late(records, append=served.log.append):
        served.log.partition.fold_events([], list(folded_events()), [], served.log.partition.off + 150)
        return await append(records)

    monkeypatch.setattr(served.log, "append", late)
    assert put(served, {"items": 50}).status == 409


def folded_events():
    from schemas.records.events import EventFields

    return (EventFields(**record) for record in RECORDS)


def end(served, body=b"{}", name="bench", **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    headers = {"content_type": "application/json"} | headers
    return served.request("POST", f"/api/v1/benchmarks/{name}/ended", body, **headers)


def ended(served):
    return {m["model"]: m["run_ended"] for b in served.get("benchmarks").json["benchmarks"] for m in b["models"]}


def test_ends_of_runs_in_a_request_are_counted_and_hold_after_its_events(served):
    answer = served.post([{"ended": "bench", "model": "a"}, *RECORDS, {"ended": "bench", "model": "b"}])
    assert (answer.status, answer.json["accepted"], answer.json["ended"]) == (200, 150, 2)
    counted(served, RECORDS)
    assert ended(served) == {"a": True, "b": True, "c": False}


LATE = "the run of a has ended; send changed scores under a new epoch"


@pytest.mark.parametrize("array", [False, True])
def test_scores_of_an_ended_run_are_listed_and_not_stored(served, array):
    served.post([*RECORDS, {"ended": "bench", "model": "a"}])
    new = [record | {"item_id": f"new {k}"} for k, record in enumerate(RECORDS[:6])]
    late = [k for k, record in enumerate(new, 2) if record["model"] == "a"]
    request = [{"declare": "other", "items": 5}, *new, *RECORDS]  # the scores that are there are duplicates
    body = json.dumps(request).encode() if array else lines(request)
    answer = served.post(body, **({"content_type": "application/json"} if array else {}))
    assert (answer.status, answer.json["accepted"], answer.json["declarations"]) == (200, 156 - len(late), 1)
    assert late
    assert answer.json["rejected"] == [{"line": k, "field": "model", "found": "a", "reason": LATE} for k in late]
    (benchmark,) = (b for b in served.get("benchmarks").json["benchmarks"] if b["benchmark"] == "bench")
    assert (benchmark["rejected"], benchmark["duplicates"]) == (0, 150)
    assert served.post([new[late[0] - 2]]).json["accepted"] == 0
    assert len(served.log.records) == 2


def battle(item, a="a", b="b", **fields):
    return {"benchmark": "arena", "item_id": item, "model_a": a, "model_b": b, "winner": "a", **fields}


def test_a_benchmark_of_scores_takes_no_battles_and_the_reverse(served):
    score = {"benchmark": "arena", "item_id": "1", "model": "a", "score": 1}
    answer = served.post([battle("1"), score])
    assert answer.status == 409
    assert "both scores and battles for 'arena'" in answer.json["detail"]
    assert served.post([*RECORDS, battle("1")]).status == 200
    answer = served.post([RECORDS[0], score])
    assert answer.status == 409
    assert "'arena' holds battles, so it takes no scores of items. Nothing was stored" in answer.json["detail"]
    answer = served.post([battle("1", benchmark="bench")])
    assert (answer.status, "'bench' holds scores of items, so it takes no battles" in answer.json["detail"]) == (
        409,
        True,
    )
    assert len(served.log.records) == 1


def test_battles_that_the_fold_refuses_are_listed(served):
    served.post([{"declare": "arena", "order": "trusted", "aliases": {"x": "a"}}])
    answer = served.post([battle("1", b="x"), battle("2", epoch=1), battle("3")])
    assert [(e["line"], e["field"]) for e in answer.json["rejected"]] == [(1, "model_b"), (2, "epoch")]
    assert answer.json["accepted"] == 1
    served.post([{"declare": "quiz", "items": 5}])
    answer = served.post([battle("1", benchmark="quiz")])
    assert (answer.json["accepted"], answer.json["rejected"][0]["field"]) == (0, "order")


def test_an_ended_run_takes_a_newer_epoch(served):
    served.post([*RECORDS, {"ended": "bench"}])
    answer = served.post([record | {"epoch": 1, "item_id": "new"} for record in RECORDS[:3]])
    assert (answer.json["accepted"], answer.json["rejected"]) == (3, [])


def test_items_that_are_not_declared_are_listed(served):
    declared = {"declare": "bench", "item_ids": sorted({record["item_id"] for record in RECORDS})}
    served.post([declared, *RECORDS])
    other = {"benchmark": "bench", "item_id": "x", "model": "a", "score": 1}
    answer = served.post([RECORDS[0], other])
    assert (answer.json["accepted"], [(e["line"], e["field"]) for e in answer.json["rejected"]]) == (
        1,
        [(2, "item_id")],
    )
    longer = declared | {"item_ids": [*declared["item_ids"], "x"], "version": 2}
    answer = served.post([longer, other])
    assert (answer.json["accepted"], answer.json["rejected"]) == (1, [])


def test_names_beyond_a_limit_are_listed_and_not_stored():
    """What the answer lists is what the fold refuses, also of the names that one request brings."""

    def record(item, model="a", score=1, benchmark="bench", **fields):
        return {"benchmark": benchmark, "item_id": item, "model": model, "score": score, **fields}

    def listed(answer):
        return [(error["line"], error["field"], error["found"]) for error in answer.json["rejected"]]

    limits = Limits(benchmarks=2, contestants=2, rows=3, values=3)
    with Served(Partition(limits=limits)) as served:
        declared = {"declare": "bench", "scores": "graded", "aliases": {"other": "a"}}
        answer = served.post([declared, *(record(item, model) for item in "12" for model in "ab")])
        assert (answer.json["accepted"], answer.json["rejected"]) == (4, [])
        answer = served.post(
            [
                record("3", "c"),  # the third model: its item has no place then
                record("4"),
                record("4", "other"),
                record("5"),
                record("4", repeat=1),
                record("2", "b"),
                record("1", epoch=1),
                record("4", "b", 0.25),
                record("1", "b", 0.5),
                record("1", "x", benchmark="second"),
                record("1", "x", benchmark="third"),
            ]
        )
        assert answer.json["accepted"] == 5
        assert listed(answer) == [
            (1, "model", "c"),
            (4, "item_id", "5"),
            (5, "item_id", "4"),
            (7, "model", "a"),
            (9, "score", "0.5"),
            (11, "benchmark", "third"),
        ]
        reasons = {error["field"]: error["reason"] for error in answer.json["rejected"]}
        assert reasons == {
            "model": "a is beyond the limit of 2 models a benchmark; send fewer models",
            "item_id": "4 is beyond the limit of 3 items a benchmark; send fewer items",
            "score": "0.5 is beyond the limit of 3 different scores a benchmark; send fewer different scores",
            "benchmark": "third is beyond the limit of 2 benchmarks; send fewer benchmarks",
        }
        assert listed(served.post([record("1", benchmark="third")])) == [(1, "benchmark", "third")]
        refused = put(served, {"items": 5}, benchmark="third")
        assert refused.status == 409
        assert "beyond the limit of 2 benchmarks" in refused.json["detail"]
        assert served.partitions[0].counters["rejected"] == 0
        assert [b["rejected"] for b in served.get("benchmarks").json["benchmarks"]] == [0, 0]


UNKNOWN = [
    ({"ended": "other"}, "ended", "other has no scores yet"),
    ({"ended": "bench", "model": "x"}, "model", "x has no scores in epoch 0"),
    ({"ended": "bench", "model": "a", "epoch": 3}, "model", "a has no scores in epoch 3"),
    ({"ended": "bench", "epoch": 3}, "ended", "bench has no scores yet"),
    ({"ended": "bench", "model": "a", "epoch": 1, "base": 0}, "model", "a has no scores in epoch 1"),
]


def test_ends_of_runs_without_scores_are_listed_and_not_stored(served, monkeypatch):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.05)
    served.post(RECORDS)
    ends = [end for end, _, _ in UNKNOWN]
    answer = served.post([{"ended": "bench", "model": "b"}, *ends])
    assert (answer.status, answer.json["ended"]) == (200, 1)
    for error, (line, (_, field, reason)) in zip(answer.json["rejected"], enumerate(UNKNOWN, 2), strict=True):
        assert (error["line"], error["field"]) == (line, field)
        assert reason in error["reason"]
    assert ended(served) == {"a": False, "b": True, "c": False}
    assert served.post(ends).json["ended"] == 0
    assert len(served.log.records) == 2


def test_ends_of_runs_that_begin_in_the_request_are_taken(served):
    records = [{"benchmark": "other", "item_id": "1", "model": "x", "score": 1, "epoch": 2}]
    for end_of in ({"model": "x", "epoch": 2}, {}, {"epoch": 2}):
        answer = served.post([{"ended": "other", **end_of}, *records])
        assert (answer.json["ended"], answer.json["rejected"]) == (1, [])
        served.hold()


def test_what_the_state_cannot_judge_yet_is_appended(served, monkeypatch):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.05)
    served.post(RECORDS)
    served.log.lag = 100
    answer = served.post([{"ended": "bench", "model": "x"}])
    assert (answer.json["ended"], answer.json["rejected"]) == (1, [])
    assert served.get("benchmarks").json["benchmarks"][0]["rejected"] == 1


def test_a_worker_does_not_judge_the_benchmarks_of_others():
    partition = folded(RECORDS)
    partition.owner = lambda name: 0 if name == "bench" else 1
    with Served(partition) as served:
        answer = served.post([{"ended": "other"}])
        assert (answer.json["ended"], answer.json["rejected"]) == (1, [])


def test_a_run_is_ended_by_its_model_or_with_all_of_its_benchmark(served):
    served.post([*RECORDS, *(record | {"benchmark": "an/other 50 %", "epoch": 1} for record in RECORDS[:9])])
    for _ in range(2):
        answer = end(served, {"model": "a"})
        place = f"0:{served.log.partition.off}"
        runs = [{"model": "a", "epoch": 0}]
        assert (answer.status, answer.json) == (
            200,
            {"benchmark": "bench", "place": place, "in_force": True, "runs": runs},
        )
    assert json.loads(served.log.records[-1])["ended"] == [{"ended": "bench", "model": "a"}]
    answer = end(served, {"epoch": 1}, name="an%2Fother%2050%20%25")
    assert [run["model"] for run in answer.json["runs"]] == ["a", "b", "c"]
    benchmark = served.get("benchmarks/an%2Fother%2050%20%25").json["benchmarks"][0]
    assert all(model["run_ended"] for model in benchmark["models"])
    assert [m["run_ended"] for m in served.get("benchmarks/bench").json["benchmarks"][0]["models"]].count(True) == 1


def test_a_run_inherits_the_scores_of_an_older_epoch(served):
    served.post([*RECORDS, *(record | {"epoch": 1} for record in RECORDS[:6] if record["model"] == "a")])
    assert end(served, {"model": "a", "epoch": 1, "base": 0}).json["in_force"]
    models = {m["model"]: m for m in served.get("benchmarks/bench").json["benchmarks"][0]["models"]}
    assert (models["a"]["epoch"], models["a"]["items"]) == (1, 50)


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("other", {}, "Benchmark 'other' has no events here"),
        ("a%E2%80%AEb", {}, "has no events here"),
        ("bench", {"model": "x"}, "x has no scores in epoch 0, so no run of it can end; correct the name or the epoch"),
        ("bench", {"model": "a", "epoch": 2}, "a has no scores in epoch 2"),
        ("bench", {"epoch": 2}, "has no scores yet"),
        ("bench", {"model": "a", "epoch": 2, "base": 1}, "a has no scores in epoch 2"),
    ],
)
def test_what_has_no_scores_does_not_end(served, monkeypatch, name, body, reason):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.05)
    served.post(RECORDS)
    answer = end(served, body, name=name)
    assert (answer.status, len(served.log.records)) == (404, 1)
    assert reason in answer.json["detail"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (b"", {}, 422, "is not valid JSON"),
        (b"[]", {}, 422, "is not an object"),
        (b'{"model": 1.5}', {}, 422, "model: 1.5 is not a string"),
        (b'{"epoch": -1}', {}, 422, "epoch: -1 is out of range"),
        (b'{"epoch": "next"}', {}, 422, "epoch: "),
        (b'{"model": "a", "base": 0}', {}, 422, "base 0 is not older than epoch 0"),
        (b'{"ended": "bench"}', {}, 422, "the field is unknown; remove it, or use one of model, epoch, base."),
        (b"{}", {"content_type": "text/plain"}, 415, "application/json"),
        (b"{}", {"origin": "http://attacker.example"}, 403, "may not write"),
    ],
)
def test_an_end_that_cannot_be_read(served, body, headers, status, reason):
    served.post(RECORDS)
    answer = end(served, body, **headers)
    assert (answer.status, len(served.log.records)) == (status, 1)
    assert reason in answer.json["detail"]


def test_the_end_of_a_run_waits_for_scores_that_were_posted_before_it(served, monkeypatch):
    """The scores are in the log, and folded a moment later."""
    timer = threading.Timer(0.2, lambda: served.call(served.log.append([lines(RECORDS[:1])])))
    timer.start()
    assert end(served, {"model": "a"}).json["in_force"]
    timer.join()


def test_the_end_of_a_run_needs_the_token(served):
    with Served(folded(RECORDS), token="s3cret", loopback=False) as guarded:
        assert end(guarded).status == 401
        assert end(guarded, authorization="Bearer s3cret").status == 200
    served.log.fault = OSError("No space left on device")
    served.log.partition.fold_events([], list(folded_events()), [], served.log.partition.off + 150)
    assert end(served).status == 503


def test_a_server_that_only_shows_takes_nothing():
    with Served(folded(RECORDS), intake=None) as served:
        assert served.post(RECORDS).status == 503
        assert "read-only" in served.post(RECORDS).json["detail"]
