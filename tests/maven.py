"""Jars from Maven Central, for the tests that need a program in Java."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HOW = "on Debian: apt-get install default-jre-headless maven"


class UnavailableError(RuntimeError):
    """A program cannot be had on this machine; the message says what is missing and how to get it."""


def cache(name):
    """Return the folder in which the jars of a program are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwatch" / name


def need(command, what, instead=""):
    """Raise UnavailableError unless a command is on PATH."""
    if shutil.which(command) is None:
        raise UnavailableError(f"{what} needs {command}, which is not on PATH ({HOW}){instead}")


def fetch(pom, folder, what, instead=""):
    """Fetch what a program needs to run into a folder, once.

    Raises
    ------
    UnavailableError
        Without java or mvn, or if mvn cannot fetch it.
    """
    need("java", what)
    if folder.exists():
        return
    need("mvn", what, instead)
    print(f"Fetching {what} with Maven into {folder} (once; it can take minutes)", file=sys.stderr, flush=True)
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft}")
    ended = subprocess.run(["mvn", "-q", "-B", "-f", pom, *goal], capture_output=True, text=True, check=False)
    if ended.returncode:
        shutil.rmtree(draft, ignore_errors=True)
        raise UnavailableError(f"mvn could not fetch {what}: {ended.stdout[-1000:]}")
    try:
        draft.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(draft)
