"""Users that a proxy signs in: believed from its address only, and never on the word of a client."""

import base64
import random
import shutil
import socket
import subprocess

import pytest

from monitor.serve.access.access_file import AccessFile
from monitor.serve.access.rules import AccessRules
from monitor.serve.access.scopes import Grants
from monitor.settings import Settings
from tests.commands import events, get, until
from tests.ports import free_port
from tests.served import Served, folded, raw_status

BOARD = "open board"


def with_groups(path, **groups):
    with AccessFile(path).edit_groups() as known:
        known |= {name.replace("everyone", "*"): Grants.of(scopes) for name, scopes in groups.items()}
    return path


def board():
    return folded(events(random.Random(1), {"a": 0.95, "b": 0.2}, 20, benchmark=BOARD), items=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = with_groups(
        tmp_path_factory.mktemp("access") / "access.json",
        readers=["read"],
        writers=["write:open*"],
        everyone=["read:x"],
    )
    rules = {"access_file": path, "trusted_proxies": "10.0.0.0/8, 127.0.0.1"}
    with Served(board(), token="s3cret", loopback=False, rules=rules) as served:
        yield served


def caller(served, **headers):
    return served.get("caller", **headers)


def test_a_user_may_do_what_its_groups_may(served):
    both = {"x_forwarded_user": "ann@example.org", "x_forwarded_groups": "readers, writers,unknown"}
    shown = caller(served, **both).json
    assert (shown["name"], shown["scopes"]) == ("user:ann@example.org", ["read:x", "read", "write:open*"])
    assert [each["benchmark"] for each in served.get("summaries", **both).json] == [BOARD]
    event = {"benchmark": BOARD, "item_id": "new", "model": "a", "score": 1}
    assert served.post([event], **both).status == 200
    assert served.post([event | {"benchmark": "other"}], **both).status == 403
    assert b'{"producer":"user:ann@example.org"' in served.log.records[-1]
    alone = caller(served, x_forwarded_user="bob").json
    assert alone["scopes"] == ["read:x"]
    assert served.get("summaries", x_forwarded_user="bob").json == []


def test_groups_without_a_user_are_nobody(served):
    assert caller(served, x_forwarded_groups="readers").status == 401


def test_a_token_goes_before_the_user(served):
    shown = caller(served, x_forwarded_user="bob", Authorization="Bearer s3cret").json
    assert shown["name"] == "operator"
    assert caller(served, x_forwarded_user="bob", Authorization="Bearer wrong").status == 401


@pytest.mark.parametrize("user", ["", " ", "a b", "a,b", "user:ann", "a\x0bb", "x" * 101, "\u00e9"])
def test_a_user_without_a_proper_name_is_refused(served, user):
    assert caller(served, **{"X-Forwarded-User": user.encode()}).status == 400


def test_a_user_is_no_token_of_the_same_name(served):
    for name in ("operator", "local", "anonymous"):
        shown = caller(served, x_forwarded_user=name).json
        assert (shown["name"], shown["scopes"]) == (f"user:{name}", ["read:x"])


@pytest.mark.fault("attacks", "user headers doubled, malformed or spelled differently", "refused")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["X-Forwarded-User: ann"], 200),
        (["X-Forwarded-User: ann", "X-Forwarded-User: bob"], 400),
        (["X-Forwarded-User: ann", "x-forwarded-user: ann"], 400),
        (["X-Forwarded-User: ann", "X-Forwarded-Groups: a", "X-Forwarded-Groups: readers"], 400),
        (["X_Forwarded_User: ann"], 401),
        (["X-Forwarded-User : ann"], 400),
        (["X-Forwarded-User: ann\r\n bob"], 400),
        (["X-Remote-User: ann", "Remote-User: ann", "X-Forwarded-Email: ann", "X-Auth-Request-User: ann"], 401),
    ],
)
def test_headers_that_are_not_clear_name_nobody(served, headers, status):
    assert raw_status(served, "caller", *headers) == status


@pytest.mark.fault("attacks", "user headers from another address", "401")
@pytest.mark.parametrize("proxies", ["10.0.0.0/8", "127.0.0.2", "::1", "128.0.0.0/1"])
def test_from_elsewhere_the_headers_mean_nothing(tmp_path, proxies):
    rules = {"access_file": with_groups(tmp_path / "a.json", readers=["admin"]), "trusted_proxies": proxies}
    with Served(board(), loopback=False, rules=rules) as served:
        forged = {"x_forwarded_user": "ann", "x_forwarded_groups": "readers", "x_forwarded_for": "10.0.0.1"}
        assert caller(served, **forged).status == 401
        assert served.get("summaries", **forged).status == 401


@pytest.mark.parametrize("proxies", ["10.0.0.1/8", "proxy.example.org", "10.0.0.0/33", "*"])
def test_an_address_that_is_none_is_refused_at_the_start(proxies):
    with pytest.raises(ValueError, match=r"trusted_proxies: .* is no address or network"):
        AccessRules(trusted_proxies=proxies)


def test_a_cache_in_front_of_users_of_a_proxy_is_refused():
    with pytest.raises(ValueError, match="cannot distinguish the users of a proxy"):
        Settings(cache_seconds=60, trusted_proxies="10.0.0.0/8")
    assert Settings(cache_seconds=60, anonymous_read="*").cache_seconds == 60


@pytest.mark.fault("attacks", "a write from another site with the proxy's cookie", "403")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_cannot_use_the_cookie_of_the_proxy(served, site):
    user = {"x_forwarded_user": "ann", "x_forwarded_groups": "writers"}
    sent = [{"benchmark": BOARD, "item_id": "z", "model": "a", "score": 1}]
    before = len(served.log.records)
    assert served.post(sent, sec_fetch_site=site, **user).status == 403
    assert len(served.log.records) == before
    assert served.post(sent, sec_fetch_site="same-origin", **user).status == 200


def test_groups_change_at_once(tmp_path):
    path = with_groups(tmp_path / "a.json", readers=["read"])
    with Served(board(), loopback=False, rules={"access_file": path, "trusted_proxies": "127.0.0.1"}) as served:
        user = {"x_forwarded_user": "ann", "x_forwarded_groups": "readers"}
        assert len(served.get("summaries", **user).json) == 1
        with_groups(path, readers=["read:other"])
        assert served.get("summaries", **user).json == []
        path.chmod(0o666)
        assert served.get("summaries", **user).status == 503


HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
userlist users
    group readers users ann
    user ann insecure-password pass-ann
    user bob insecure-password pass-bob
frontend front
    bind 127.0.0.1:{port}
    http-request auth unless {{ http_auth(users) }}
    http-request set-header X-Forwarded-User %[http_auth_user]
    http-request del-header X-Forwarded-Groups
    http-request set-header X-Forwarded-Groups readers if {{ http_auth_group(users) readers }}
    http-request del-header Authorization
    default_backend rankwatch
backend rankwatch
    server one 127.0.0.1:{behind}
"""


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.fault("attacks", "a client adds user headers in front of a real HAProxy", "the proxy replaces them")
@pytest.mark.full
def test_a_real_proxy_signs_users_in(tmp_path):
    """HAProxy with passwords, in place of one with OIDC: both end in the same headers. What a client adds does not get through."""
    executable = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if executable is None:
        pytest.skip("no haproxy on PATH (Debian: apt-get install haproxy)")
    port = free_port()
    path = with_groups(tmp_path / "a.json", readers=["read:open*"])
    rules = {"access_file": path, "trusted_proxies": "127.0.0.1"}
    with Served(board(), loopback=False, rules=rules) as served:
        config = tmp_path / "haproxy.cfg"
        config.write_text(HAPROXY.format(port=port, behind=served.url.rpartition(":")[2]))
        with subprocess.Popen(
            [executable, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as proxy:
            try:
                url = f"http://127.0.0.1:{port}/api/v1/summaries"

                def ask(user, **headers):
                    password = base64.b64encode(f"{user}:pass-{user}".encode()).decode()
                    return get(url, Authorization=f"Basic {password}", **headers)

                until(lambda: listens(port), "the proxy")
                assert get(url)[0] == 401
                assert BOARD in ask("ann")[1]
                assert ask("bob") == (200, "[]")
                forged = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "readers"}
                assert ask("bob", **forged) == (200, "[]")
                assert get(url, **forged)[0] == 401
                stream = subprocess.Popen(
                    ["curl", "-sN", "-u", "ann:pass-ann", f"http://127.0.0.1:{port}/api/v1/changes/stream"],
                    stdout=subprocess.PIPE,
                )
                with stream:
                    assert stream.stdout.readline() == b"retry: 2000\n"
                    stream.kill()
            finally:
                proxy.kill()
