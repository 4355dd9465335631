"""Remove the secrets of the settings from texts that leave this machine."""

import re
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import SecretStr

from monitor.serve.access.access_file import PREFIX
from monitor.settings import Settings

HIDDEN: Final = "(removed)"
_BEGINNING: Final = 8
_SHORT: Final = 4  # shorter secrets are removed where they are a word, not inside of one

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_URLSAFE: Final = str.maketrans("+/", "-_")
_ESCAPE: Final = re.compile(r"[%\\&]")
_BACKSLASHES: Final = re.compile(r"((?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}){1,2000})|\\.")
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_LONGEST_FILE: Final = 100_000
_NAMED: Final = r"(?:password|passwd|pwd|secret|token|signature|api[_-]?key)"
_GAP: Final = r"""(?:\\{1,4}[rn]|\r?\n\$\d{1,9}\r?\n|\$\d{1,9}|\bb(?=["'\\])|[ \t"',=:()\[\]\\]){1,30}"""
"""What is between the words of a command of Redis: as it is typed, as a list of strings or bytes, and as the protocol has it."""

_OPENING: Final = r"""(?:\w{1,20}\()?b?(?:\\{0,4}["'])?"""
_QUOTED: Final = r"""(?<=")(?:[^"\\\r\n]|\\[^\r\n]){1,2000}|(?<=')(?:[^'\\\r\n]|\\[^\r\n]){1,2000}"""
"""A value up to its quote: an escaped quote belongs to it, so in a text that is quoted itself all of the rest does."""

_VALUE: Final = rf"""(?:{_QUOTED}|[^\s"',}}&]{{1,2000}})"""
_WORD: Final = rf"""(?:{_QUOTED}|[^\s"',<\\]{{1,500}})"""
_FORMS: Final = (
    (
        re.compile(
            rf"((?:(?<![A-Z])AUTH|(?i:(?:^|[>'\"]\s?|hello\s\d\s)auth))(?!:){_GAP}){_WORD}(?:{_GAP}{_WORD})?",
            re.MULTILINE,
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"(?i)(\b(?:requirepass|(?:primary|master)auth){_GAP}){_WORD}"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)(\bauth-pass{_GAP}[^\s\"']{{1,200}}{_GAP}){_WORD}"), rf"\1{HIDDEN}"),
    (
        re.compile(r"(?i)(\bredis-cli\b[^\r\n]{0,300}?\s(?:-a|--pass)[\s=]{1,5}" + _OPENING + ")" + _VALUE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)(\bsetuser\b[^\r\n]{0,300}?[\s\"'][>#])(?:[^\s\"',\\]|\\[^\r\n]){1,500}"), rf"\1{HIDDEN}"),
    (
        re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"),
        HIDDEN,
    ),
    (re.compile(r"(?i)\b((?:set-)?cookie\s{0,5}:\s{0,5})[^\r\n]{1,4000}"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s{1,5}[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)(?:[^\s/@\"':]*:[^\s@\"']{0,200}@)?[^\s/@\"']*@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/@\"':]*:[^\s@\"']{0,200}@"), rf"\1{HIDDEN}@"),
    (
        re.compile(r"(?i)\b(hooks\.slack\.com|discord(?:app)?\.com|\w{1,60}\.webhook\.office\.com)/[^\s\"']{1,500}"),
        rf"\1/{HIDDEN}",
    ),
    (
        re.compile(rf"(?i)(\b[\w-]{{0,40}}{_NAMED}\w{{0,40}}[\\\"']{{0,5}}\s{{0,5}}[=:]\s{{0,5}}{_OPENING}){_VALUE}"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"(?i)(--[\w-]{{0,40}}{_NAMED}\s{{1,5}}{_OPENING}){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(PREFIX + r"(?=[a-z0-9_-]{0,43}[A-Z])[A-Za-z0-9_-]{43}"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{5,200}\.[\w-]{5,4000}\.[\w-]{0,1000}"), HIDDEN),
    (
        # An escaped newline, as \\n, puts a letter ahead of it.
        re.compile(
            r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:sk-|rk-|hf_|npm_|ya29\.)[\w.-]{16,400}"
            r"|(?:gh[oprsu]_|github_pat_|gl(?:pat|ptt|dt|rt|cbt|oas)-|pypi-|dckr_pat_|sk_live_|xox[a-z]-|xapp-)[\w.-]{8,400}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{12,20}|AIza[\w-]{30,60}"
        ),
        HIDDEN,
    ),
)
"""What is a secret by its form: credentials of a request or an address, values that are named so, keys, and tokens that are common.

Logs may be hostile, so repeats are bounded."""


class Redactor:
    """Removes what the settings hold as secrets, as it is and as URLs, JSON, Python and HTML write it; and what has the form of a secret.

    >>> Redactor(Settings(token="s3cret-s3cret")).text('token "s3cret-s3cret", redis://me:pw@host/0')
    'token "(removed)", redis://(removed)@host/0'
    >>> Redactor(Settings(token="s3cret+s3cret")).text("to s3cret%2Bs3cret, to me")
    'to (removed), to me'
    """

    def __init__(self, settings: Settings) -> None:
        secrets = {secret for secret in _secrets(settings) if secret}
        written = {form for secret in secrets for form in (secret, *_hexadecimal(secret))}
        longest_first = sorted(written, key=lambda form: (-len(form), form))
        long = [_pattern(form) for form in longest_first if len(form) >= _SHORT]
        short = [rf"(?<!\w){_pattern(form)}(?!\w)" for form in longest_first if len(form) < _SHORT]
        self._known = re.compile("|".join([*long, *short])) if written else None
        encoded = [once for secret in secrets for once in (*_hexadecimal(secret), *_encoded(secret))]
        forms = (*written, *encoded, *chain.from_iterable(map(_encoded, encoded)))
        # Looked for across spaces and lines, by their beginning.
        self._anywhere: dict[str, set[str]] = {}
        for form in {"".join(each.split()) for each in forms}:
            if len(form) >= _BEGINNING:
                self._anywhere.setdefault(form[:_BEGINNING], set()).add(form)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
            text = "\n".join(map(self._without_escaped, text.split("\n")))
        kept = [k for k, each in enumerate(text) if not each.isspace()] if self._anywhere else []
        text = _without_runs(text, [(kept[start], kept[end - 1] + 1) for start, end in self._split(text, kept)])
        for form, hidden in _FORMS:
            text = form.sub(hidden, text)
        return text

    def _split(self, text: str, kept: list[int]) -> Iterator[tuple[int, int]]:
        """Yield where a secret, or base64 of it, is among the characters that are kept of a text."""
        joined = "".join(map(text.__getitem__, kept))
        for start in range(len(joined)):
            for form in self._anywhere.get(joined[start : start + _BEGINNING], ()):
                if joined.startswith(form, start):
                    yield start, start + len(form)

    def _without_escaped(self, line: str) -> str:
        """Return a line without what holds a secret once its escapes are read: its end and its start are found by halving."""
        kept = ""
        while self._escaped(line):
            end = bisect_left(range(len(line)), 1, key=lambda k: self._escaped(line[:k]))
            start = bisect_left(range(end), 1, key=lambda k: not self._escaped(line[k:end]))
            kept, line = f"{kept}{line[: max(0, start - 1)]}{HIDDEN}", line[end:]
        return kept + line

    def _escaped(self, line: str) -> bool:
        """Return whether a line has a secret once its escapes are read: URLs, JSON, Python, HTML, or two of them."""
        if self._known is None or _ESCAPE.search(line) is None:
            return False
        ways = (unquote, _read_backslashes, unescape)
        once = {read(line) for read in ways}
        return any(map(self._known.search, once | {read(each) for each in once for read in ways}))


def _pattern(form: str) -> str:
    """Return the pattern of a text; a URL may escape its spaces."""
    return re.escape(form).replace("\\ ", "[ +]")


def _of_backslashes(found: re.Match[str]) -> str:
    """Return the characters of an escape of JSON or Python: a run of those with numbers, or one with a letter or a sign."""
    if found[1] is None:
        return _LETTERS.get(found[0][-1], found[0][-1])
    units = [int(each[1:], 16) if each[0] in "ux" else int(each, 8) for each in found[0][1:].split("\\")]
    if "u" not in found[0]:
        with suppress(UnicodeDecodeError):
            return bytes(units).decode()
    return "".join(map(chr, units)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_backslashes(text: str) -> str:
    return _BACKSLASHES.sub(_of_backslashes, text)


def _without_runs(text: str, parts: Iterable[tuple[int, int]]) -> str:
    """Return a text without the words of base64 that hold a part: their first and last characters are of the secret too."""
    pieces, end = [], 0
    for first, last in parts:
        if last <= end:
            continue
        start, stop = max(first, end), last
        while start > end and text[start - 1] in _BASE64:
            start -= 1
        while stop < len(text) and text[stop] in _BASE64:
            stop += 1
        pieces += [text[end:start], HIDDEN]
        end = stop
    return "".join([*pieces, text[end:]])


def _encoded(secret: str) -> Iterator[str]:
    """Return the characters of base64 that a secret has at each place in other bytes, in both alphabets."""
    data = secret.encode()
    if len(data) < 2 * _SHORT:
        return  # so few characters may be in any text
    for ahead in range(3):
        whole = b64encode(bytes(ahead) + data).decode()
        # The first and the last characters depend on the bytes around the secret.
        part = whole[-(-8 * ahead // 6) : (ahead + len(data)) * 8 // 6]
        yield from (part, part.translate(_URLSAFE))


def _secrets(settings: Settings) -> Iterator[str]:
    """Return everything that is a secret, or may be."""
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if isinstance(text, str) and name.endswith("_url"):
            yield from _of_url(text, path=isinstance(value, SecretStr) and not name.startswith("redis"))
    if settings.kafka_username and settings.kafka_password:
        yield from _basic(settings.kafka_username, settings.kafka_password.get_secret_value())
    yield from _of_files((settings.kafka_token_file, settings.kafka_key_file))


def _of_url(url: str, *, path: bool) -> Iterator[str]:
    """Return user, password, query, and the path if it is the key of a webhook."""
    try:
        parts = urlsplit(url)
    except ValueError:
        yield url
        return
    credentials = parts.netloc.rpartition("@")[0]
    user, _, password = credentials.partition(":")
    yield from filter(None, (credentials, password, unquote(password), user if password == "" else ""))
    if password:
        yield from _basic(unquote(user), unquote(password))
    yield from (value for _, value in parse_qsl(parts.query) if len(value) >= _SHORT)
    if path and len(parts.path) > 1:
        yield parts.path
        yield from (piece for piece in parts.path.split("/") if len(piece) >= 2 * _SHORT)


def _basic(user: str, password: str) -> Iterator[str]:
    yield b64encode(f"{user}:{password}".encode()).decode()


def _of_files(files: Iterable[Path | None]) -> Iterator[str]:
    for file in files:
        try:
            text = file.read_bytes()[:_LONGEST_FILE].decode("utf-8", "replace") if file is not None else ""
        except OSError:
            continue
        yield from (line.strip() for line in text.splitlines() if len(line.strip()) >= 2 * _SHORT)


def _hexadecimal(secret: str) -> Iterator[str]:
    for separator in ("", ":", " ", "-", ", ", ", 0x") if len(secret) >= 2 * _SHORT else ():
        yield from (separator.join(f"{byte:02{case}}" for byte in secret.encode()) for case in "xX")
