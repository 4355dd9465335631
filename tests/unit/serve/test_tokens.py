"""Tokens with scopes: what each may do, on every route, and what becomes of a file of tokens that is not as it should be."""

import asyncio
import json
import os
import random
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitor.serve.access.access_file import AccessFile, AccessFileError, new_token
from monitor.serve.access.audit import Audit
from monitor.serve.access.control import AccessControl
from monitor.serve.access.rules import AccessRules
from monitor.serve.access.scopes import Glob, Grants
from monitor.serve.api.routes import changes as change_routes
from tests.commands import events
from tests.served import Served, folded, raw_status

NOW = datetime.now(UTC)
OPEN, CLOSED = "open board", "secret board"


def file_of(path, **scopes):
    """A file of tokens; returns the header of each by name."""
    keys = {}
    with AccessFile(path).edit() as tokens:
        for name, given in scopes.items():
            secret, token = new_token(name, given, NOW, None)
            tokens.append(token)
            keys[name] = {"Authorization": f"Bearer {secret}"}
    return keys


def partition():
    both = folded(events(random.Random(1), {"a": 0.95, "b": 0.2}, 40, benchmark=OPEN), items=40)
    other = folded(events(random.Random(2), {"c": 0.95, "d": 0.2}, 40, benchmark=CLOSED), items=40)
    both.benchmarks |= other.benchmarks
    return both


@pytest.fixture(scope="module")
def keys_and_server(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "access.json"
    keys = file_of(
        path,
        reader=["read:open*"],
        auditor=["read"],
        writer=["write:open*"],
        declarer=["declare:open*", "read:open*"],
        manager=["manage:open*"],
        root=["admin"],
    )
    with Served(partition(), loopback=False, rules={"access_file": path}) as served:
        yield keys, served


@pytest.fixture
def keys(keys_and_server):
    return keys_and_server[0]


@pytest.fixture
def served(keys_and_server):
    keys_and_server[1].hold(partition())
    return keys_and_server[1]


READS = [
    "/api/v1/benchmarks/{}",
    "/api/v1/benchmarks/{}?pairs=all",
    "/api/v1/benchmarks/{}/conflicts",
    "/api/v1/pairs?benchmark={}",
    "/api/v1/path?benchmark={}&model_a=c&model_b=d",
    "/api/v1/matrix?benchmark={}",
    "/api/v1/changes?benchmark={}",
    "/api/v1/changes?newest=true&benchmark={}",
    "/api/v1/changes/stream?benchmark={}",
    "/api/v1/declarations?benchmark={}",
    "/api/v1/order?benchmark={}",
    "/api/v1/board?benchmark={}",
    "/api/v1/items?benchmark={}",
    "/api/v1/categories?benchmark={}",
    "/api/v1/items?benchmark={}&model_a=c&model_b=d&show=differ",
    "/api/v1/surprises?benchmark={}&model=c",
    "/api/v1/moments?benchmark={}",
    "/api/v1/drift?benchmark={}",
    "/api/v1/replay?benchmark={}",
    "/api/v1/early-stop?benchmark={}&model=c",
    "/api/v1/next?benchmark={}",
    "/api/v1/next/stream?benchmark={}",
    "/api/v1/admissions?benchmark={}",
    "/api/v1/admissions/report?benchmark={}&model=c",
    "/api/v1/admissions/certificate?benchmark={}&model=c",
    "/api/v1/boards/{}",
    "/api/v1/boards/{}/scores",
]
LISTS = [
    "/api/v1/benchmarks",
    "/api/v1/benchmarks?pairs=all",
    "/api/v1/summaries",
    "/api/v1/changes",
    "/api/v1/changes?newest=true",
    "/api/v1/boards",
]


def test_every_reading_route_is_tried(served, keys):
    """A route that is added has to be added here too, or to be public."""
    described = served.get("openapi.json", **keys["root"]).json["paths"]
    routes = {path for path, methods in described.items() if "get" in methods} - {"/api/v1/caller"}
    tried = {path.partition("?")[0].replace("{}", "{name}") for path in (*READS, *LISTS)}
    assert {route.replace("{name:path}", "{name}") for route in routes} == tried


@pytest.mark.fault(
    "attacks", "every reading route asked for a benchmark that the token may not read", "the answer for an unknown name"
)
@pytest.mark.parametrize("path", READS)
def test_a_benchmark_that_may_not_be_read_does_not_exist(served, keys, path):
    """The same status, headers and text as for a name that nobody has used, but for the name."""
    hidden = served.request("GET", path.format("secret%20board"), **keys["reader"])
    absent = served.request("GET", path.format("absent%20board"), **keys["reader"])
    assert hidden.status == absent.status == 404
    assert hidden.text.replace("secret", "absent") == absent.text
    assert sorted(hidden.headers.keys()) == sorted(absent.headers.keys())
    if "stream" not in path:
        known = served.request("GET", path.format("secret%20board"), **keys["auditor"])
        assert known.text != hidden.text


@pytest.mark.fault("attacks", "lists asked by a token that may not read all", "they omit the others")
@pytest.mark.parametrize("path", LISTS)
def test_lists_have_what_may_be_read(served, keys, path):
    whole = served.request("GET", path, **keys["auditor"]).text
    assert OPEN in whole
    assert CLOSED in whole
    part = served.request("GET", path, **keys["reader"]).text
    assert OPEN in part
    assert CLOSED not in part
    assert OPEN not in served.request("GET", path, **keys["writer"]).text


def test_a_large_benchmark_is_hidden_where_a_thread_computes_it(served, keys):
    many = folded([{"benchmark": CLOSED, "item_id": "1", "model": f"m{k}", "score": k % 2} for k in range(90)])
    served.hold(many)
    assert served.get("benchmarks", **keys["reader"]).json == {"benchmarks": []}
    assert len(served.get("benchmarks", **keys["auditor"]).json["benchmarks"]) == 1


def test_metrics_are_of_every_benchmark_and_need_to_read_each(served, keys):
    for name, status in {"auditor": 200, "root": 200, "reader": 403, "writer": 403}.items():
        assert served.request("GET", "/metrics", **keys[name]).status == status


def event(benchmark, item="new"):
    return {"benchmark": benchmark, "item_id": item, "model": "a", "score": 1}


def test_events_go_where_the_token_may_write(served, keys):
    assert served.post([event(OPEN)], **keys["writer"]).json["accepted"] == 1
    before = len(served.log.records)
    for benchmark in (CLOSED, "absent board"):
        refused = served.post([event(OPEN, "other"), event(benchmark)], **keys["writer"])
        assert refused.status == 403
        assert f"writer may not write benchmark {benchmark}" in refused.json["detail"]
    for name in ("reader", "auditor", "declarer"):
        assert served.post([event(OPEN, "other")], **keys[name]).status == 403
        assert served.post(b"not JSON", **keys[name]).status == 403
    assert served.post([{"declare": "open two"}], **keys["writer"]).status == 403
    assert served.post([{"ended": CLOSED}], **keys["writer"]).status == 403
    assert len(served.log.records) == before, "nothing of a refused request is kept"
    assert served.post([event(CLOSED), {"declare": "any"}], **keys["root"]).status == 200


def test_declarations_and_ends_need_their_scope(served, keys):
    json_type = {"content_type": "application/json"}
    for name, status in {"declarer": 202, "root": 202, "writer": 403, "reader": 403}.items():
        path = f"/api/v1/declarations?benchmark=open%20{name}"
        assert served.request("PUT", path, b"{}", **json_type, **keys[name]).status == status
    path = "/api/v1/declarations?benchmark=closed"
    assert served.request("PUT", path, b"{}", **json_type, **keys["declarer"]).status == 403
    end = "/api/v1/benchmarks/{}/ended"
    assert served.request("POST", end.format("secret%20board"), b"{}", **json_type, **keys["writer"]).status == 403
    assert served.request("POST", end.format("open%20board"), b"{}", **json_type, **keys["declarer"]).status == 403
    assert served.request("POST", end.format("open%20board"), b"{}", **json_type, **keys["writer"]).status == 200


def test_boards_are_changed_by_tokens_that_may_manage_them(served, keys):
    def archive(benchmark, name):
        body = json.dumps({"board": "archive", "benchmark": benchmark}).encode()
        headers = {"content_type": "application/json"} | keys[name]
        return served.request("POST", "/api/v1/boards", body, **headers)

    for name in ("reader", "auditor", "writer", "declarer"):
        assert archive(OPEN, name).status == 403
    refused = [archive(benchmark, "manager") for benchmark in (CLOSED, "absent board")]
    assert [each.status for each in refused] == [403, 403]
    assert refused[0].text.replace(CLOSED, "absent board") == refused[1].text
    assert served.log.records == []
    assert archive(OPEN, "manager").status == 200
    assert archive(CLOSED, "root").status == 200


def test_a_caller_is_shown_what_it_may_do(served, keys):
    shown = served.get("caller", **keys["declarer"]).json
    assert (shown["name"], shown["scopes"], shown["signed_in"], shown["tokens"]) == (
        "declarer",
        ["declare:open*", "read:open*"],
        True,
        True,
    )
    assert served.get("caller").status == 401
    with Served() as free:
        assert free.get("caller").json["name"] == "local"
        assert free.get("caller").json["tokens"] is False


@pytest.mark.parametrize("source", [{"watched": ["/srv/results", "new=run 2/"]}, {"topic": "rankwatch.events"}])
def test_where_scores_come_from_is_shown_to_those_who_may_do_everything(tmp_path, source):
    secrets = file_of(tmp_path / "access.json", root=["admin"], writer=["write", "declare", "read"])
    rules = {"anonymous_read": "*", "access_file": tmp_path / "access.json"}
    known, unknown = {"watched": [], "topic": None} | source, {"watched": [], "topic": None}

    def shown(server, **headers):
        return {name: server.get("caller", **headers).json[name] for name in known}

    with Served(loopback=False, rules=rules, **source) as served:
        assert shown(served, **secrets["root"]) == known
        assert shown(served) == shown(served, **secrets["writer"]) == unknown
    with Served(**source) as local:
        assert shown(local) == known


def test_anyone_may_read_what_is_open_to_anyone():
    with Served(partition(), token="s3cret", loopback=False, rules={"anonymous_read": "open*, x"}) as served:
        assert [each["benchmark"] for each in served.get("summaries").json] == [OPEN]
        assert served.get("benchmarks/secret%20board").status == 404
        assert served.get("caller").json["scopes"] == ["read:open*", "read:x"]
        assert served.request("GET", "/metrics").status == 401
        refused = served.post([event(OPEN)])
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert served.get("summaries", Authorization="Bearer wrong").status == 401, "a wrong token is not overlooked"
        assert len(served.get("summaries", Authorization="Bearer s3cret").json) == 2
    with Served(partition(), loopback=True, rules={"anonymous_read": "*"}) as served:
        assert served.request("GET", "/metrics").status == 200
        assert served.post([event(OPEN)]).status == 401, "reading is what was opened, also on loopback"


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ["*", "a", "a\u0301", "new\nline"], []),
        (r"\*", ["*"], ["a", r"\*", "**"]),
        ("a*c*e", ["ace", "abcde", "a*c*e"], ["ac", "acex", "xace", "a"]),
        ("[ab]?", ["[ab]?"], ["a", "ab", "b1"]),
        ("caf\u00e9*", ["caf\u00e9"], ["cafe\u0301", "cafe"]),
        ("mmlu%2Fpro", ["mmlu%2Fpro"], ["mmlu/pro"]),
        ("..", [".."], ["ab"]),
        ("a", ["a"], ["A", "a ", "aa", "\u0430"]),
    ],
)
def test_patterns_match_names_as_they_are(pattern, matching, others):
    glob = Glob.parse(pattern)
    assert all(map(glob.matches, matching))
    assert not any(map(glob.matches, others))


def test_a_pattern_of_many_stars_takes_no_time():
    glob = Glob.parse("*a" * 100 + "b")
    begin = datetime.now(UTC)
    assert not any(glob.matches("a" * 200) for _ in range(1_000))
    assert datetime.now(UTC) - begin < timedelta(seconds=5)


@pytest.mark.parametrize(
    "scope",
    ["", "Read", "read:", "write:a\nb", "write:\u202e", "delete:x", "read write", "admin:x", "read:" + "x" * 401],
)
def test_what_is_no_scope_is_refused(scope):
    with pytest.raises(ValueError, match=r"is not a scope|the pattern"):
        Grants.of([scope])


def test_names_in_addresses_are_decoded_once(served, keys):
    """A token for one name opens no other one that is written with percent signs, dots or slashes."""
    served.hold(folded([{"benchmark": "open/../secret", "item_id": "1", "model": "m", "score": 1}]))
    assert served.get("benchmarks/open%2F..%2Fsecret", **keys["reader"]).status == 200, "its name begins with open"
    for path in (
        "benchmarks/open%252F..%252Fsecret",
        "benchmarks/%6Fpen board",
        "benchmarks/open%00",
        "benchmarks/secret",
    ):
        assert served.get(path.replace(" ", "%20"), **keys["reader"]).status == 404


# --- the file ---------------------------------------------------------------------------------------------------------------------------


def test_changes_hold_from_the_next_request(tmp_path):
    path = tmp_path / "access.json"
    keys = file_of(path, one=["read"], two=["read"])
    with Served(partition(), loopback=False, rules={"access_file": path}) as served:
        assert served.get("summaries", **keys["one"]).status == 200
        with AccessFile(path).edit() as tokens:
            del tokens[0]
        assert served.get("summaries", **keys["one"]).status == 401
        keys |= file_of(path, three=["read:open*"])
        assert len(served.get("summaries", **keys["three"]).json) == 1
        assert served.get("summaries", **keys["two"]).status == 200


def test_a_token_expires(tmp_path):
    path = tmp_path / "access.json"
    moment = [NOW]
    file = AccessFile(path, lambda: moment[0])
    secret, token = new_token("a", ["read"], NOW, NOW + timedelta(minutes=1))
    with file.edit() as tokens:
        tokens.append(token)
    assert file.find(secret.encode()) == token
    moment[0] += timedelta(seconds=59.9)
    assert file.find(secret.encode()) == token
    moment[0] += timedelta(seconds=0.1)
    assert file.find(secret.encode()) is None
    assert file.tokens() == [token], "it is listed until it is revoked"


def as_link(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def as_socket(path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def of_another_user(path):
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    os.chown(path, 12_345, -1)


SPOILT = {
    "link": as_link,
    "folder": as_folder,
    "pipe": as_pipe,
    "socket": as_socket,
    "absent": lambda path: path.unlink(),
    "read by the group": lambda path: path.chmod(0o640),
    "read by all": lambda path: path.chmod(0o604),
    "written by all": lambda path: path.chmod(0o602),
    "of another user": of_another_user,
    "empty": lambda path: path.write_bytes(b""),
    "not JSON": lambda path: path.write_bytes(b"\xff\xfe{"),
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "large": lambda path: path.write_bytes(b" " * 5_000_000),
    "another version": lambda path: path.write_text('{"version": 2, "tokens": []}'),
    "no tokens": lambda path: path.write_text('{"version": 1}'),
    "no hash": lambda path: path.write_text(path.read_text().replace('"sha256": "', '"sha256": "x')),
    "a scope of tomorrow": lambda path: path.write_text(path.read_text().replace('"read"', '"delete"')),
    "another field": lambda path: path.write_text(path.read_text().replace('"sha256"', '"hash"')),
    "a name": lambda path: path.write_text(path.read_text().replace('"one"', '"operator"')),
}


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    """A server with both kinds of tokens, and the file of one kind."""
    path = tmp_path_factory.mktemp("spoiled") / "access.json"
    file_of(path, one=["read"])
    with Served(token="s3cret", loopback=False, rules={"access_file": path}) as served:
        yield served, path


@pytest.mark.fault("attacks", "access file with another owner, mode, type or content", "no token of it is accepted")
@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_others_may_have_written_opens_nothing(spoiled, how):
    served, path = spoiled
    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    keys = file_of(path, one=["read"])
    assert served.get("summaries", **keys["one"]).status == 200
    SPOILT[how](path)
    refused = served.get("summaries", **keys["one"])
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert str(path.parent) not in refused.text
    assert served.get("summaries", Authorization="Bearer s3cret").status == 200, "this one is not in the file"
    assert served.get("summaries").status == 401
    with pytest.raises(AccessFileError, match=r"access\.json"):
        AccessRules(access_file=path)


def test_a_mounted_secret_is_read_through_its_links(tmp_path):
    """As Kubernetes mounts it: links into ..data, which is a link to a folder that is replaced at once."""
    keys = file_of(tmp_path / "first/access.json", one=["read"])
    (tmp_path / "first/access.json").chmod(0o440)
    other = file_of(tmp_path / "second/access.json", two=["read"])
    (tmp_path / "..data").symlink_to("first")
    path = tmp_path / "access.json"
    path.symlink_to("..data/access.json")
    with Served(partition(), loopback=False, rules={"access_file": path}) as served:
        assert served.get("summaries", **keys["one"]).status == 200
        (tmp_path / "..data_tmp").symlink_to("second")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        assert served.get("summaries", **keys["one"]).status == 401
        assert served.get("summaries", **other["two"]).status == 200
        (tmp_path / "second/access.json").chmod(0o660)
        assert served.get("summaries", **other["two"]).status == 503


def test_the_file_has_no_secret_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "access.json"
    keys = file_of(path, one=["admin"])
    secret = keys["one"]["Authorization"].removeprefix("Bearer rankwatch_")
    assert len(secret) == 43
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["tokens"][0]["name"] == "one"


# --- requests ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("attacks", "forged tokens", "401")
@pytest.mark.parametrize(
    "change", [str.upper, lambda s: s[:-1], lambda s: s + "x", lambda s: s[:-1] + "-", lambda s: "x" + s]
)
def test_a_forged_token_is_refused(served, keys, change):
    secret = keys["root"]["Authorization"].removeprefix("Bearer ")
    forged = change(secret)
    if forged != secret:
        assert served.get("summaries", Authorization=f"Bearer {forged}").status == 401


@pytest.mark.fault("attacks", "the hash of a token sent as a token", "401")
def test_the_hash_is_no_token(served, keys, keys_and_server):
    digests = [token.sha256 for token in served.web.access._file.tokens()]
    assert {served.get("summaries", Authorization=f"Bearer {digest}").status for digest in digests} == {401}


@pytest.mark.fault("attacks", "a token in another header, or twice", "400 or 401")
def test_smuggled_headers_give_no_rights(served, keys):
    key = "Authorization: " + keys["root"]["Authorization"]
    assert raw_status(served, "summaries", key) == 200
    assert raw_status(served, "summaries", key, "Authorization: Bearer x") == 400
    assert raw_status(served, "summaries", "Authorization: Bearer x", key) == 400
    assert raw_status(served, "summaries", key, key) == 400
    for header in (
        key.replace("Authorization", "X-Authorization"),
        key.replace("Authorization", "Proxy-Authorization"),
        key.replace("Authorization: Bearer", "Authorization: Basic"),
        key.replace("Authorization: Bearer ", "Cookie: token="),
        key.replace("Bearer ", "Bearer\x0b"),
        "X-Forwarded-User: operator",
        "X-Original-URL: /healthz",
        "X-Rewrite-URL: /healthz",
        "X-HTTP-Method-Override: OPTIONS",
    ):
        assert raw_status(served, "summaries", header) in {400, 401}, header
    assert raw_status(served, "summaries", key.replace("Authorization: ", "Authorization:  ")) == 200


@pytest.mark.fault(
    "attacks", "token revoked, expired or narrowed under an open stream", "the stream ends, with nothing of the change"
)
def test_a_stream_ends_with_the_rights_of_its_token(tmp_path, monkeypatch):
    """Of all benchmarks and of one: a revoked, an expired and a narrowed token; nothing is sent after the change."""
    monkeypatch.setattr(change_routes, "HEARTBEAT_SECONDS", 0.05)
    path = tmp_path / "access.json"
    keys = file_of(path, revoked=["read"], narrowed=["read"], expired=["read"], kept=["read"])
    request = "GET /api/v1/changes/stream{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n\r\n"
    with Served(partition(), loopback=False, rules={"access_file": path}) as served:
        streams = {}
        for name, key in keys.items():
            for query in ("", "?benchmark=secret%20board"):
                connection = streams[name, query] = socket.create_connection(
                    ("127.0.0.1", int(served.url.rpartition(":")[2])), 10
                )
                connection.sendall(request.format(query, key["Authorization"]).encode())
                assert connection.recv(12) == b"HTTP/1.1 200"
        with AccessFile(path).edit() as tokens:
            narrowed, expired, kept = tokens[1:]
            other = new_token("narrowed", ["read:open*"], NOW, None)[1]
            tokens[:] = [
                type(narrowed)("narrowed", other.grants, narrowed.sha256, NOW, None),
                expired.ending(NOW - timedelta(seconds=1)),
                kept,
            ]
        served.post([event(CLOSED, "after the change")], **keys["kept"])
        for (name, _), connection in streams.items():
            if name == "kept":
                continue
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                piece = connection.recv(10_000)
                assert piece, "the answer ends as it should"
                received += piece
        for query in ("", "?benchmark=secret%20board"):
            connection = streams["kept", query]
            connection.recv(100_000)
            assert connection.recv(100_000), "the others go on"
        for connection in streams.values():
            connection.close()


@pytest.mark.fault("attacks", "token revoked or narrowed while an answer waits", "the answer is refused")
@pytest.mark.parametrize(("name", "status"), [("revoked", 401), ("narrowed", 503), ("kept", 200)])
def test_an_answer_that_has_waited_needs_the_rights_that_it_was_asked_with(tmp_path, name, status):
    path = tmp_path / "access.json"
    keys = file_of(path, revoked=["read"], narrowed=["read"], kept=["read"])

    async def waits(_scope, _receive, send):
        with AccessFile(path).edit() as tokens:
            _, narrowed, kept = tokens
            tokens[:] = [replace(narrowed, grants=Grants.of(["read:open*"])), kept]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"secret board"})

    control = AccessControl(waits, AccessRules(access_file=path), Audit(), loopback=False)
    authorization = (b"authorization", keys[name]["Authorization"].encode())
    scope = {"type": "http", "method": "GET", "path": "/api/v1/next", "headers": [authorization]}
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(control(scope, None, send))
    assert sent[0]["status"] == status
    assert (b"secret" in sent[1]["body"]) == (name == "kept")


@pytest.mark.fault("attacks", "answers and errors searched for tokens", "none")
def test_errors_and_answers_show_no_token(tmp_path, caplog):
    """Wrong tokens come back in no answer and no line of the log."""
    path = tmp_path / "access.json"
    keys = file_of(path, one=["read"])
    secret = keys["one"]["Authorization"].removeprefix("Bearer ")
    with Served(partition(), loopback=False, rules={"access_file": path}) as served:
        answers = [served.get(f"summaries?token={secret}"), served.get("caller", **keys["one"])]
        answers += [served.get("summaries", Authorization=f"Basic {secret}"), served.post([event(OPEN)], **keys["one"])]
        path.chmod(0o644)
        answers.append(served.get("summaries", **keys["one"]))
    assert [answer.status for answer in answers] == [401, 200, 401, 403, 503]
    assert not any(secret in answer.text + str(answer.headers) for answer in answers)
    assert secret not in caplog.text
