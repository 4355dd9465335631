"""Which program of this machine runs an image of docker-compose.yml, and with which words."""

import os
import re
import shutil
import sys
from pathlib import Path

from monitor.store.server.embedded_config import find_executable
from tests.kafka.broker import JAVA, kafka_uuid
from tests.kafka.jars import class_archive, classpath
from tests.maven import UnavailableError

PACKAGES = {
    "prom/prometheus": (("prometheus",), "prometheus"),
    "prom/alertmanager": (("prometheus-alertmanager", "alertmanager"), "prometheus-alertmanager"),
    "haproxy": (("haproxy", "/usr/sbin/haproxy"), "haproxy"),
}
"""Names of the program, and the Debian package that has it."""
OMITTED = {
    "grafana/grafana": "Debian, PyPI and npm have no server; add the data source to your own Grafana, or use docker compose"
}
"""Images that no program stands for, with the reason."""


def missing(images):
    """Return a line for each program that is not on this machine, with what installs it."""
    lines = [
        f"{names[0]} is not on PATH; on Debian: apt-get install {package}"
        for image, (names, package) in PACKAGES.items()
        if image in images and not any(map(shutil.which, names))
    ]
    if "apache/kafka" in images:
        try:
            classpath()
        except UnavailableError as error:
            lines.append(str(error))
    return lines


def words(instance):
    """Return the words of an instance's process."""
    image, given = instance.service.image, instance.words
    if image == "rankwatch":
        return _with_port([sys.executable if word == "python" else word for word in given], instance)
    if image == "apache/kafka":
        return _kafka(instance)
    if image == "valkey/valkey":
        own = ["--port", str(instance.port(6379)), "--bind", "127.0.0.1", "--dir", str(instance.mounted("/data"))]
        return [find_executable(), *given[1:], *own]
    program = next(filter(None, map(shutil.which, PACKAGES[image][0])))
    if image == "haproxy":
        return [program, *given[1:]]
    port = {"prom/prometheus": 9090, "prom/alertmanager": 9093}[image]
    return [program, *given, f"--web.listen-address=127.0.0.1:{instance.port(port)}"]


def environment(instance):
    """Return the environment of an instance's process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RANKWATCH_")}
    if instance.service.image == "rankwatch":
        kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
        kept["SECRET_MODE"] = "0600"  # every service runs as one user here, on a machine that others may use
        kept["RANKWATCH_PORT"] = str(instance.port(8642))
        kept["RANKWATCH_DATA_DIR"] = str(instance.mounted("/data"))
    return kept | instance.environment


def _with_port(given, instance):
    """Replace a port that follows ``--port``."""
    return [
        str(instance.port(int(word))) if before == "--port" else word
        for before, word in zip(["", *given], given, strict=False)
    ]


def _kafka(instance):
    """Return the words of a broker, as the scripts of the image start it, or of one of its tools."""
    if instance.words:
        module = {"kafka-topics.sh": "tests.stack.topics"}[Path(instance.words[0]).name]
        return [sys.executable, "-m", module, *instance.words[1:]]
    archive = class_archive()
    java = [*JAVA, *([f"-XX:SharedArchiveFile={archive}"] if archive else [])]
    settings = {
        _property(name): value
        for name, value in instance.environment.items()
        if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS"
    }
    file = instance.folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    if not (Path(settings["log.dirs"]) / "meta.properties").exists():
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={kafka_uuid()}", "-c", str(file))
        instance.run([*java, "-Xmx64m", "-cp", classpath(), *tool])
    return [*java, *instance.environment["KAFKA_HEAP_OPTS"].split(), "-cp", classpath(), "kafka.Kafka", str(file)]


def _property(name):
    """Return the property that a variable of the image sets."""
    marks = {"_": ".", "__": "_", "___": "-"}
    return re.sub("_+", lambda found: marks[found[0]], name.removeprefix("KAFKA_").lower())
