"""What holds for requests that write: limits of their client, answers that are given again, and the audit log."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from monitor.log.errors import LogError
from monitor.serve.access import limits as limits_module
from monitor.serve.access.audit import Audit
from monitor.serve.access.limits import ClientLimits
from monitor.serve.access.scopes import Grants
from monitor.serve.api.writing import answers as answers_module
from tests.served import Served
from tests.unit.serve.test_tokens import file_of


def event(k=0, benchmark="b"):
    return {"benchmark": benchmark, "item_id": str(k), "model": "m", "score": 1}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- limits -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("attacks", "one client sends more than its limit", "it waits, others do not")
def test_who_sends_too_much_waits_and_others_do_not(tmp_path):
    clock = Clock()
    keys = file_of(tmp_path / "access.json", one=["write"], two=["write"])
    options = {"rules": {"access_file": tmp_path / "access.json"}, "limits": ClientLimits(events=10, clock=clock)}
    with Served(loopback=False, **options) as served:
        assert served.post([event(k) for k in range(150)], **keys["one"]).status == 200, (
            "a large request is sent, and paid later"
        )
        before = len(served.log.records)
        refused = served.post([event()], **keys["one"])
        assert (refused.status, refused.headers["retry-after"]) == (429, "5")
        assert "one has sent more than its limit. Retry in 5 s" in refused.json["detail"]
        end = served.request(
            "POST", "/api/v1/benchmarks/b/ended", b"{}", content_type="application/json", **keys["one"]
        )
        assert end.status == 429
        assert len(served.log.records) == before
        assert served.post([event()], **keys["two"]).status == 200
        clock.now = 5.0
        assert served.post([event()], **keys["one"]).status == 200


def test_a_quota_of_a_token_is_named_counted_and_holds_for_that_token(tmp_path):
    clock, counted = Clock(), []
    scopes = ["write:b*", "declare:b*"]
    small = [*scopes, "quota:boards=2", "quota:models=2", "quota:items=3", "quota:events=10"]
    keys = file_of(tmp_path / "access.json", small=small, large=scopes)
    rules, limits = {"access_file": tmp_path / "access.json"}, ClientLimits(events=1, clock=clock)
    with Served(loopback=False, rules=rules, limits=limits, count_quota=counted.append) as served:

        def post(records, name="small"):
            clock.now += 1_000
            return served.post(records, **keys[name])

        def declare(name, items):
            body = json.dumps({"items": items}).encode()
            path = f"/api/v1/declarations?benchmark={name}"
            return served.request("PUT", path, body, content_type="application/json", **keys["small"])

        assert post([event(k) for k in range(3)]).status == 200
        before = len(served.log.records)
        for records, quota, detail in (
            ([event(3)], "items", "a quota of 3 items a board (quota:items=3), b has 3, and the request adds 1"),
            ([event(0) | {"model": m} for m in "mno"], "models", "2 models a board (quota:models=2), b has 1"),
            ([event(0, "b2"), event(0, "b3")], "boards", "2 boards (quota:boards=2), its scopes have 1"),
            ([{"declare": "b", "items": 4}], "items", "the declaration of b has 4"),
        ):
            refused = post(records)
            assert (refused.status, counted.pop()) == (403, quota)
            assert detail in refused.json["detail"]
        assert declare("b2", 4).status == 403
        assert (len(served.log.records), counted.pop()) == (before, "items")
        assert post([event(0), event(1) | {"model": "n"}, event(0, "b2")]).status == 200
        assert post([{"declare": "b3", "items": 1}]).status == 403
        assert post([event(k, "b3") for k in range(9)], "large").status == 200
        assert counted.pop() == "boards"
        for name, size, wait in (
            ("small", 200, "10"),
            ("large", 20, "10"),
        ):  # the quota is in place of the limit of all
            post([event(0)] * size, name)
            refused = served.post([event()], **keys[name])
            assert (refused.status, refused.headers["retry-after"]) == (429, wait)
            assert ("quota of 10 events a second (quota:events=10)" in refused.json["detail"]) == (name == "small")
        assert counted == ["events"]


@pytest.mark.parametrize(
    "text", ["quota:boards", "quota:boards=0", "quota:boards=x", "quota:cells=3", "quota:boards=-1"]
)
def test_what_is_no_quota_is_refused(text):
    with pytest.raises(ValueError, match="is not a quota; use quota:NAME=NUMBER"):
        Grants.of([text])


def test_bytes_count_inflated_and_also_where_the_body_is_wrong():
    clock = Clock()
    with Served(limits=ClientLimits(bytes=100, clock=clock)) as served:
        assert served.post(b"x" * 1_500).status == 422
        refused = served.post([event()])
        assert (refused.status, refused.headers["retry-after"]) == (429, "5")
        assert "127.0.0.1 has sent more than its limit" in refused.json["detail"]
        assert served.get("summaries").status == 200, "reading is not limited"


def test_accounts_of_many_clients_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(limits_module, "_MAX_CLIENTS", 100)
    limits = ClientLimits(events=1, bytes=1, clock=Clock())
    for k in range(1_000):
        limits.spend(str(k), events=100, bytes=100)
    assert len(limits._accounts) == 100
    assert limits.wait("999") == 90
    assert limits.wait("0") == 0


def test_silence_saves_no_more_than_a_burst():
    clock = Clock()
    limits = ClientLimits(events=10, clock=clock)
    limits.wait("a")
    clock.now = 1e6
    limits.spend("a", events=110)
    assert limits.wait("a") == 1


# --- idempotency keys -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def keyed():
    with Served() as served:
        yield served


@pytest.mark.fault("attacks", "a request repeated with its idempotency key", "appended once")
def test_the_same_request_is_answered_again_and_appended_once(keyed):
    first = keyed.post([event()], idempotency_key="k1")
    again = keyed.post([event()], idempotency_key="k1")
    assert (first.status, again.status, first.text) == (200, 200, again.text)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert len(keyed.log.records) == 1
    assert keyed.post([event()], idempotency_key="k2").status == 200
    assert len(keyed.log.records) == 2
    assert keyed.get("summaries").json[0]["events"] == 2


@pytest.mark.fault("attacks", "another body with the same idempotency key", "422")
def test_another_request_with_the_same_key_is_refused(keyed):
    keyed.post([event()], idempotency_key="k1")
    for answer in (
        keyed.post([event(1)], idempotency_key="k1"),
        keyed.post(json.dumps([event()]).encode(), content_type="application/json", idempotency_key="k1"),
        keyed.request(
            "POST", "/api/v1/benchmarks/b/ended", b"{}", content_type="application/json", idempotency_key="k1"
        ),
    ):
        assert answer.status == 422
        assert "this key came with another request" in answer.json["detail"]
    assert len(keyed.log.records) == 1
    for key in ("", "a b", "x" * 201, "\u00e9"):
        assert keyed.post([event()], **{"Idempotency-Key": key.encode()}).status == 400


def test_ends_of_runs_are_repeated_too(keyed):
    keyed.post([event()])
    headers = {"content_type": "application/json", "idempotency_key": "end"}
    first, again = (keyed.request("POST", "/api/v1/benchmarks/b/ended", b"{}", **headers) for _ in range(2))
    assert (first.status, first.text) == (200, again.text)
    assert len(keyed.log.records) == 2


def test_a_key_belongs_to_its_client(tmp_path):
    keys = file_of(tmp_path / "access.json", one=["write"], two=["write"])
    with Served(loopback=False, rules={"access_file": tmp_path / "access.json"}) as served:
        served.post([event()], idempotency_key="k", **keys["one"])
        other = served.post([event(1)], idempotency_key="k", **keys["two"])
        assert (other.status, "idempotent-replayed" in other.headers) == (200, False)


def test_what_failed_is_tried_again(keyed):
    keyed.log.fault = LogError("no")
    assert keyed.post([event()], idempotency_key="k").status == 503
    assert keyed.post(b"{", idempotency_key="k").status == 422
    keyed.log.fault = None
    assert "idempotent-replayed" not in keyed.post([event()], idempotency_key="k").headers
    assert len(keyed.log.records) == 1


@pytest.mark.fault("attacks", "16 copies of a request at once", "appended once")
def test_requests_at_once_are_appended_once(keyed):
    body = [event(k) for k in range(3_000)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: keyed.post(body, idempotency_key="k"), range(16)))
    assert {answer.status for answer in answers} == {200}
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 15
    assert len(keyed.log.records) == 1


def test_answers_are_forgotten_beyond_window_number_and_memory(keyed, monkeypatch):
    def kept():
        return len(keyed.log.records)

    keyed.post([event()], idempotency_key="a")
    monkeypatch.setattr(answers_module, "_MAX_ANSWERS", 2)
    for key in "bcd":
        keyed.post([event()], idempotency_key=key)
    keyed.post([event()], idempotency_key="d")
    assert kept() == 4
    keyed.post([event()], idempotency_key="a")
    assert kept() == 5
    monkeypatch.setattr(answers_module, "_MAX_BYTES", 0)
    keyed.post([event()], idempotency_key="e")
    keyed.post([event()], idempotency_key="e")
    assert kept() == 7
    monkeypatch.undo()
    keyed.post([event()], idempotency_key="f")
    monkeypatch.setattr(answers_module, "WINDOW_SECONDS", 0.0)
    keyed.post([event()], idempotency_key="f")
    assert kept() == 9


# --- the audit log ----------------------------------------------------------------------------------------------------------------------


def test_every_change_and_refusal_has_its_line(tmp_path):
    audit, access = tmp_path / "audit.jsonl", tmp_path / "access.json"
    keys = file_of(access, ci=["write:b*", "declare:b"], other=["read"])
    secret = keys["ci"]["Authorization"].split()[1]
    with Served(token="s3cret", loopback=False, rules={"access_file": access}, audit=Audit(audit)) as served:
        headers = {"content_type": "application/json"} | keys["ci"]
        served.request("PUT", "/api/v1/declarations?benchmark=b", b'{"items": 9}', **headers)
        served.post([event(), event(1), event(0, "b2")], **keys["ci"])
        served.request("POST", "/api/v1/benchmarks/b/ended", b"{}", **headers)
        served.post([event(0, "c")], **keys["ci"])
        served.post([event()], **keys["other"])
        served.post([event(5)], idempotency_key="k", **keys["ci"])
        served.post([event(0, "b2")], idempotency_key="k2", **keys["ci"])
        served.post([event(0, "b2")], idempotency_key="k2", **keys["ci"])
        served.log.fault = LogError("no")
        served.post([event(0, "b2")], **keys["ci"])
        served.get(f"summaries?token={secret}", Authorization="Bearer wrong")
        served.get("summaries", **keys["other"])
    shown = [
        (line["producer"], line["action"], line.get("benchmark"), line.get("count"), line["outcome"], line["status"])
        for line in lines(audit)
    ]
    assert shown == [
        ("ci", "declare", "b", 1, "accepted", 200),
        ("ci", "write", "b", 2, "accepted", 200),
        ("ci", "write", "b2", 1, "accepted", 200),
        ("ci", "end", "b", 1, "accepted", 200),
        ("ci", "write", "c", 1, "refused", 403),
        ("other", "write", None, 0, "refused", 403),
        ("ci", "write", "b", 1, "accepted", 200),
        ("ci", "write", "b2", 1, "accepted", 200),
        ("ci", "write", None, 0, "repeated", 200),
        ("ci", "write", "b2", 1, "failed", 503),
        (None, "identify", None, None, "refused", 401),
    ]
    assert [line.get("rejected") for line in lines(audit) if line.get("rejected")] == [1], (
        "a score of a run that has ended"
    )
    assert {line["address"] for line in lines(audit)} == {"127.0.0.1"}
    assert not any(word in audit.read_text() for word in (secret, "s3cret", "wrong"))
    assert audit.stat().st_mode & 0o777 == 0o600


def test_names_stay_on_their_line_and_many_benchmarks_are_summed(tmp_path):
    audit = Audit(tmp_path / "a.jsonl")
    audit.add("write", "ci", "::1", {f"b{k}\n\u202e": 1 for k in range(150)}, "accepted", status=200)
    read = lines(tmp_path / "a.jsonl")
    assert len(read) == 101
    assert (read[0]["benchmark"], read[-1]["benchmark"], read[-1]["count"]) == ("b0\n\u202e", None, 50)
    assert (tmp_path / "a.jsonl").read_bytes().isascii()


def test_the_file_is_bounded(tmp_path):
    audit, path = Audit(tmp_path / "a.jsonl", limit=10_000), tmp_path / "a.jsonl"
    for k in range(500):
        audit.add("write", "ci", "::1", {"b": k}, "accepted", status=200)
    assert path.stat().st_size <= 10_000
    assert (tmp_path / "a.jsonl.1").stat().st_size <= 10_000
    assert len(list(tmp_path.iterdir())) == 2
    counts = [line["count"] for file in ("a.jsonl.1", "a.jsonl") for line in lines(tmp_path / file)]
    assert counts == list(range(500 - len(counts), 500)), "no line is lost between the two"


@pytest.mark.fault("attacks", "1,000 wrong tokens in a minute", "60 lines in the audit log, the rest counted")
def test_a_flood_of_wrong_tokens_is_counted(tmp_path):
    moment = [datetime(2026, 1, 1, tzinfo=UTC)]
    audit = Audit(tmp_path / "a.jsonl", now=lambda: moment[0])
    for _ in range(1_000):
        audit.refused("::1", "/" + "x" * 1_000, 401)
    assert len(lines(tmp_path / "a.jsonl")) == 60
    moment[0] = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    audit.refused("::1", "/", 401)
    assert lines(tmp_path / "a.jsonl")[-1]["omitted"] == 940


def test_a_disk_that_takes_no_line_stops_no_request(tmp_path, caplog):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path, tmp_path / "link"):
        with Served(audit=Audit(path)) as served:
            assert served.post([event()]).status == 200
    assert not (tmp_path / "elsewhere").exists()
