"""Suites: benchmarks that are reported together as one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal

from schemas.records.names import name_fault
from schemas.records.text import shorten

FORM: Final = "NAME=A,B,C"  # how a suite is written in one line

MOST_MEMBERS: Final = 1_000  # as many as a benchmark may have clusters with weights

_MOST_WEIGHT: Final = 1e9


Missing = Literal["unranked", "worst"]
"""What a model is that has no score in some member: listed and not ranked, or ranked by 0 in it."""


@dataclass(frozen=True)
class Member:
    """What a benchmark counts in a suite."""

    weight: float = 1.0  # positive; the weights of a suite are divided by their sum
    # score of a guess, from 0 to less than 1: the score x counts as (x - baseline) / (1 - baseline)
    baseline: float = 0.0


@dataclass(frozen=True)
class Suite:
    """The name of a suite, and what each of its members counts."""

    name: str
    members: Mapping[str, Member]
    missing: Missing = "unranked"
    distinct: bool = False  # whether items of the same id in two members are declared to be different ones

    @property
    def gap_weights(self) -> dict[str, float]:
        """What a gap in each member adds to the gap of the suite, relative to each other: weight / (1 - baseline)."""
        return {name: each.weight / (1 - each.baseline) for name, each in self.members.items()}


def split_suites(texts: Sequence[str]) -> dict[str, list[str]]:
    """Split suites written as NAME=A,B,C into names and members.

    >>> split_suites(["overall=gsm8k,arc:2~0.25"])
    {'overall': ['gsm8k', 'arc:2~0.25']}
    """
    entries: dict[str, list[str]] = {}
    for text in texts:
        name, equals, members = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{shorten(text)}: give a name and its benchmarks, as {FORM}")
        if name.strip() in entries:
            raise ValueError(f"{shorten(name.strip())}: the suite is given twice; choose another name")
        entries[name.strip()] = [each for each in map(str.strip, members.split(",")) if each]
    return entries


def parse_suites(
    entries: Mapping[str, Sequence[str]],
    known: Collection[str] = (),
    missing: Missing = "unranked",
    *,
    distinct: bool = False,
) -> list[Suite]:
    """Parse suites: for each name its members, MEMBER, MEMBER:WEIGHT, MEMBER~BASELINE or MEMBER:WEIGHT~BASELINE.

    >>> parse_suites({"overall": ["gsm8k", "arc:2~0.25"]})[0].gap_weights
    {'gsm8k': 1.0, 'arc': 2.6666666666666665}
    """
    suites = []
    for name, texts in entries.items():
        if (fault := name_fault(name)) is not None:
            raise ValueError(f"{shorten(name)}: the name {fault}")
        members: dict[str, Member] = {}
        for text in texts:
            try:
                member, counts = _member(text, known)
            except ValueError as error:
                raise ValueError(f"{shorten(name)}: {error}") from None
            if member in entries:
                what = "itself" if member == name else f"the suite {shorten(member)}"
                raise ValueError(f"{shorten(name)}: it holds {what}; the members of a suite are benchmarks")
            if member in members:
                raise ValueError(f"{shorten(name)}: {shorten(member)} is given twice; give each benchmark once")
            members[member] = counts
        if len(members) < 2:
            raise ValueError(f"{shorten(name)}: a suite has at least 2 benchmarks; give them as {FORM}")
        if len(members) > MOST_MEMBERS:
            raise ValueError(f"{shorten(name)}: {len(members):,} members are too many; give at most {MOST_MEMBERS:,}")
        suites.append(Suite(name, members, missing, distinct))
    return suites


def _member(text: str, known: Collection[str]) -> tuple[str, Member]:
    """Return a benchmark and what it counts; a suffix that is no number belongs to its name."""
    name, weight, baseline = text, 1.0, 0.0
    if name not in known:
        name, baseline = _suffix(name, "~", baseline)
    if name not in known:
        name, weight = _suffix(name, ":", weight)
    if (fault := name_fault(name)) is not None:
        raise ValueError(f"{shorten(text)}: the name of the benchmark {fault}")
    if not isfinite(weight) or not 0 < weight <= _MOST_WEIGHT:
        raise ValueError(f"{shorten(text)}: {weight:g} is not a positive weight; give one above 0, as BENCHMARK:WEIGHT")
    if not 0 <= baseline < 1:
        raise ValueError(
            f"{shorten(text)}: {baseline:g} is not a baseline; give a score from 0 to less than 1, as BENCHMARK~BASELINE"
        )
    return name, Member(weight, baseline)


def _suffix(text: str, mark: str, default: float) -> tuple[str, float]:
    """Split a number off the end of a text; the text and the default where there is none."""
    name, found, number = text.rpartition(mark)
    try:
        return (name, float(number)) if found else (text, default)
    except ValueError:
        return text, default
