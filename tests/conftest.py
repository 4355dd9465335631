"""Decide which tests `make test` leaves to `make check`, and in which order they run."""

import gc
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shared machine may pause any single example: time is measured by benchmarks, not here.
settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")

pytest_plugins = ["tests.kafka.fixtures"]

# Imports and thousands of tests are objects that live to the end: searching them for cycles is an eighth of the processor time.
gc.set_threshold(50_000)

TESTS = Path(__file__).parent
QUICK_FOLDERS = {"client", "contract", "golden", "property", "unit"}
LONG_FOLDERS = {"fault", "soak"}
SLOW_MARKERS = {"browser", "deploy", "kafka", "slow"}
FULL = re.compile(rf"pytest\.mark\.({'|'.join([*sorted(SLOW_MARKERS), 'full'])})\b")
SMOKE = re.compile(r"pytest\.mark\.smoke\b")
EXPRESSIONS = ("not full", "full")
"""What `make test` and `make check` select."""


@cache
def _in_quick_folder(path):
    return path.relative_to(TESTS).parts[0] in QUICK_FOLDERS


@cache
def _can_hold(path, *, full):
    """Whether a file can hold tests of a tier: by its folder, and by the markers in its text, which take tests to the other tier."""
    if _in_quick_folder(path) is not full:
        return True
    return (FULL if full else SMOKE).search(path.read_text(encoding="utf-8")) is not None


def pytest_ignore_collect(collection_path, config):
    """Leave out the files without a test of the tier that runs: each worker would import them, and generate their tests."""
    if config.option.markexpr in EXPRESSIONS and collection_path.match("test_*.py"):
        return not _can_hold(collection_path, full=config.option.markexpr == "full") or None
    return None


def pytest_collection_modifyitems(items):
    """Mark as `full` every test outside the quick folders or with a slow marker; `smoke` overrules both."""
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        if "smoke" not in markers and (not _in_quick_folder(item.path) or markers & SLOW_MARKERS):
            item.add_marker(pytest.mark.full)
        full = "full" in item.keywords
        if not _can_hold(item.path, full=full):
            raise pytest.UsageError(
                f"{item.nodeid}: {'full' if full else 'smoke'} has to be a marker in the text of its file"
            )
    # The longest tests first: then no worker is left with one of them at the end.
    items.sort(key=lambda item: ("smoke" not in item.keywords, item.path.parent.name not in LONG_FOLDERS))


def pytest_collection_finish():
    """Leave what was imported and collected out of every later search for cycles."""
    gc.freeze()


@pytest.fixture(scope="module")
def server():
    """Serve one server to a whole module."""
    # Not a plugin: the process that hands out tests would import the whole monitor first, while the workers wait for it.
    from tests.served import Served

    with Served() as server:
        yield server


@pytest.fixture
def served(server):
    """Empty the server of the module for this test."""
    return server.hold()
