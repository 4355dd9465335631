"""Reasons of verdicts as facts: codes with their numbers and names. The package `monitor.words` makes them sentences."""

from enum import StrEnum
from typing import Any, Literal

Fact = dict[str, Any]  # a code, and the numbers and names that go with it; `because` has the reasons of a reason


class Reason(StrEnum):
    """The codes of reasons, by what they are about."""

    # Why no anytime verdict is given, or none any more.
    OTHER_ITEMS = "other_items"
    OFF_SCALE = "off_scale"
    INCOMPLETE_FILE = "incomplete_file"
    REFUSED_FILES = "refused_files"
    UNREAD_ITEMS = "unread_items"
    NO_ORDER = "no_order"
    NO_BATTLE_ORDER = "no_battle_order"
    NO_SUITE_ORDER = "no_suite_order"
    SHARED_ITEM = "shared_item"
    MEMBER_UNSCORED = "member_unscored"
    MEMBER_ORDER = "member_order"
    MEMBER_HELD = "member_held"
    MIXED_POLICIES = "mixed_policies"
    SAME_SEED = "same_seed"
    SUITE_TOO_LARGE = "suite_too_large"
    UNDECLARED = "undeclared"
    ORDER_REFUTED = "order_refuted"
    TOO_MANY_ITEMS = "too_many_items"
    TOO_MANY_OF_CLUSTER = "too_many_of_cluster"
    MIXED_SCORES = "mixed_scores"
    # What a report assumes besides, and what its scores are.
    ASSERTED = "asserted"
    FILES_COMPLETE = "files_complete"
    UNITS = "units"
    REPEATS = "repeats"
    UNUSED_POLICY = "unused_policy"
    LEAD_UNSETTLED = "lead_unsettled"
    SUSPECT_ORDER = "suspect_order"
    # Records that are missing, or may be.
    LOST_RECORDS = "lost_records"
    QUARANTINED = "quarantined"
    # Why a pair has no place in its family.
    NOT_IN_FAMILY = "not_in_family"
    NOT_DECLARED = "not_declared"
    HELD_AT_FIRST = "held_at_first"
    FAMILY_FULL = "family_full"
    NO_SUITE_FAMILY = "no_suite_family"
    SUITE_BEYOND_FAMILY = "suite_beyond_family"
    # Why a pair has its status.
    NOTHING_SHARED = "nothing_shared"
    NOT_MET = "not_met"
    SUPERSEDED = "superseded"
    SCORED_AGAIN = "scored_again"
    DECLARED_AGAIN = "declared_again"
    DECIDED = "decided"
    GAP_TURNED = "gap_turned"
    GAP_TURNED_BACK = "gap_turned_back"
    PAIR_ONLY = "pair_only"
    NOT_FAMILY_WISE = "not_family_wise"
    INVALIDATED = "invalidated"
    HELD = "held"
    EQUIVALENT = "equivalent"
    EXHAUSTED = "exhausted"
    DECIDED_IF_IGNORED = "decided_if_ignored"
    MISSING_ITEMS = "missing_items"
    TOO_LITTLE_EVIDENCE = "too_little_evidence"
    OUTSIDE_FAMILY = "outside_family"
    RULED_OUT = "ruled_out"
    INFORMATIVE = "informative"
    NEEDS_ITEMS = "needs_items"
    NEVER = "never"
    CHANCE = "chance"
    ASSUMES = "assumes"
    OTHER_LEADER = "other_leader"
    # Why to read clustered results with care.
    ONE_CLUSTER = "one_cluster"
    TOO_MANY_CLUSTERS = "too_many_clusters"
    FEW_CLUSTERS = "few_clusters"
    UNLABELLED = "unlabelled"
    # The result of a benchmark in one line.
    BEST = "best"
    BEST_BUT = "best_but"
    FIRST_OPEN = "first_open"
    FIRST_TIE = "first_tie"
    TWO_MODELS = "two_models"
    TWO_COUNTS = "two_counts"
    HELD_RESULT = "held_result"
    STEPS = "steps"
    WOULD_CHANGE = "would_change"
    CLOSEST_TIE = "closest_tie"
    WOULD_DECIDE = "would_decide"
    FOUND_HERE = "found_here"
    GAP_NEEDS = "gap_needs"
    # The result of a benchmark.
    LEADS = "leads"
    TRAILS = "trails"
    EQUAL = "equal"
    LEAD_OPEN = "lead_open"
    RATED = "rated"
    NO_VERDICT = "no_verdict"
    NEIGHBOURS = "neighbours"
    NO_FURTHER_VERDICT = "no_further_verdict"
    ENOUGH_ITEMS = "enough_items"
    # What a gate with a margin answers.
    NO_SHARED_ITEMS = "no_shared_items"
    NOT_WORSE = "not_worse"
    WORSE = "worse"
    NOT_WITHIN_MARGIN = "not_within_margin"
    TAKES_ITEMS = "takes_items"
    ONLY_WINS = "only_wins"
    OUT_OF_REACH = "out_of_reach"
    CERTAIN = "certain"
    UNCERTAIN = "uncertain"
    NOT_EVALUATED = "not_evaluated"
    NOT_WORSE_IN_FAMILY = "not_worse_in_family"
    WORSE_IN_FAMILY = "worse_in_family"
    OPEN_IN_FAMILY = "open_in_family"
    RERUN_AGREES = "rerun_agrees"
    RERUN_DIFFERS = "rerun_differs"
    # What people prefer of a pair that a judge compared.
    LABELS_AGREE = "labels_agree"
    LABELS_UNSUPPORTED = "labels_unsupported"
    LABELS_CONTRADICT = "labels_contradict"
    LABELS_DECIDE = "labels_decide"
    LABELS_OPEN = "labels_open"
    LABELS_GATE = "labels_gate"
    # The goal of a benchmark.
    GOAL_WAITS = "goal_waits"
    GOAL_OF_STRANGER = "goal_of_stranger"
    GOAL_MET = "goal_met"
    GOAL_OPEN = "goal_open"
    GOAL_IMPOSSIBLE = "goal_impossible"
    OUTSIDE_GOAL = "outside_goal"
    VERIFIED = "verified"
    NOT_VERIFIED = "not_verified"
    NOT_LOOKED_AT = "not_looked_at"


def fact(code: Reason, **values: Any) -> Fact:  # noqa: ANN401 - numbers, names, and lists of them
    """Return a fact.

    >>> fact(Reason.MISSING_ITEMS, missing=12)
    {'code': 'missing_items', 'missing': 12}
    """
    return {"code": code.value, **values}


def has(facts: list[Fact], *codes: Reason) -> bool:
    """Return whether one of some facts has one of some codes."""
    return any(each["code"] in codes for each in facts)


def without(facts: list[Fact], *codes: Reason) -> list[Fact]:
    """Return the facts that have other codes."""
    return [each for each in facts if each["code"] not in codes]


DriftKind = Literal["drift.worse", "drift.better", "drift.judge", "drift.held"]  # what a monitor reports


Side = Literal["a", "b"]
Outcome = Literal["a", "b", "tie"]
