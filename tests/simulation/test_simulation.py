"""A slice of the simulation, exact replay, and the patches of the planted bugs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.simulation.__main__ import explore
from tests.simulation.mutants import PATCHES, ROOT
from tests.simulation.mutants.__main__ import look_for
from tests.simulation.shrink import shrink
from tests.simulation.world import World

SECONDS = float(os.environ.get("RANKWATCH_SIMULATION", "30"))
SEED = int(os.environ.get("RANKWATCH_SEED", "1000000"))


def test_a_slice_finds_nothing():
    assert explore(SEED, SECONDS) == 0


def test_a_replay_is_exact():
    """In another process, whose sets are in another order."""
    code = "from tests.simulation.world import World; print(World(2).run().digest)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert run.stdout.strip() == World(2).run().digest


def test_shrinking_leaves_what_is_needed():
    assert shrink(range(100), lambda some: {13, 77} <= set(some)) == [13, 77]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_planted_bugs_apply(patch):
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, check=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_planted_bug_is_found():
    (patch,) = (patch for patch in PATCHES if patch.stem == "dead-letters-after-commit")
    assert look_for(patch, seed=0, seconds=20)[2]
