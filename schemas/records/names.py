"""The rule for names from outside: benchmarks, models, items and clusters."""

import re
from collections.abc import Collection
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

MAX_NAME_LENGTH: Final = 200

# Control characters, line and paragraph separators, bidirectional controls and lone surrogates can make one name look like another, or
# break the terminal, page or file that shows it.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts names as people do: a number in a name counts as one.

    >>> sorted(["model 1000", "model 200", "model 03"], key=natural)
    ['model 03', 'model 200', 'model 1000']
    """
    parts = re.split("([0-9]+)", name)
    numbers = {k: part.lstrip("0") for k, part in enumerate(parts) if k % 2}
    return [(len(numbers[k]), numbers[k]) if k in numbers else (0, part) for k, part in enumerate(parts)], name


def name_fault(name: str) -> str | None:
    """Return what is wrong with a name, or None.

    >>> name_fault("gpt-4o") is None
    True
    >>> name_fault("")
    'is empty'
    """
    if not name:
        return "is empty"
    if len(name) <= MAX_NAME_LENGTH and name.isprintable():
        return None  # most names: no forbidden character is printable
    if len(name) > MAX_NAME_LENGTH:
        return f"has {len(name)} characters, more than {MAX_NAME_LENGTH}"
    forbidden = _FORBIDDEN.search(name)
    if forbidden:
        return f"holds the forbidden character U+{ord(forbidden.group()):04X} at position {forbidden.start()}"
    return None


def names_hold(names: Collection[str]) -> bool:
    """Return whether nothing is wrong with any of many names, in one pass; if not, `name_fault` may still accept each.

    >>> names_hold(["gpt-4o", "claude"]), names_hold(["gpt-4o", ""])
    (True, False)
    """
    return "".join(names).isprintable() and all(names) and max(map(len, names), default=0) <= MAX_NAME_LENGTH


def _check(name: str) -> str:
    fault = name_fault(name)
    if fault:
        raise ValueError(f"the name {fault}")
    return name


PRODUCER: Final = re.compile(r"(user:)?[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
"""The name of a producer, a token or a user: it needs no escape in JSON, headers and labels."""

Name = Annotated[
    str,
    Field(
        strict=True,
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        description="1-200 characters, no control or bidi characters",
    ),
    AfterValidator(_check),
]


MAX_INDEX: Final = 2**31 - 1  # largest repeat or epoch


Part = Literal[  # a part of a declaration that verdicts rest on; `declaration` is all of it
    "declaration",
    "order",
    "items",
    "item_ids",
    "family",
    "weights",
    "clusters",
    "scores",
    "repeats",
    "units",
    "missing",
    "nulls",
    "mixture",
    "alpha",
    "look",
    "known",
    "margin",
    "drift",
]
