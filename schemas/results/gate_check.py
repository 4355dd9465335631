"""What a gate can know before it runs: facts for programs and for words."""

from typing import Literal, NamedTuple

import msgspec

from schemas.results.gate import Rule

Attainable = Literal["possible", "only_wins", "impossible"]
"""Whether equal answers pass, only a better candidate does, or no outcome does."""

Source = Literal["noise", "models", "assumed"]
"""Where a discordance comes from: runs of the baseline, the other models of the files, or nothing."""


class Attained(NamedTuple):
    """What so many items can show, and from how many on equal answers pass; None: from no number on."""

    code: Attainable
    items: int
    equal_items: int | None


class FlakyCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that scores differently from run to run while nothing changes."""

    case: str
    right: float  # sum of its scores
    of: int
    flakiness: float  # 4 p (1 - p): 1 where it is right in half of the answers
    share: float  # share of the noise of the gate


class EqualItems(msgspec.Struct, frozen=True, kw_only=True):
    """From how many items on equal answers pass, by margin."""

    margin: float
    items: int


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """How often a gate with so many items passes and fails."""

    items: int
    discordance: float
    source: Source
    equal_passed: float
    equal_failed: float
    worse_passed: float  # of candidates that are worse by exactly the margin: the false passes
    worse_failed: float


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """How often an unchanged model is red where a gate compares means."""

    variance: float  # mean variance of one answer around the rate of its case
    answers: int  # how many answers show it
    red: float
    disagree: float  # how often two runs of the gate differ
    level: float
    answers_needed: float | None  # cases times repeats from which on red is at most `level`; None: no number suffices
    repeats_needed: float | None  # the same, for the items of the gate
    items_needed: float | None  # the same, for its repeats


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate can know before any money is spent."""

    benchmark: str | None
    baseline: str | None
    items: int | None
    repeats: int
    rule: Rule  # bets where scores of items lie between 0 and 1, as means of repeats do
    mean: float | None  # score of the baseline
    margin: float
    alpha: float
    attainable: Attainable | None  # none where the number of items is not known
    equal_items: int  # items from which on equal answers pass
    equal_items_once: int | None  # the same with one repeat; None where that is what the gate has
    best_items: int  # items from which on a candidate passes that is right everywhere
    least_margin: float | None  # the margin, in whole points, at which equal answers pass with these items
    losses_needed: int | None  # items that the baseline alone has right below which no outcome fails; None with bets
    margins: tuple[EqualItems, ...]
    flips: Flips | None  # none where no case was run twice
    shown: tuple[Shown, ...]
    flaky: tuple[FlakyCase, ...]

    @property
    def exit_code(self) -> int:
        """2 where equal answers cannot pass, else 0."""
        return 0 if self.attainable in {None, "possible"} else 2
