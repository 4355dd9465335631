"""Each case of a gate against a floor: facts for programs and for words."""

from typing import Literal

import msgspec

CaseState = Literal["reaches", "below", "open"]
"""The lower bound of a case reaches the floor, the case is below it with all cases counted (Holm), or neither."""


class JudgedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case, from its repeats alone."""

    case: str
    right: int
    of: int
    low: float  # bounds of the chance that k answers are right, each one-sided at alpha
    high: float
    state: CaseState
    p_below: float  # of the claim that it is below the floor, adjusted over the cases (Holm)
    share: float  # share of the noise of all cases
    old_right: int | None  # of the baseline
    old_of: int | None
    p_worse: float | None
    """Of the claim that it is right less often than with the baseline (Fisher's exact test), adjusted over the cases (Holm)."""


class GateCases(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gate --per-case`."""

    verdict: Literal["pass", "fail", "undecided"]
    """pass: every case reaches the floor; fail: at least one is below it, with all of them counted (Holm)."""
    exit_code: int
    headline: str
    on_undecided: Literal["pass", "fail", "wait"]
    benchmark: str
    candidate: str
    baseline: str | None
    floor: float
    k: int
    alpha: float
    answers: int  # the most answers of a case
    repeats_needed: int  # below so many repeats no case can reach the floor
    reached: int
    below: tuple[str, ...]  # the cases that the verdict counts as below
    open: int
    mean: float | None  # of the estimates C(right, k) / C(of, k), over the cases with k answers; None without any
    standard_error: float | None  # over cases
    worse: tuple[str, ...]  # the cases that are right less often than with the baseline; they do not change the verdict
    skipped: int  # answers without a score; they are omitted, and with one the gate does not pass
    conflicts: int  # answers that contradict an earlier one of the same run and repeat; the first counts
    equal_runs: bool  # whether files with equal contents count as runs of their own
    cases: tuple[JudgedCase, ...]
