"""What a gate would have answered on past runs: facts for programs and for words."""

from typing import NamedTuple

import msgspec

from schemas.results.gate import GateVerdict


class Verdicts(NamedTuple):
    """How often each verdict came."""

    passed: int
    failed: int
    undecided: int


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One past run of a candidate and the baseline."""

    run: str
    candidate: str
    items: int
    gap: float
    full: GateVerdict  # of all items at one look
    exact_agrees: int  # orders in which the exact gate gives the verdict of the full run
    exact_items: float  # mean number of items after which it is certain
    statistical: Verdicts  # of evidence counted along each committed order
    statistical_items: float


class Costs(NamedTuple):
    """What the candidates of all runs would have cost under each gate, at a price an item."""

    full: float
    exact: float
    statistical: float


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A gate replayed on an archive."""

    benchmark: str
    baseline: str
    margin: float
    alpha: float
    orders: int
    runs: tuple[ReplayedRun, ...]
    equal_pairs: int  # pairs of runs of the baseline that came one after the other, and differ
    equal: Verdicts  # the verdicts of the gate on them
    equal_red: int  # how many of them are red where means are compared
    costs: Costs | None = None  # none without prices
    equal_runs: bool = False  # whether files with equal contents count as runs of their own
