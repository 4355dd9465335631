"""Apache Kafka in KRaft mode as real processes on the loopback interface, to be stopped, killed and started again.

``python -m tests.kafka.broker --port 9092`` runs one node for a developer until Ctrl-C.
"""

import argparse
import asyncio
import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from tests.kafka.jars import class_archive, classpath
from tests.ports import free_ports

START_SECONDS = 180
QUICK = {
    "auto.create.topics.enable": "false",
    # A killed node is let in again only when its session has ended.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "controlled.shutdown.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    # With 0, a node looks for deleted logs every millisecond: half of the processor time that it takes when idle.
    "log.segment.delete.delay.ms": "100",
    "message.max.bytes": str(32 << 20),
    # By default a controller writes a record twice a second to show that it is there.
    "metadata.max.idle.interval.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}
FORMATTED = {}
"""The bootstrap metadata that `kafka-storage format` wrote, by the users in it."""
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dlog4j2.level=WARN")


class KafkaBroker:
    """One node: broker and controller in one process.

    Parameters
    ----------
    directory
        Where its data, its configuration and what it prints are kept.
    ports
        Of its listeners: clients, controller; it keeps them through restarts.
    voters
        Node id and controller port of every node of the cluster.
    extra
        Settings besides `QUICK`.
    scram
        Users made by formatting, as ``kafka-storage format --add-scram`` takes them.
    listeners
        Port and security protocol of listeners besides, by name.
    java
        Options of the JVM.
    """

    def __init__(self, directory, node, ports, voters, cluster_id, *, extra=(), scram=(), listeners=(), java=()):
        self.directory = Path(directory)
        self.node = node
        self.port, self.controller_port = ports
        self._cluster_id = cluster_id
        self._scram = tuple(scram)
        self._options = tuple(java)
        self._process = None
        replicas = str(min(3, len(voters)))
        listeners = {
            "PLAIN": (self.port, "PLAINTEXT"),
            "CONTROLLER": (self.controller_port, "PLAINTEXT"),
            **dict(listeners),
        }
        self._settings = {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{port}" for n, port in voters.items()),
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, (port, _) in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, (_, kind) in listeners.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAIN",
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "share.coordinator.state.topic.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "default.replication.factor": replicas,
            **QUICK,
            **dict(extra),
        }

    @property
    def address(self):
        """``host:port`` of the listener for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        """Process id, or None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def printed(self):
        """What it has printed since it was made."""
        return (self.directory / "printed.txt").read_text(encoding="utf-8", errors="replace")

    def launch(self):
        """Start the process, and do not wait until it answers."""
        assert self.pid is None, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "server.properties"
        if not (self.directory / "data" / "meta.properties").exists():
            file.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()), encoding="utf-8")
            self._format(file)
        self._process = self._java("-Xms256m", "-Xmx512m", *self._options, "kafka.Kafka", str(file))

    def _format(self, file):
        """Format the data directory; what the features of the cluster are is written by a JVM only once for each set of users."""
        data = self.directory / "data"
        if self._scram in FORMATTED:
            data.mkdir()
            (data / "bootstrap.checkpoint").write_bytes(FORMATTED[self._scram])
            identity = {
                "version": 1,
                "cluster.id": self._cluster_id,
                "node.id": self.node,
                "directory.id": kafka_uuid(),
            }
            text = "".join(f"{key}={value}\n" for key, value in identity.items())
            (data / "meta.properties").write_text(text, encoding="utf-8")
        else:
            scram = [word for user in self._scram for word in ("--add-scram", user)]
            identity = f"--cluster-id={self._cluster_id}"  # one that begins with a dash would be taken for an option
            tool = ("kafka.tools.StorageTool", "format", identity, "-c", str(file), *scram)
            self._java("-Xmx64m", *tool).wait(START_SECONDS)
            FORMATTED[self._scram] = (data / "bootstrap.checkpoint").read_bytes()

    def stop(self, seconds=20):
        """Stop it as an operator would, and kill it if that takes longer than `seconds`."""
        if self.pid is not None:
            self._process.terminate()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self):
        """Kill it without a warning."""
        if self.pid is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self):
        """Stop it in its tracks, connections open (SIGSTOP)."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Let it go on after `freeze`."""
        self._process.send_signal(signal.SIGCONT)

    def wipe(self):
        """Delete the data of a node that does not run."""
        assert self.pid is None, "stop it first"
        shutil.rmtree(self.directory / "data", ignore_errors=True)

    def _java(self, *arguments):
        archive = class_archive()
        sharing = [f"-XX:SharedArchiveFile={archive}"] if archive else []
        with (self.directory / "printed.txt").open("ab") as printed:
            return subprocess.Popen(
                [*JAVA, *sharing, "-cp", classpath(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal is for the tests, which stop it in order
            )


class KafkaCluster:
    """One node or several; a context manager that starts them and, at the end, kills them and deletes their data.

    Parameters
    ----------
    nodes
        How many.
    port
        Of the first node's listener for clients; free ports by default.
    directory
        For all data; a temporary one by default.
    options
        As `KafkaBroker`: `extra`, `scram`, `listeners`, `java`.
    """

    def __init__(self, nodes=1, *, port=None, directory=None, **options):
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="rankwatch-kafka-")
        self.directory = Path(directory or self._temporary.name)
        ports = free_ports(2 * nodes)
        if port is not None:
            ports[0] = port
        voters = {node + 1: ports[nodes + node] for node in range(nodes)}
        identity = kafka_uuid()
        self.brokers = [
            KafkaBroker(self.directory / str(node), node, (client, controller), voters, identity, **options)
            for client, (node, controller) in zip(ports, voters.items(), strict=False)
        ]

    @property
    def addresses(self):
        """``host:port,host:port`` of all nodes."""
        return ",".join(broker.address for broker in self.brokers)

    def url(self, topic):
        """Return the URL of a topic, as users write it."""
        return f"kafka://{self.addresses}/{topic}"

    def start(self, *brokers):
        """Start the nodes that do not run (or `brokers`) and wait until they answer."""
        started = [broker for broker in brokers or self.brokers if broker.pid is None]
        for broker in started:
            broker.launch()
        for broker in started:
            asyncio.run(self._answers(broker))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        for broker in self.brokers:
            broker.kill()
        if self._temporary is not None:
            self._temporary.cleanup()

    async def _answers(self, broker):
        deadline = time.monotonic() + START_SECONDS
        running = sum(other.pid is not None for other in self.brokers)
        while True:
            try:
                # aiokafka prints a line for every refused connection: ask the port first.
                _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
                writer.close()
                async with self.admin(broker.address) as admin:
                    if len((await admin.describe_cluster())["brokers"]) >= running:
                        return
            except (KafkaError, OSError):
                pass
            if broker.pid is None or time.monotonic() > deadline:
                raise RuntimeError(f"Apache Kafka did not start:\n{broker.printed[-4000:]}")
            await asyncio.sleep(0.1)

    @contextlib.asynccontextmanager
    async def admin(self, addresses=None):
        """Open an `aiokafka.admin.AIOKafkaAdminClient`."""
        admin = AIOKafkaAdminClient(bootstrap_servers=addresses or self.addresses, request_timeout_ms=10_000)
        try:
            await admin.start()
            yield admin
        finally:
            await admin.close()

    async def create_topic(self, name, partitions=1, **config):
        """Create a topic; ``min_insync_replicas=2`` sets ``min.insync.replicas``.

        Return when every running broker knows a leader of every partition: the metadata of one may be older than that of another.
        """
        async with self.admin() as admin:
            settings = {key.replace("_", "."): str(value) for key, value in config.items()}
            replicas = min(3, len(self.brokers))
            while admin._client.cluster.controller is None:  # the client does not wait for it
                await admin._client.force_metadata_update()
                await asyncio.sleep(0.02)
            await admin.create_topics([NewTopic(name, partitions, replicas, topic_configs=settings)])
        for broker in self.brokers:
            while broker.pid is not None and await _leaders(broker, name) < partitions:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.02)

    async def delete_topic(self, name):
        """Delete a topic."""
        async with self.admin() as admin:
            await admin.delete_topics([name])


async def _leaders(broker, topic):
    """Count the partitions of a topic of which this broker knows the leader; a client of the whole cluster asks any broker."""
    connection = await create_conn("127.0.0.1", broker.port)
    try:
        answer = (await connection.send(MetadataRequest([topic], allow_auto_topic_creation=False))).to_object()
    finally:
        connection.close()
    return sum(part["leader"] >= 0 for each in answer["topics"] for part in each["partitions"])


def kafka_uuid():
    """Return an identity as Kafka writes it."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def main():
    """Run nodes for a developer until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Apache Kafka on this machine until Ctrl-C, data thrown away.")
    parser.add_argument("--port", type=int, default=9092, help="of the first node (default: 9092)")
    parser.add_argument("--nodes", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("--topic", default="events", help="created at the start (default: events)")
    parser.add_argument("--partitions", type=int, default=4, help="of that topic (default: 4)")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    classpath()  # fetching takes minutes, and prints that it does
    print("Starting Apache Kafka; it answers within a minute", flush=True)
    with contextlib.suppress(KeyboardInterrupt), KafkaCluster(chosen.nodes, port=chosen.port) as cluster:
        asyncio.run(cluster.create_topic(chosen.topic, chosen.partitions))
        print(
            f"Apache Kafka at {cluster.url(chosen.topic)} ({chosen.partitions} partitions); Ctrl-C ends it", flush=True
        )
        signal.pause()


if __name__ == "__main__":
    main()
