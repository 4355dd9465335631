"""Names that differ by case, surrounding space, leading zeros, a decimal point or Unicode form alone: they stay apart, and are reported."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal
from weakref import WeakKeyDictionary

import numpy as np

from monitor.engine.state.rows import Rows
from monitor.view.board import BoardView
from schemas.records.scores import ABSENT
from schemas.results.report import AlikeNames, Apart, Rule

_ZEROS: Final = re.compile(r"(?<![\d.])0+(?=\d)")

_WHOLE: Final = re.compile(r"(?m)^([+-]?\d+)\.0+$")
_SPACE: Final = re.compile(r"(?m)^[^\S\n]+|[^\S\n]+$")

_RULES: Final[Mapping[Rule, Callable[[str], str]]] = {
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text),
    "case": str.casefold,
    "surrounding space": lambda text: _SPACE.sub("", text) if _may_have_space(text) else text,
    "decimal point": lambda text: _WHOLE.sub(r"\1", text) if ".0" in text else text,
    "leading zeros": lambda text: _ZEROS.sub("", text) if _may_have_zeros(text) else text,
}
"""How names may differ: what makes those alike, by rule, in the order in which the rules are applied. They take names of a line each."""

_known: Final[WeakKeyDictionary[object, tuple[int, list[list[int]]]]] = WeakKeyDictionary()
"""The groups of items of benchmarks, with the number of items: names are never changed, and a live board is reported often."""

_SHOWN: Final = 3  # groups of names that a report lists

_MOST_GROUPS: Final = 20_000  # groups of which it is looked at how they differ, and counted who has which


def _may_have_space(text: str) -> bool:
    """Return whether a name may begin or end with a space: the expression looks at every character."""
    return not text.isascii() or " \n" in text or "\n " in text or text[:1] == " " or text[-1:] == " "


def _may_have_zeros(text: str) -> bool:
    """Return whether a zero is ahead of a digit, and after neither a digit nor a point."""
    data = np.frombuffer(f"\n{text}\n".encode("utf-8", "replace"), np.uint8)
    digit = (data >= ord("0")) & (data <= ord("9"))
    first = (data[1:-1] == ord("0")) & ~digit[:-2] & (data[:-2] != ord(".")) & digit[2:]
    return bool(first.any())


def alike_names(benchmark: BoardView) -> list[AlikeNames]:
    """Return what is alike among the names of models, and among the ids of items; items of models that never meet come first."""
    # The benchmark is one of scores, or of battles; a suite has none, since its members report theirs.
    if benchmark.suite is not None:
        return []
    found = []
    keys = benchmark.item_keys
    items = keys.names if isinstance(keys, Rows) else [key.item for key in keys]
    known = _known.get(benchmark.origin)
    if known is None or known[0] != len(items):
        known = _known[benchmark.origin] = len(items), _groups(items)
    if groups := known[1]:
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


def _report(kind: Literal["item", "model"], groups: list[list[str]], apart: Apart | None) -> AlikeNames:
    found = {rule for group in groups[:_MOST_GROUPS] for other in group[1:] for rule in _rules_of(group[0], other)}
    rules = [rule for rule in _RULES if rule in found]
    return AlikeNames(kind=kind, groups=len(groups), rules=rules, names=groups[:_SHOWN], apart=apart)


def _rules_of(first: str, second: str) -> list[Rule]:
    """Return by what two names differ: one rule if it makes them equal, else every one that changes something between them."""
    for rule, apply in _RULES.items():
        if apply(first) == apply(second):
            return [rule]
    return [rule for rule, apply in _RULES.items() if (apply(first) != first) != (apply(second) != second)]


def _apart(benchmark: BoardView, groups: list[list[int]]) -> Apart | None:
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
