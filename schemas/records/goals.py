"""The goal of an evaluation: the question about a benchmark that its results are meant to answer."""

import csv
import re
from dataclasses import dataclass
from typing import Final, Literal

GoalKind = Literal["ranking", "top", "pair", "model"]

GOAL_FORMS: Final = "best, top:K, ranking, pair:A,B or model:M"  # the forms of a goal, for messages

_STARTS: Final = r"(?:ranking|best)(?:,|$)|(?:top|pair|model):"
_START: Final = re.compile(_STARTS)
_NAMED: Final = re.compile(rf"(.*?)=(?={_STARTS})", re.DOTALL)
LEAST_MARGIN: Final = 1e-6
"""Smallest margin: no benchmark has enough items for a smaller gap, and intervals have no digits for it."""

_OPTION: Final = re.compile(r"\s*(margin|width)\s*=\s*(\S+)\s*")


@dataclass(frozen=True)
class Goal:
    """A goal."""

    # the order of all models; the set of the best `size` models; which of two `models` is better; the rank of one of `models`
    kind: GoalKind
    size: int = 1  # models of the set of `top`; ranks that the rank range of `model` may hold; else 1
    models: tuple[str, ...] = ()
    margin: float | None = None  # gap up to which the order of two models does not matter, in score units

    @property
    def text(self) -> str:
        """The goal as it is written in a declaration."""
        head = {
            "ranking": "ranking",
            "top": "best" if self.size == 1 else f"top:{self.size}",
            "pair": "pair:" + ",".join(map(_quoted, self.models)),
            "model": "model:" + ",".join(map(_quoted, self.models)),
        }[self.kind]
        width = f",width={self.size}" if self.kind == "model" and self.size > 1 else ""
        return f"{head}{width}{'' if self.margin is None else f',margin={self.margin:g}'}"


def parse_goal(text: str) -> Goal:
    """Parse a goal; a ValueError names what is wrong and what to write.

    >>> parse_goal("top:3,margin=0.01")
    Goal(kind='top', size=3, models=(), margin=0.01)
    >>> parse_goal("top:1").text, parse_goal('pair:"a,b",c').models, parse_goal("model:a:b,width=2").text
    ('best', ('a,b', 'c'), 'model:a:b,width=2')
    """
    if not _START.match(text):
        raise ValueError(
            f"the goal {text!r} is unknown; use {GOAL_FORMS}, each with ,margin=X if small gaps do not matter"
        )
    kind, _, rest = re.sub(r"^(ranking|best)", r"\1:", text).partition(":")
    parts, options = _split(rest, text)
    margin = None if "margin" not in options else _margin(options["margin"], text)
    if "width" in options and kind != "model":
        raise ValueError(f"the goal {text!r} has a width, which only model:M takes; omit it")
    if kind == "top":
        return Goal("top", _count(",".join(parts), text, "top:K needs a number of models K from 1"), margin=margin)
    if kind in {"pair", "model"}:
        width = _count(options.get("width", "1"), text, "the width is a number of ranks from 1")
        return Goal("pair" if kind == "pair" else "model", width, _models(kind, parts, text), margin)
    if more := next(filter(None, parts), None):
        raise ValueError(f"the goal {text!r} goes on with {more!r}; use {GOAL_FORMS}")
    return Goal("ranking" if kind == "ranking" else "top", margin=margin)


def named_goal(entry: str) -> tuple[str, str, str]:
    """Split VALUE or NAME=VALUE of a flag into the name, the equals sign and the goal.

    >>> named_goal("mmlu=top:3,margin=0.01"), named_goal("best,margin=0.01")
    (('mmlu', '=', 'top:3,margin=0.01'), ('', '', 'best,margin=0.01'))
    """
    if _START.match(entry):
        return "", "", entry
    head = _NAMED.match(entry)
    return ("", "", entry) if head is None else (head[1], "=", entry[head.end() :])


def checked_goal(value: object) -> object:
    """Return a declared goal in the one form in which it is stored."""
    return parse_goal(value).text if isinstance(value, str) else value


def _split(text: str, whole: str) -> tuple[list[str], dict[str, str]]:
    """Split what follows the kind of a goal into its parts between commas and the options after them."""
    try:
        parts = [part.strip() for part in next(csv.reader([text], skipinitialspace=True, strict=True), [])]
    except csv.Error:
        raise ValueError(f"the goal {whole!r} has a quote that does not end; close it") from None
    options: dict[str, str] = {}
    while parts and (option := _OPTION.fullmatch(parts[-1])):
        if option[1] in options:
            raise ValueError(f"the goal {whole!r} gives {option[1]} twice; give it once")
        options[option[1]] = option[2]
        parts.pop()
    return parts, options


def _models(kind: str, parts: list[str], whole: str) -> tuple[str, ...]:
    """Return the models of a goal that names one or two."""
    count = 2 if kind == "pair" else 1
    if len(parts) != count or not all(parts) or len(set(parts)) != count:
        form = "two models; use pair:A,B" if kind == "pair" else "one model; use model:M"
        raise ValueError(f'the goal {whole!r} does not name {form}, with "..." around a name that holds a comma')
    return tuple(parts)


def _count(text: str, whole: str, advice: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= len(text) <= 9 or int(text) < 1:
        raise ValueError(f"the goal {whole!r} has no valid number: {advice}")
    return int(text)


def _margin(text: str, whole: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = 0.0
    if not LEAST_MARGIN <= margin < 1:
        raise ValueError(
            f"the goal {whole!r} has the margin {text}; use a gap from {LEAST_MARGIN} to below 1, in score units"
        )
    return margin


def _quoted(name: str) -> str:
    """Return a model name as `_split` reads it back."""
    if {",", '"'} & set(name) or name != name.strip() or _OPTION.fullmatch(name):
        return '"' + name.replace('"', '""') + '"'
    return name
