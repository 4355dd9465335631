"""Choose a scorer of an Inspect log, and read its scores as numbers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from monitor.files.formats.choices import Choices
from monitor.files.streams.regular import Refusal
from schemas.records.decode import OUT_OF_RANGE, above_scale
from schemas.records.lenient import read_score
from schemas.records.text import Fault, shorten

LETTERS: Final[Mapping[str, float]] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partly correct, no answer, with the values that Inspect gives them."""

_WORDS: Final[Mapping[str, float]] = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class Scorer:
    """The scorer that counts."""

    def __init__(
        self, name: str, key: str | None, others: Iterable[str], benchmark: str, scaled: Callable[[object], object]
    ) -> None:
        self._name, self._key, self._benchmark, self._scaled = name, key, benchmark, scaled
        self.label = name if key is None else f"{name}.{key}"
        also = ", ".join(shorten(other) for other in others if other != self.label)
        self.description = f"scorer {shorten(self.label)}" + (f" (also available: {also})" if also else "")

    def value(self, scores: Mapping[str, Any]) -> float | Fault | None:
        """Return the score of a sample as a number in [0, 1]; None (or NaN) if it has none."""
        value = scores.get(self._name)
        if self._key is not None:
            value = value.get(self._key) if isinstance(value, dict) else None
        if value is None:
            return None
        number = as_number(self._scaled(read_score(value)))
        if number is None:
            return self._fault(value, "is not a score; use a number, C, I, P, N, yes or no, or another --scorer")
        if not math.isnan(number) and not 0 <= number <= 1:
            fault = self._fault(value, f"{OUT_OF_RANGE}; use another --scorer, or give the largest score with --scale")
            return fault._replace(above=above_scale(self._scaled(read_score(value))))
        return number

    def _fault(self, value: object, problem: str) -> Fault:
        found = shorten(value)
        return Fault(shorten(self.label), found, f"{found} {problem}", self._benchmark)


def as_number(value: object) -> float | None:
    """Return a value as Inspect counts it, or None if it is not a number.

    >>> [as_number(value) for value in ("C", "P", True, "0.25", 0.75, "maybe", [1])]
    [1.0, 0.5, 1.0, 0.25, 0.75, None, None]
    """
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value) if 0 <= value <= 1 else math.inf  # an integer may be too large for a float
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
    task: str, order: Sequence[str], scores: Mapping[str, Any], choices: Choices, benchmark: str, known: str | None
) -> Scorer:
    """Return the chosen scorer, else that of an earlier file, else the first with one value a sample."""
    names = [name for name in order if name in scores] + [name for name in scores if name not in order]
    labels = [label for name in names for label in _labels(name, scores[name])]
    choose = f"choose one of {', '.join(map(shorten, labels)) or 'none'} with --scorer {task}=SCORER"
    wanted = choices.scorer.of(task) or known
    scaled = partial(_on_scale, choices, benchmark)
    if wanted is None:
        single = next((name for name in names if not isinstance(scores[name], dict | list)), None)
        if single is None:
            raise Refusal("scorer", "several values", f"every scorer gives several values; {choose}", benchmark)
        return Scorer(single, None, labels, benchmark, scaled)
    if wanted in scores and not isinstance(scores[wanted], dict):
        return Scorer(wanted, None, labels, benchmark, scaled)
    name, _, key = wanted.rpartition(".")
    if wanted in labels and name in scores:
        return Scorer(name, key, labels, benchmark, scaled)
    found = shorten(wanted)
    raise Refusal("scorer", found, f"there is no scorer {found} with one value; {choose}", benchmark)


def _on_scale(choices: Choices, benchmark: str, value: object) -> object:
    return choices.scaled(value, benchmark)


def _labels(name: str, value: object) -> list[str]:
    return [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
