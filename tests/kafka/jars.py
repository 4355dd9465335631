"""Where the jars of Apache Kafka come from."""

import os
import re
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
VERSION = re.search(r"<kafka.version>(.*)</kafka.version>", POM.read_text(encoding="utf-8")).group(1)
HOW = "on Debian: apt-get install default-jre-headless maven"


class KafkaUnavailableError(RuntimeError):
    """Apache Kafka cannot be had on this machine; the message says what is missing and how to get it."""


def classpath():
    """Return the class path of Apache Kafka, fetched once into ``~/.cache/rankwatch/kafka-<version>``.

    ``RANKWATCH_KAFKA_JARS`` names a folder of jars to use instead, such as ``libs`` of Apache's own archive.
    """
    if shutil.which("java") is None:
        raise KafkaUnavailableError(f"Apache Kafka needs java, which is not on PATH ({HOW})")
    folder = os.environ.get("RANKWATCH_KAFKA_JARS")
    if folder is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = cache / "rankwatch" / f"kafka-{VERSION}"
        if not folder.exists():
            _fetch(folder)
    return f"{folder}/*"


def _fetch(folder):
    if shutil.which("mvn") is None:
        raise KafkaUnavailableError(
            f"Apache Kafka is fetched by mvn, which is not on PATH ({HOW}); "
            "or name the folder of its jars in RANKWATCH_KAFKA_JARS"
        )
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft}")
    ended = subprocess.run(["mvn", "-q", "-B", "-f", POM, *goal], capture_output=True, text=True, check=False)
    if ended.returncode:
        shutil.rmtree(draft, ignore_errors=True)
        raise KafkaUnavailableError(f"mvn could not fetch Apache Kafka {VERSION}: {ended.stdout[-1000:]}")
    try:
        draft.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(draft)
