"""The simulator: runs that have failed, exact replay, and the patches of the planted bugs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.simulation.__main__ import explore
from tests.simulation.faults import Action
from tests.simulation.mutants import PATCHES, ROOT
from tests.simulation.mutants.__main__ import look_for
from tests.simulation.shrink import shrink
from tests.simulation.store import Damaged, Server
from tests.simulation.world import Result, World


@pytest.mark.smoke
def test_a_run_is_judged():
    """One short run with losses, damage, refusals, rebalances and verdict changes: the simulator itself still follows the product."""
    result = World(56).run()
    assert result.failure is None
    assert result.checks > 150
    assert result.published > 5
    assert result.refused > 0
    assert {"rebalance", "store_torn", "store_flipped", "store_flushed", "kill"} <= result.injected.keys()


@pytest.mark.parametrize(
    ("seed", "operated"),
    [(2, False), (118, False), (134, False), (2677, True)],
    ids=["kept-is-not-loaded", "deleted-when-up", "mark-lost", "deletion-lost"],
)
def test_a_seed_that_the_simulator_judged_wrong(seed, operated):
    """2: a partition that a rebalance leaves at its worker is not loaded. 118: nobody deletes the state of a server that is down.

    134: a server may lose the mark of a change that is published. 2677: it may lose that a state was deleted, which a worker has found
    missing, and refuses.
    """
    actions = [each for each in actions_then(seed, operated=operated) if operated or each.kind != "kill_publishing"]
    assert World(seed, actions, operated=operated).run().failure is None


def actions_then(seed, **options):
    """What a seed injected before runs lost everything that the server has."""
    return [each for each in World(seed, **options).actions if each.kind != "store_flushed"]


def test_a_reader_drops_what_it_read_before_it_loaded_the_state_again():
    """Its fold crashed on the first of several chunks, and the state that it loaded ended where the next one began: then it waited."""
    assert World(4035, actions_then(4035)).run().failure is None


def test_what_retention_takes_while_a_load_waits_for_the_store_is_not_another_topic():
    """The first offset had been asked for before the store was away; the last folded record was then missed, and the worker ended."""
    assert World(4242088, actions_then(4242088)).run().failure is None


def test_changes_that_a_load_finds_are_relayed():
    """A write was taken for refused and had landed: its change waited on the outbox until another one came."""
    actions = World(1000079).actions
    assert World(1000079, [actions[k] for k in (2, 6, 7, 8, 9)]).run().failure is None


def test_an_error_of_the_simulation_ends_the_run(monkeypatch):
    """A server that never starts again is not 150 s of patience."""

    def start(_):
        raise Damaged(7)

    monkeypatch.setattr(Server, "start", start)
    result = World(0, [Action(1.0, "store_killed", {"length": 0, "seconds": 0.1})]).run()
    assert "Damaged: 7" in result.failure
    assert result.seconds < 2


def test_exploring_ends_at_a_failure_and_passes_over_crashes_if_asked_to(monkeypatch, capsys):
    def run(world):
        return (
            Result(world.seed, [], "wrong", judged=world.seed == 2, injected={"kill": 1})
            if world.seed
            else Result(0, [])
        )

    monkeypatch.setattr(World, "run", run)
    assert explore(0, 20, whole=True) == 1
    assert "seed 1 crashes: wrong" in capsys.readouterr().out
    assert explore(0, 20, whole=True, judged=True) == 1
    printed = capsys.readouterr().out
    assert "seed 2 fails: wrong" in printed
    assert "1 runs crashed" in printed


def test_a_replay_is_exact():
    """In another process, whose sets are in another order."""
    code = "from tests.simulation.world import Result, World; print(World(2).run().digest)"
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
