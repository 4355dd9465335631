"""What a name from outside may be: benchmarks, models, items and clusters are all held to the same rule."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

MAX_NAME_LENGTH: Final = 200

# Control characters, line and paragraph separators, bidirectional controls, and lone surrogates: each of them can make one name look
# like another, or break the terminal, the page or the file that shows it.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def name_fault(name: str) -> str | None:
    """Say what is wrong with a name, or return None.

    Parameters
    ----------
    name : str
        A benchmark, model, item or cluster name as it came from outside.

    Returns
    -------
    str or None
        A clause that completes "the name ...".

    Examples
    --------
    >>> name_fault("gpt-4o") is None
    True
    >>> name_fault("")
    'is empty'
    """
    if not name:
        return "is empty"
    if len(name) <= MAX_NAME_LENGTH and name.isprintable():
        return None  # most names: nothing that is forbidden is printable
    if len(name) > MAX_NAME_LENGTH:
        return f"has {len(name)} characters, more than {MAX_NAME_LENGTH}"
    found = _FORBIDDEN.search(name)
    if found:
        return f"holds the forbidden character U+{ord(found.group()):04X} at position {found.start()}"
    return None


def _check(name: str) -> str:
    fault = name_fault(name)
    if fault:
        raise ValueError(f"the name {fault}")
    return name


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
