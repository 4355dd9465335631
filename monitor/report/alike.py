"""Names that differ by case, surrounding space, leading zeros, a decimal point or Unicode form alone: they stay apart, and are reported."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import ABSENT
from schemas.results.report import AlikeNames, Apart, Rule

_ZEROS: Final = re.compile(r"(?<![\d.])0+(?=\d)")
_WHOLE: Final = re.compile(r"(?m)^([+-]?\d+)\.0+$")
_SPACE: Final = re.compile(r"(?m)^[^\S\n]+|[^\S\n]+$")

_RULES: Final[Mapping[Rule, Callable[[str], str]]] = {
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text),
    "case": str.casefold,
    "surrounding space": lambda text: _SPACE.sub("", text),
    "decimal point": lambda text: _WHOLE.sub(r"\1", text),
    "leading zeros": lambda text: _ZEROS.sub("", text),
}
"""How names may differ: what makes those alike, by rule, in the order in which the rules are applied. They take names of a line each."""

_SHOWN: Final = 3
"""Groups of names that a report lists."""

_MOST_GROUPS: Final = 20_000
"""Groups of items of which it is counted who has which."""


def alike_names(benchmark: Benchmark) -> list[AlikeNames]:
    """Return what is alike among the names of models, and among those of items; items of models that never meet come first.

    The benchmark is one of scores, or of battles; a suite has none, since its members report theirs.
    """
    if benchmark.suite is not None:
        return []
    found = []
    items = [key.item for key in benchmark.item_keys]
    if groups := _groups(items):
        apart = None if benchmark.battles is not None else _apart(benchmark, groups)
        found.append(_report("item", [[items[k] for k in group] for group in groups], apart))
    models = list(dict.fromkeys(each.model for each in benchmark.contestants))
    if groups := _groups(models):
        found.append(_report("model", [[models[k] for k in group] for group in groups], None))
    return sorted(found, key=lambda each: each.apart is None)


def _plain(names: Sequence[str]) -> list[str]:
    """Return names without what they may differ by."""
    text = "\n".join(names)
    for rule, apply in _RULES.items():
        if rule != "Unicode form" or not text.isascii():
            text = apply(text)
    return text.split("\n")


def _groups(names: Sequence[str]) -> list[list[int]]:
    """Return the places of names that are alike, a list for each group."""
    plain = _plain(names)
    if len(plain) != len(names) or len(set(plain)) == len(names):
        return []
    places: dict[str, list[int]] = {}
    for place, name in enumerate(plain):
        places.setdefault(name, []).append(place)
    return [group for group in places.values() if len(group) > 1]


def _report(kind: str, groups: list[list[str]], apart: Apart | None) -> AlikeNames:
    rules = [
        rule for rule in _RULES if any(rule in _rules_of(group[0], other) for group in groups for other in group[1:])
    ]
    return AlikeNames(kind=kind, groups=len(groups), rules=rules, names=groups[:_SHOWN], apart=apart)  # type: ignore[arg-type]


def _rules_of(first: str, second: str) -> list[Rule]:
    """Return by what two names differ: one rule if it makes them equal, else every one that changes something between them."""
    for rule, apply in _RULES.items():
        if apply(first) == apply(second):
            return [rule]
    return [rule for rule, apply in _RULES.items() if (apply(first) != first) != (apply(second) != second)]


def _apart(benchmark: Benchmark, groups: list[list[int]]) -> Apart | None:
    """Return the two models that would share the most items more if alike names were one item; None if none would share more."""
    groups = groups[:_MOST_GROUPS]
    newest = np.flatnonzero([not old for old in benchmark.superseded])
    present = benchmark.item_codes()[:, newest] != ABSENT
    rows = np.array([k for group in groups for k in group])
    starts = np.cumsum([0, *map(len, groups[:-1])])
    in_groups = np.logical_or.reduceat(present[rows], starts, axis=0).astype(np.float32)
    would = in_groups.T @ in_groups
    each = present[rows].astype(np.float32)
    gained = np.triu(would - each.T @ each, 1)
    i, j = np.unravel_index(int(gained.argmax()), gained.shape) if gained.size else (0, 0)
    if not gained.size or gained[i, j] <= 0:
        return None
    shared = int(np.count_nonzero(present[:, i] & present[:, j]))
    names = [benchmark.contestants[int(newest[k])].model for k in (i, j)]
    return Apart(model_a=names[0], model_b=names[1], shared=shared, would_share=shared + int(gained[i, j]))
