"""Find JavaScript that reads a sentence; see `tests.sentence_reads`. Its tokens are enough: operators, calls, and the names before them."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from tests.sentence_reads import Read, is_sentence

_METHODS: Final = frozenset(
    [
        "includes",
        "startsWith",
        "endsWith",
        "indexOf",
        "lastIndexOf",
        "match",
        "matchAll",
        "replace",
        "replaceAll",
        "split",
        "search",
        "test",
        "exec",
        "localeCompare",
    ]
)
_CUTS: Final = frozenset(["slice", "substring", "substr", "at", "charAt"])
"""Methods that read a sentence only where it is theirs."""
_LOOKS_UP: Final = frozenset(["get", "set", "has", "delete"])
"""Methods that read a sentence only where it is the key."""
_EQUAL: Final = frozenset({"==", "===", "!=", "!=="})
_NOTHING: Final = frozenset({"null", "undefined", "true", "false"})
_BEFORE_REGEX: Final = frozenset(
    [
        "return",
        "typeof",
        "case",
        "in",
        "of",
        "do",
        "else",
        "void",
        "delete",
        "throw",
        "new",
        "instanceof",
        "yield",
        "await",
    ]
)
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<number>\d[\w.]*|\.\d\w*)
    |(?P<name>[\w$#]+)
    |(?P<sign>===|!==|=>|\?\.(?!\d)|\?\?=|\?\?|\.\.\.|==|!=|<=|>=|&&=|\|\|=|&&|\|\||\*\*|\+\+|--|[-+*/%]=|.)""",
    re.DOTALL | re.VERBOSE,
)
_REGEX: Final = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*")


class Token(NamedTuple):
    """A token; `text` is a literal without its signs."""

    kind: str
    text: str
    line: int


def tokens(source: str) -> list[Token]:
    """Return the tokens of a script; the expressions in a template come after it, in parentheses."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        line = 1 + source.count("\n", 0, at)
        if source[at] == "`":
            text, inside, at = _template(source, at + 1)
            found.append(Token("template", text, line))
            for start, part in inside:
                of_part = [each._replace(line=each.line + source.count("\n", 0, start)) for each in tokens(part)]
                found += [Token("sign", "(", line), *of_part, Token("sign", ")", line)]
            continue
        regex = _REGEX.match(source, at) if source[at] == "/" and _may_be_regex(found) else None
        if regex and not source.startswith(("//", "/*"), at):
            found.append(Token("regex", regex[0], line))
            at = regex.end()
            continue
        match = _TOKEN.match(source, at)
        assert match is not None
        kind, text = str(match.lastgroup), match[0]
        if kind != "space":
            found.append(Token(kind, text[1:-1] if kind == "string" else text, line))
        at = match.end()
    return found


def _may_be_regex(before: Sequence[Token]) -> bool:
    if not before:
        return True
    last = before[-1]
    if last.kind == "sign":
        return last.text not in {")", "]", "}"}
    return last.kind == "name" and last.text in _BEFORE_REGEX


def _template(source: str, at: int) -> tuple[str, list[tuple[int, str]], int]:
    """Return the text of a template, the expressions in it with their places, and where it ends."""
    text, inside = [], []
    while source[at] != "`":
        if source.startswith("${", at):
            end = _closing(source, at + 2)
            inside.append((at + 2, source[at + 2 : end]))
            at = end + 1
        else:
            step = 2 if source[at] == "\\" else 1
            text.append(source[at : at + step])
            at += step
    return "".join(text), inside, at + 1


def _closing(source: str, at: int) -> int:
    """Return where the brace closes that is open."""
    depth = 0
    while depth or source[at] != "}":
        if source[at] == "`":
            _, _, at = _template(source, at + 1)
            continue
        if source[at] in "\"'":
            quote = source[at]
            at += 1
            while source[at] != quote:
                at += 2 if source[at] == "\\" else 1
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        at += 1
    return at


def script_reads(source: str, fields: Collection[str], codes: Collection[str] = ()) -> list[Read]:
    """Return every place of a script that reads a sentence; `fields` are the names of sentences, `codes` literals that are none."""
    return sorted(set(_Script(tokens(source), fields, codes).reads()), key=lambda read: (read.line, read.code))


_VERDICT: Final = re.compile(
    r"\b(decide[sd]|undecided|a tie|ties|tied|settled|ahead|better|worse|held|resolved|unresolved|equivalent|verdicts?|withdrawn|needs"
    r"|level with|items? missing)\b|^ missing$",
    re.IGNORECASE,
)
_CHOSEN: Final = frozenset({"?", "return", "&&", "||", "??"})
"""Before a literal that depends on a fact."""


def script_verdicts(source: str) -> list[Read]:
    """Return every place of a script that makes a sentence about a verdict: it has the words of one, and values or a fact choose it.

    A label, and a whole sentence that is always there, explain what is drawn.
    """
    found = tokens(source)
    places = []
    for k, token in enumerate(found):
        if token.kind not in {"string", "template"} or not is_sentence(token.text) or not _VERDICT.search(token.text):
            continue
        filled = token.kind == "template" and (k + 1 < len(found) and found[k + 1].text == "(")
        if filled or not token.text[0].isupper() or (k and found[k - 1].text in _CHOSEN):
            places.append(Read(token.line, f'"{token.text}"'))
    return places


class _Script:
    def __init__(self, found: list[Token], fields: Collection[str], codes: Collection[str]) -> None:
        self._tokens, self._fields, self._codes = found, fields, codes
        self._names = set(self._unpacked())
        for _ in range(2):
            self._names |= {name for name, start in self._bindings() if self._says(start)}

    def _bindings(self) -> Iterator[tuple[str, int]]:
        """Yield each name that is bound, and where its value starts."""
        for k, token in enumerate(self._tokens[:-2]):
            if token.kind == "name" and token.text in {"const", "let", "var"} and self._text(k + 2) == "=":
                yield self._tokens[k + 1].text, k + 3

    def _unpacked(self) -> Iterator[str]:
        """Yield the fields that a pattern in braces binds: of a declaration, or of a parameter."""
        open_braces: list[int] = []
        for k in range(len(self._tokens)):
            if self._text(k) == "{":
                open_braces.append(k)
            elif self._text(k) == "}" and open_braces:
                inside = range(open_braces.pop() + 1, k)
                if self._text(k + 1) in {"=", ")", ",", "}"}:
                    names = [
                        j for j in inside if self._text(j - 1) in {"{", ","} and self._text(j + 1) in {"}", ",", "="}
                    ]
                    yield from (self._text(j) for j in names if self._text(j) in self._fields)

    def _text(self, k: int) -> str:
        token = self._tokens[k] if 0 <= k < len(self._tokens) else None
        return token.text if token is not None and token.kind in {"sign", "name"} else ""

    def _is_literal(self, k: int) -> bool:
        token = self._tokens[k] if 0 <= k < len(self._tokens) else None
        literal = token is not None and token.kind in {"string", "template"}
        return token is not None and literal and is_sentence(token.text) and token.text not in self._codes

    def _is_name(self, k: int) -> bool:
        """Return whether a token is the last name of a sentence: a field, or a variable; a key of an object is none."""
        if not (0 <= k < len(self._tokens)) or self._tokens[k].kind != "name" or self._text(k + 1) == ":":
            return False
        return self._tokens[k].text in (self._fields if self._text(k - 1) in {".", "?."} else self._names)

    def _chain(self, k: int) -> int:
        """Return the last token of the names joined by dots that start at a token."""
        while self._text(k + 1) in {".", "?."}:
            k += 2
        return k

    def _says(self, k: int) -> bool:
        """Return whether the operand that starts at a token is a sentence; a call returns something else."""
        if self._is_literal(k):
            return True
        end = self._chain(k)
        return self._is_name(end) and self._text(end + 1) not in {"(", "["}

    def reads(self) -> Iterator[Read]:
        for k, token in enumerate(self._tokens):
            if self._reads_at(k, token):
                yield Read(token.line, "".join(self._shown(max(0, k - 4), k + 6)))

    def _reads_at(self, k: int, token: Token) -> bool:  # noqa: PLR0911 - a case a form
        if token.kind == "regex":
            return is_sentence(re.sub(r"\\[a-zA-Z]", "", token.text))
        if token.kind == "sign" and token.text in _EQUAL:
            right = self._tokens[k + 1]
            if right.kind == "number" or right.text in _NOTHING or (right.kind == "string" and not right.text):
                return False
            return self._is_literal(k - 1) or self._is_name(k - 1) or self._says(k + 1)
        if token.kind == "name" and token.text == "case":
            return self._is_literal(k + 1)
        if token.kind == "name" and token.text == "in" and self._is_literal(k - 1):
            return True
        if token.kind == "name" and token.text == "switch":
            return self._says(k + 2)
        if token.kind == "name" and self._text(k - 1) in {".", "?."} and self._text(k + 1) == "(":
            return self._is_reading_call(k, token.text)
        if token.text == "[" and self._tokens[k - 1].kind == "name" and self._text(k - 1) not in _BEFORE_REGEX:
            return self._says(k + 1) and not self._is_literal(k + 1)
        return False

    def _is_reading_call(self, k: int, method: str) -> bool:
        receiver = method in _METHODS | _CUTS and self._is_name(k - 2)
        if method not in _METHODS | _LOOKS_UP:
            return receiver
        return receiver or any(self._says(start) for start in self._arguments(k + 1))

    def _arguments(self, opening: int) -> Iterator[int]:
        """Yield where each operand in the arguments of a call starts."""
        depth = 0
        for k in range(opening, len(self._tokens)):
            text = self._text(k)
            depth += (text in {"(", "[", "{"}) - (text in {")", "]", "}"})
            if not depth:
                return
            if depth == 1 and text in {"(", ",", "+", "?", ":", "??", "||", "&&"}:
                yield k + 1

    def _shown(self, start: int, stop: int) -> Iterator[str]:
        for token in self._tokens[start:stop]:
            yield f'"{token.text}"' if token.kind in {"string", "template"} else token.text
