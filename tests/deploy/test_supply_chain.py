"""Every package of the lock has a hash, and a licence that may be used."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

LOCK = (Path(__file__).parents[2] / "deploy" / "requirements.lock").read_text(encoding="utf-8")
PINS = re.findall(r"^([a-z0-9._-]+)==(\S+)(?: ; (.*?))? \\\n +--hash=sha256:", LOCK, re.MULTILINE)
"""Name, version and marker."""
LICENCES = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "PSF-2.0",
    "Zlib",
}
"""None of them asks for more than to be named."""
WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
    "Repoze Public License": "BSD-3-Clause",  # BSD with a clause on trademarks
}
"""As packages say it that name no expression."""


def licences(name):
    """The licences of a package by what it says itself; one word for each that all of it, or a part of it, is under."""
    about = metadata.metadata(name)
    if expression := about["License-Expression"]:
        return set(re.split(r" AND | OR ", expression.replace("(", "").replace(")", "")))
    classifiers = [
        line.split(" :: ")[-1] for line in about.get_all("Classifier") or () if line.startswith("License :: ")
    ]
    return {WORDS.get(word, word) for word in classifiers or [about["License"] or "nothing"]}


def test_every_package_of_the_lock_has_a_hash():
    assert len(PINS) == len(re.findall(r"^\S+==", LOCK, re.MULTILINE)) > 50


@pytest.mark.parametrize("name", sorted({name for name, _, marker in PINS if "win32" not in marker or "!=" in marker}))
def test_a_package_has_a_licence_that_may_be_used(name):
    assert licences(name) <= LICENCES, f"{name} is under {licences(name)}: may it be used?"


def test_the_checker_of_schemas_starts():
    lock = (Path(__file__).parents[2] / "deploy" / "requirements-dev.lock").read_text(encoding="utf-8")
    locked = re.search(r"^check-jsonschema==(\S+)", lock, re.MULTILINE)[1]
    assert tuple(map(int, locked.split("."))) < (0, 38), "it needs another click than faust-streaming"
    if metadata.version("check-jsonschema") != locked:
        pytest.skip(f"check-jsonschema {locked} is not installed: make dev")
    tool = Path(sys.executable).with_name("check-jsonschema")
    assert locked in subprocess.run([tool, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
