"""What a caller may do: scopes such as `read`, `write:mmlu*` and `admin`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from schemas.records.names import MAX_NAME_LENGTH, name_fault

ADMIN: Final = "admin"
VERBS: Final = ("read", "write", "declare", "manage")
MAX_SCOPES: Final = 1_000

QUOTAS: Final = ("boards", "models", "items", "events")
"""What a quota bounds: boards that the scopes match, models and items of each, and events a second."""

_QUOTA: Final = "quota"
_MOST: Final = 1_000_000_000

SCOPE_HELP: Final = "read, read:GLOB, write:GLOB, declare:GLOB, manage:GLOB, quota:NAME=NUMBER or admin"


@dataclass(frozen=True)
class Glob:
    r"""A pattern of benchmark names: `*` matches any characters, everything else matches itself; `\*` is a star.

    Case counts, and nothing is normalized: a name that looks alike but has other characters does not match.

    >>> Glob.parse("mmlu*").matches("mmlu-pro"), Glob.parse("mmlu*").matches("MMLU-Pro"), Glob.parse("a[b]").matches("a[b]")
    (True, False, True)
    >>> Glob.parse(r"\*").matches("*"), Glob.parse(r"\*").matches("x"), Glob.parse("*a*a").matches("a")
    (True, False, False)
    """

    text: str
    parts: tuple[str, ...]  # the texts between the stars

    @classmethod
    def parse(cls, text: str) -> "Glob":
        """Parse a pattern."""
        fault = name_fault(text[:MAX_NAME_LENGTH])
        if fault or len(text) > 2 * MAX_NAME_LENGTH:
            raise ValueError(f"the pattern {fault or 'is too long'}")
        parts, characters = [""], iter(text)
        for character in characters:
            if character == "*":
                parts.append("")
            elif character == "\\":
                parts[-1] += next(characters, "\\")
            else:
                parts[-1] += character
        return cls(text, tuple(parts))

    def matches(self, name: str) -> bool:
        """Return whether a name matches; the time is linear in its length."""
        if len(self.parts) == 1:
            return name == self.parts[0]
        first, *middle, last = self.parts
        place, end = len(first), len(name) - len(last)
        if place > end or not name.startswith(first) or not name.endswith(last):
            return False
        for part in middle:
            at = name.find(part, place, end)
            if at < 0:
                return False
            place = at + len(part)
        return True


@dataclass(frozen=True)
class Grants:
    """The scopes of a caller.

    >>> grants = Grants.of(["read", "write:mmlu*"])
    >>> grants.may("read", "gsm8k"), grants.may("write", "mmlu-pro"), grants.may("write", "gsm8k"), grants.may("declare", "mmlu-pro")
    (True, True, False, False)
    >>> grants.reads_all, Grants.of(["read:open-*"]).reads_all, Grants.of(["admin"]).may("declare", "gsm8k")
    (True, False, True)
    >>> Grants.of(["write", "quota:boards=20", "quota:boards=30"]).quotas
    {'boards': 30}
    """

    scopes: tuple[str, ...]
    globs: dict[str, tuple[Glob, ...]]
    admin: bool
    quotas: dict[str, int]  # the most of each kind; a user of several groups has the largest of theirs

    @classmethod
    def of(cls, scopes: Iterable[str]) -> "Grants":
        """Parse scopes."""
        texts = tuple(dict.fromkeys(scopes))
        globs: dict[str, tuple[Glob, ...]] = {}
        quotas: dict[str, int] = {}
        for text in texts:
            verb, colon, pattern = text.partition(":")
            if text == ADMIN:
                continue
            if verb == _QUOTA:
                name, most = _quota(text, pattern)
                quotas[name] = max(most, quotas.get(name, 0))
                continue
            if verb not in VERBS or (colon and not pattern):
                raise ValueError(f"{text!r} is not a scope; use {SCOPE_HELP}")
            globs[verb] = (*globs.get(verb, ()), Glob.parse(pattern or "*"))
        return cls(texts, globs, ADMIN in texts, quotas)

    def __bool__(self) -> bool:
        """Return whether anything is allowed."""
        return self.admin or bool(self.globs)

    def may(self, verb: str, benchmark: str) -> bool:
        """Return whether the scopes allow to read, write, declare or manage a benchmark."""
        return self.admin or any(glob.matches(benchmark) for glob in self.globs.get(verb, ()))

    def may_any(self, verb: str) -> bool:
        """Return whether the scopes allow it for any benchmark."""
        return self.admin or verb in self.globs

    @property
    def reads_all(self) -> bool:
        """Whether every benchmark may be read."""
        return self.admin or any(not any(glob.parts) and len(glob.parts) > 1 for glob in self.globs.get("read", ()))


def _quota(text: str, pattern: str) -> tuple[str, int]:
    """Return the name and the number of a quota; raise `ValueError` if it is none."""
    name, _, number = pattern.partition("=")
    if name not in QUOTAS or not (number.isascii() and number.isdecimal()) or not 0 < int(number) <= _MOST:
        raise ValueError(f"{text!r} is not a quota; use quota:NAME=NUMBER, where NAME is one of {', '.join(QUOTAS)}")
    return name, int(number)


EVERYTHING: Final = Grants.of([ADMIN])
NOTHING: Final = Grants.of([])
