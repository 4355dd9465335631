"""The state with Sentinels and in a Cluster, as on one server; with the primary killed while it is written."""

import asyncio
import random

import pytest

from monitor.store.errors import StateRefused
from monitor.store.layout import Keys
from monitor.store.redis_store import RedisStore
from monitor.store.server.clients import make_clients
from tests.commands import rankwatch
from tests.redis_server import RedisCluster, RedisServer, Sentinels, has_cli
from tests.stored_state import drain, fold, records, state_of

pytestmark = pytest.mark.slow

PARTITIONS = 3
needs_cli = pytest.mark.skipif(
    not has_cli(), reason="redis-cli makes the Cluster (on Debian: apt-get install redis-tools)"
)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The URL of one server that holds what the others shall."""
    with RedisServer(tmp_path_factory.mktemp("alone")) as server:
        asyncio.run(fold(server.url, "events", PARTITIONS, records(random.Random(5), 0, 60)))
        yield server.url


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with RedisCluster(tmp_path_factory.mktemp("cluster"), replicas=1) as cluster:
        yield cluster


def killer(server, after):
    """Kill a server once so many records of a partition are stored."""

    def committed(_, count):
        if count >= after and server.process.poll() is None:
            server.kill()

    return committed


@needs_cli
async def test_a_cluster_holds_what_one_server_holds(cluster, alone, tmp_path):
    url = cluster.url
    await fold(url, "events", PARTITIONS, records(random.Random(5), 0, 60))
    assert await state_of(url, "events", PARTITIONS) == await state_of(alone, "events", PARTITIONS)
    used = {cluster.primary_of(Keys("events", number).meta).port for number in range(PARTITIONS)}
    assert len(used) > 1, "the partitions lie on several servers"
    await drain(url, "events", PARTITIONS)
    file, to = tmp_path / "state.jsonl", ("--redis-url", url, "--topic", "moved")
    rankwatch("state", "export", file, "--redis-url", url, "--topic", "events")
    rankwatch("state", "import", file, *to, "--partitions", 5)
    assert await state_of(url, "moved", 5) == await state_of(alone, "events", PARTITIONS)
    shown = rankwatch("state", "show", *to).stdout
    assert len(shown.splitlines()) == 6
    findings = rankwatch("doctor", "--redis-url", url, "--data-dir", tmp_path).stdout
    assert findings.count("appendfsync always") == 3


@pytest.mark.fault("store", "primary of a Redis Cluster killed", "the same state")
@needs_cli
async def test_a_primary_of_a_cluster_is_killed_while_it_is_written(cluster, alone):
    victim = cluster.primary_of(Keys("killed", 0).meta)
    made = records(random.Random(5), 0, 60)
    await fold(cluster.url, "killed", PARTITIONS, made, limit=40, committed=killer(victim, 120))
    assert victim.process.poll() is not None
    assert await state_of(cluster.url, "killed", PARTITIONS) == await state_of(alone, "events", PARTITIONS)


@pytest.mark.fault("store", "primary of a Sentinel group killed", "the same state")
async def test_the_primary_of_sentinels_is_killed_while_it_is_written(tmp_path, alone):
    with Sentinels(tmp_path) as sentinels:
        made = records(random.Random(5), 0, 60)
        hit = killer(sentinels.primary, 120)
        await fold(sentinels.url, "events", PARTITIONS, made, limit=40, committed=hit)
        assert sentinels.primary.process.poll() is not None
        assert await state_of(sentinels.url, "events", PARTITIONS) == await state_of(alone, "events", PARTITIONS)
        assert "Redis role" not in rankwatch("doctor", "--redis-url", sentinels.url, "--data-dir", tmp_path).stdout


@needs_cli
async def test_one_node_that_evicts_is_refused(cluster):
    import redis

    live = [server for server in cluster.servers if server.process.poll() is None]
    victim = next(server for server in live if server is cluster.primary_of(Keys("any", 0).meta))
    with redis.Redis(port=victim.port) as connection:
        connection.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StateRefused, match=rf"{victim.port} has maxmemory-policy allkeys-lru"):
                await opened(cluster.url)
        finally:
            connection.config_set("maxmemory-policy", "noeviction")


async def opened(url):
    async with await RedisStore.open(url, "events"):
        pass


@pytest.mark.parametrize("kind", ["alone", pytest.param("cluster", marks=needs_cli)])
async def test_a_large_command_is_sent_in_slices(kind, request, monkeypatch):
    """A commit of 50 MB holds the event loop for 0.1 s if asyncio copies it in one turn."""
    target = request.getfixturevalue(kind)
    sizes, write, write_lines = [], asyncio.StreamWriter.write, asyncio.StreamWriter.writelines
    monkeypatch.setattr(asyncio.StreamWriter, "write", lambda self, data: sizes.append(len(data)) or write(self, data))
    monkeypatch.setattr(
        asyncio.StreamWriter,
        "writelines",
        lambda self, data: sizes.append(sum(map(len, data))) or write_lines(self, data),
    )
    client = make_clients(getattr(target, "url", target)).state
    try:
        value = random.Random(1).randbytes(3 << 20)
        await client.set("large", value)
        assert await client.get("large") == value
        await client.delete("large")
    finally:
        await client.aclose()
    assert sum(sizes) > 3 << 20
    assert max(sizes) <= 1 << 18


async def test_urls():
    async def made(url):
        clients = make_clients(url)
        try:
            return clients.address, clients.state, [f.connection_pool.connection_kwargs for f in clients.sentinels]
        finally:
            for client in (clients.state, *clients.sentinels):
                await client.aclose()

    where, client, finders = await made(
        "rediss+sentinel://me:secret@one,[::1]:7/state/3?sentinel_password=other&ssl_ca_certs=ca.pem"
    )
    assert where == "one:26379,::1:7/state/3"
    options = client.connection_pool.connection_kwargs
    assert (options["db"], options["username"], options["password"]) == (3, "me", "secret")
    assert [(f["host"], f["port"], f["password"]) for f in finders] == [("one", 26379, "other"), ("::1", 7, "other")]
    assert options["ssl_ca_certs"] == finders[0]["ssl_ca_certs"] == "ca.pem"
    where, client, _ = await made("redis+cluster://:secret@one:7,two/0")
    assert where == "one:7,two:6379"
    assert {node.name for node in client.nodes_manager.startup_nodes.values()} == {"one:7", "two:6379"}
    for bad in (
        "redis+sentinel://:secret@one",
        "redis+cluster://one/2",
        "http://:secret@one",
        "redis+ring://one",
        "redis+cluster://,",
    ):
        with pytest.raises(ValueError, match="redis\\+sentinel://host") as fault:
            make_clients(bad)
        assert "secret" not in str(fault.value)
