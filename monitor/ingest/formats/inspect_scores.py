"""The scores of Inspect's scorers as numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from monitor.ingest.files.translated import Refusal
from monitor.ingest.formats.choices import Choices
from schemas.decode import Fault
from schemas.text import shorten

LETTERS: Final[Mapping[str, float]] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partly correct, no answer: as Inspect itself counts them."""

_WORDS: Final[Mapping[str, float]] = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class Scored(Protocol):
    """A sample with scores."""

    @property
    def all_scores(self) -> dict[str, Any]:
        """The values by scorer."""
        ...


class Scorer:
    """The scorer that counts.

    Attributes
    ----------
    told : str
        Which one it is, and what else there is.
    """

    def __init__(self, name: str, key: str | None, others: Iterable[str], benchmark: str) -> None:
        self._name, self._key, self._benchmark = name, key, benchmark
        self._label = name if key is None else f"{name}.{key}"
        also = ", ".join(shorten(other) for other in others if other != self._label)
        self.told = f"scorer {shorten(self._label)}" + (f" (also there: {also})" if also else "")

    def value(self, scores: Mapping[str, Any]) -> float | Fault | None:
        """Return the score of a sample as a number in [0, 1]; None (or NaN) if it has none."""
        value = scores.get(self._name)
        if self._key is not None:
            value = value.get(self._key) if isinstance(value, dict) else None
        if value is None:
            return None
        number = as_number(value)
        if number is None:
            reason = "a score is a number, one of C, I, P and N, or yes or no: choose another with --scorer"
            return Fault(shorten(self._label), shorten(value), reason, self._benchmark)
        if not math.isnan(number) and not 0 <= number <= 1:
            reason = "a score lies in [0, 1]: choose another with --scorer, or rescale it where it is made"
            return Fault(shorten(self._label), shorten(value), reason, self._benchmark)
        return number


def as_number(value: object) -> float | None:
    """Return a value as Inspect counts it, or None if it is no number.

    Examples
    --------
    >>> [as_number(value) for value in ("C", "P", True, "0.25", 0.75, "maybe", [1])]
    [1.0, 0.5, 1.0, 0.25, 0.75, None, None]
    """
    if isinstance(value, bool | int | float):
        return (
            float(value) if isinstance(value, float) or 0 <= value <= 1 else math.inf
        )  # an integer may be too large for a float
    if not isinstance(value, str):
        return None
    known = LETTERS.get(value, _WORDS.get(value.lower()))
    if known is not None:
        return known
    try:
        return float(value)
    except ValueError:
        return None


def choose_scorer(
    task: str, order: Sequence[str], scored: Sequence[Scored], choices: Choices, benchmark: str
) -> Scorer:
    """Choose the scorer: the one that was asked for, else the first with one value a sample.

    Raises
    ------
    Refusal
        If there is no such scorer.
    """
    first = scored[0].all_scores
    names = [name for name in order if name in first] + [name for name in first if name not in order]
    labels = [label for name in names for label in _labels(name, first[name])]
    there = ", ".join(map(shorten, labels)) or "none"
    wanted = choices.scorer.of(task)
    if wanted is None:
        single = next((name for name in names if not isinstance(first[name], dict | list)), None)
        if single is None:
            reason = f"choose one value with --scorer {task}=SCORER.KEY; there are {there}"
            raise Refusal("scorer", "only scorers with several values", reason, benchmark)
        return Scorer(single, None, labels, benchmark)
    if wanted in first and not isinstance(first[wanted], dict):
        return Scorer(wanted, None, labels, benchmark)
    name, _, key = wanted.rpartition(".")
    if wanted in labels and name in first:
        return Scorer(name, key, labels, benchmark)
    raise Refusal(
        "scorer",
        f"no scorer {shorten(wanted)} with one value",
        f"there are {there}: say --scorer {task}=SCORER",
        benchmark,
    )


def _labels(name: str, value: object) -> list[str]:
    return [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
