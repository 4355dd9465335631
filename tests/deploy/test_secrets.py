"""Each container has its own secrets and no other: read from the parsed files, and from a store with their users."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.stack.compose import services

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy/kubernetes/base"
OVERLAYS = ROOT / "deploy/kubernetes/overlays"
FOLDERS = {
    "rankwatch": {"worker", "access"},
    "reader": {"reader", "access"},
    "valkey": {"valkey"},
    "live": {"writer"},
    "prometheus": {"prometheus"},
    "grafana": {"grafana"},
}


def documents(path):
    return list(yaml.safe_load_all(path.read_text("utf-8")))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The secrets as compose makes them, with the mode of `make stack`."""
    folder = tmp_path_factory.mktemp("secrets")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SECRET_MODE": "0600"}
    script = ROOT / "deploy/compose/secrets.sh"
    for _ in range(2):  # the second start changes nothing
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        subprocess.run(["sh", script, folder], env=env, check=True, timeout=120, capture_output=True)
        assert all(path.read_bytes() == content for path, content in before.items())
    return folder


def test_each_service_of_compose_mounts_its_own_secrets():
    for name, service in services().items():
        mounted = {source.partition("/")[2] for source, _ in service.mounts if source.partition("/")[0] == "secrets"}
        assert mounted == (FOLDERS.get(name, set()) if name != "secrets" else {""}), name
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    for name, service in compose["services"].items():
        assert not [v for v in service.get("volumes", ()) if str(v).startswith("secrets:")] or name == "secrets"
        assert all(v["read_only"] for v in service.get("volumes", ()) if isinstance(v, dict)), name
        assert "redis://" not in str(service.get("command")), name


def test_secrets_are_files_of_their_owner_with_no_more_rights_than_needed(made):
    for path in made.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o600), path
    access = json.loads((made / "access/access.json").read_text())
    scopes = {token["name"]: set(token["scopes"]) for token in access["tokens"]}
    assert scopes == {"live": {"write:*", "declare:*"}, "prometheus": {"read"}}
    for folder in ("writer", "prometheus"):
        assert (made / folder / "rankwatch-token").read_text() not in (made / "access/access.json").read_text()
    users = (made / "valkey/users.acl").read_text()
    for folder in ("worker", "reader"):
        name, _, password = (made / folder / "redis-login").read_text().partition(":")
        assert (name, len(password)) == (folder, 48)
        assert password not in users


async def test_the_reader_of_the_store_writes_nothing_and_nobody_enters_without_a_password(made, tmp_path):
    import redis.asyncio as redis

    from monitor.store.redis_store import RedisStore
    from monitor.store.server.embedded_config import find_executable
    from monitor.store.state_reader import StateReader

    socket = tmp_path / "s"
    words = [find_executable(), "--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path), "--save", ""]
    process = subprocess.Popen([*words, "--aclfile", str(made / "valkey/users.acl")], stdout=subprocess.DEVNULL)
    logins = {n: (made / n / "redis-login").read_text().partition(":")[::2] for n in ("worker", "reader")}
    targets = {
        n: {"unix_socket_path": str(socket), "username": user, "password": password}
        for n, (user, password) in logins.items()
    }
    try:
        async with (
            await RedisStore.open(targets["worker"], "topic") as store,
            await StateReader.open(targets["reader"], "topic") as reader,
        ):
            await store.bind_log(0, "log")
            assert (await store.origin_key("log")).secret == await reader.find_origin_secret()
            assert (await reader.load(0)).off == 0
        async with redis.Redis(**targets["reader"]) as client:
            for command in (
                ("SET", "x", "1"),
                ("EVAL", "return 1", "0"),
                ("FLUSHALL",),
                ("CONFIG", "GET", "*"),
                ("ACL", "LIST"),
            ):
                with pytest.raises(redis.ResponseError):
                    await client.execute_command(*command)
        async with redis.Redis(**targets["worker"]) as client:
            for command in (("FLUSHALL",), ("ACL", "LIST"), ("CONFIG", "SET", "dir", "/"), ("SHUTDOWN",)):
                with pytest.raises(redis.ResponseError):
                    await client.execute_command(*command)
        async with redis.Redis(unix_socket_path=str(socket)) as client:
            assert await client.ping()
            with pytest.raises(redis.ResponseError):
                await client.get("x")
    finally:
        process.terminate()
        process.wait()


def test_each_pod_has_its_own_secret_and_no_token():
    for file, who in (("deployment.yaml", "worker"), ("reader-deployment.yaml", "reader")):
        (deployment,) = documents(BASE / file)
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        secrets = {each["secretRef"]["name"] for each in container["envFrom"] if "secretRef" in each}
        assert secrets == {f"rankwatch-{who}"}
        mounted = {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        assert mounted == {"rankwatch-access"}
        assert "RANKWATCH_TOKEN" not in (BASE / file).read_text("utf-8")
    pods, readers = documents(OVERLAYS / "production/monitoring.yaml")
    (endpoint,) = pods["spec"]["podMetricsEndpoints"]
    for each in (endpoint, readers["spec"]):
        assert each["authorization"]["credentials"] == {"name": "rankwatch-metrics", "key": "token"}


def test_every_egress_names_where_it_leads():
    policies = documents(BASE / "networkpolicy.yaml")
    policies += [
        each
        for path in OVERLAYS.rglob("*.yaml")
        for each in documents(path)
        if each and each.get("kind") == "NetworkPolicy"
    ]
    assert {each["metadata"]["name"] for each in policies} == {"rankwatch", "rankwatch-webhooks", "kafka", "valkey"}
    for policy in policies:
        assert "Egress" in policy["spec"]["policyTypes"]
        for rule in policy["spec"].get("egress", ()):
            assert rule["to"], policy["metadata"]["name"]
            assert rule["ports"]
            for peer in rule["to"]:
                assert peer.get("namespaceSelector") != {}
                assert peer.get("podSelector") != {}
    webhooks = next(each for each in policies if each["metadata"]["name"] == "rankwatch-webhooks")
    assert webhooks["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "rankwatch"}}
    (rule,) = webhooks["spec"]["egress"]
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(
        rule["to"][0]["ipBlock"]["except"]
    )


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs sh")
def test_the_folder_of_a_stack_is_its_owners(tmp_path):
    from tests.stack.stack import Stack

    stack = Stack(tmp_path / "stack", without=set(services()))
    with stack:
        assert stat.S_IMODE((tmp_path / "stack").stat().st_mode) == 0o700
