"""Decide which tests `make test` leaves to `make check`."""

from pathlib import Path

import pytest

pytest_plugins = ["tests.kafka.fixtures", "tests.served"]

TESTS = Path(__file__).parent
QUICK_FOLDERS = {"client", "contract", "golden", "property", "unit"}
SLOW_MARKERS = {"browser", "deploy", "kafka", "slow"}


def pytest_collection_modifyitems(items):
    """Mark as `full` every test outside the quick folders or with a slow marker; `smoke` overrules both."""
    for item in items:
        if item.path.is_relative_to(TESTS):
            markers = {marker.name for marker in item.iter_markers()}
            folder = item.path.relative_to(TESTS).parts[0]
            if "smoke" not in markers and (folder not in QUICK_FOLDERS or markers & SLOW_MARKERS):
                item.add_marker(pytest.mark.full)
    # The longest tests first: then no worker is left with one of them at the end.
    items.sort(key=lambda item: "smoke" not in item.keywords)
