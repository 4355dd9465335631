"""Where the jars of Apache Kafka come from."""

import contextlib
import fcntl
import os
import re
import shutil
from pathlib import Path

from tests.maven import cache, fetch, need

POM = Path(__file__).with_name("pom.xml")
VERSION = re.search(r"<kafka.version>(.*)</kafka.version>", POM.read_text(encoding="utf-8")).group(1)


def classpath():
    """Return the class path of Apache Kafka, fetched once into ``~/.cache/rankwatch/kafka-<version>``.

    ``RANKWATCH_KAFKA_JARS`` names a folder of jars to use instead, such as ``libs`` of Apache's own archive.
    """
    need("java", "Apache Kafka")
    folder = os.environ.get("RANKWATCH_KAFKA_JARS")
    if folder is None:
        folder = _cache()
        fetch(POM, folder, f"Apache Kafka {VERSION}", "; or name the folder of its jars in RANKWATCH_KAFKA_JARS")
    return f"{folder}/*"


def class_archive():
    """Return where the classes of Apache Kafka are kept as a JVM loads them, or None where none of this JVM is kept yet."""
    archive = _archive()
    installed = Path(shutil.which("java")).resolve().stat().st_ctime
    usable = "RANKWATCH_KAFKA_JARS" not in os.environ and archive.exists() and archive.stat().st_mtime > installed
    return archive if usable else None


@contextlib.contextmanager
def class_archive_options():
    """Yield the options of a JVM that writes the archive of classes when it is stopped; none where that is not needed.

    With the archive, a node starts in half of the processor time.
    """
    archive = _archive()
    with contextlib.ExitStack() as stack:
        if "RANKWATCH_KAFKA_JARS" in os.environ or class_archive():
            yield ()
            return
        lock = stack.enter_context(archive.with_name(f"{archive.name}.lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process of the tests writes it
            yield ()
            return
        draft = archive.with_name(f"{archive.name}.draft")
        yield (f"-XX:ArchiveClassesAtExit={draft}",)
        if draft.exists():
            draft.replace(archive)


def _cache():
    return cache(f"kafka-{VERSION}")


def _archive():
    return _cache().with_name(f"kafka-{VERSION}.jsa")
