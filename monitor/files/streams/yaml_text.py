"""Read YAML as the JSON text that it comes to: one document, or an array of several.

Scalars are those on which YAML 1.1, YAML 1.2 and JSON agree. Any other stays the text that it is: `no`, `on`, `012`, `1e3`, `.5`. Readers
take a score that is written as text for the number.
"""

import re
from collections.abc import Generator
from importlib import import_module
from json.encoder import encode_basestring
from typing import Any, Final

from monitor.files.streams.stream import ConversionError, ConvertedStream
from schemas.records.text import shorten

_MOST_BYTES: Final = 1 << 28  # its parser reads some 5 MB a second
_MOST_REPEATED: Final = 1 << 24  # characters that aliases add, and that anchors hold: a few lines can come to terabytes
_MOST_DEPTH: Final = 500
_PIECE: Final = 1 << 16
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?)?")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), "null"),
    **{each: each.lower() for each in ("true", "True", "TRUE", "false", "False", "FALSE")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
}
_MARK: Final = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)
_AHEAD: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:[#%][^\n]*)?\n)*")
"""Lines before a document: blank ones, comments and directives."""

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str", f"{_TAG}timestamp"})
_PLAIN_TAGS: Final = frozenset({f"{_TAG}{name}" for name in ("int", "float", "bool", "null", "map", "seq")})
_WRITE: Final = "write plain values, for example as JSON"


def text(stream: ConvertedStream) -> Generator[bytes, None, None]:
    """Yield the JSON text of the documents of a stream."""
    try:
        yaml = import_module("yaml")  # optional
    except ImportError as error:
        raise ConversionError("YAML needs PyYAML", "install rankwatch[yaml], or pyyaml") from error
    data = _whole(stream)
    ahead = _AHEAD.match(data)
    first = data[ahead.end() if ahead else 0 :]
    several = len(_MARK.findall(data)) > (_MARK.match(first) is not None)
    writer = _Writer(several=several)
    try:
        for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            writer.take(event)
            if writer.length > _PIECE and (piece := writer.flush()):
                yield piece
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1:,}, column {mark.column + 1:,}" if mark is not None else "its start"
        raise ConversionError(f"the YAML is not valid at {where} ({error.problem})", "correct the file") from error
    except yaml.reader.ReaderError as error:
        found = f"the YAML has bytes that are not UTF-8, or a control character, at position {error.position:,}"
        raise ConversionError(found, "write the file as UTF-8 text") from error
    yield writer.finish()


def _whole(stream: ConvertedStream) -> bytes:
    inner, pieces, length = stream.inner, list[bytes](), 0
    while piece := inner.read(1 << 22):
        pieces.append(piece)
        length += len(piece)
        if length > _MOST_BYTES:
            raise ConversionError(f"the YAML has more than {_MOST_BYTES:,} bytes", "write it as JSON lines")
    if problem := inner.damage or inner.unfinished:
        raise ConversionError(problem, inner.remedy)
    return b"".join(pieces)


class _Writer:
    """Writes the events of a parser as JSON."""

    def __init__(self, *, several: bool) -> None:
        self._several, self._documents = several, 0
        self._out: list[str] = ["["] if several else []
        self.length = self._repeated = 0
        self._open: list[tuple[bool, str | None, int]] = []
        """Of each open collection: whether it is a mapping, its anchor, and where its text begins."""
        self._counts: list[int] = []
        self._anchors: dict[str, str] = {}
        self._held = 0  # open collections with an anchor

    def take(self, event: Any) -> None:  # noqa: ANN401 - the events of PyYAML have no types in common
        """Write an event."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._node(event, None)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise _refused(
                    event, f"the alias {shorten(event.anchor)} has no anchor ahead of it that is complete", _WRITE
                )
            self._repeat(event, self._anchors[event.anchor])
            self._node(event, self._anchors[event.anchor])
        elif kind in {"MappingStartEvent", "SequenceStartEvent"}:
            self._start(event, mapping=kind == "MappingStartEvent")
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            self._end(event)
        elif kind == "DocumentStartEvent":
            self._anchors.clear()

    def flush(self) -> bytes:
        """Return the text since the last call; nothing while an anchor may need it."""
        if self._held:
            return b""
        text, self._out, self.length = "".join(self._out), [], 0
        return text.encode()

    def finish(self) -> bytes:
        """Return the rest of the text."""
        self._write("\n]\n" if self._several else "\n" if self._documents else "")
        return self.flush()

    def _write(self, text: str) -> None:
        self._out.append(text)
        self.length += len(text)

    def _separate(self, event: Any) -> bool:  # noqa: ANN401
        """Write what comes between two values; return whether the next one is the name of a field."""
        if not self._open:
            if self._several:
                self._write(",\n" if self._documents else "\n")
            self._documents += 1
            return False
        mapping, count = self._open[-1][0], self._counts[-1]
        self._counts[-1] += 1
        if mapping and count % 2:
            self._write(": ")
            return False
        line = "\n" if len(self._open) == 1 else ""  # the first line of a document is no record
        self._write(f",{line}" if count else line)
        if mapping and type(event).__name__ != "ScalarEvent":
            raise _refused(event, "the name of a field is no text", _WRITE)
        return mapping

    def _node(self, event: Any, text: str | None) -> None:  # noqa: ANN401
        if self._several and not self._open and not getattr(event, "value", None):
            return  # nothing follows a last mark
        name = self._separate(event)
        if text is None:
            text = self._scalar(event, name=name)
            if event.anchor is not None:
                self._anchors[event.anchor] = text
        self._write(text)

    def _scalar(self, event: Any, *, name: bool) -> str:  # noqa: ANN401
        value, tag = event.value, event.tag
        _check(event)
        plain = tag in _PLAIN_TAGS or (tag is None and not event.style)
        if name and plain and value == "<<":
            raise _refused(event, "a merge key (<<) joins mappings", "write it out with yq -o json 'explode(.)' FILE")
        if plain and not name:
            if value in _WORDS:
                return _WORDS[value]
            if _NUMBER.fullmatch(value):
                return str(value)
        return encode_basestring(value)

    def _start(self, event: Any, *, mapping: bool) -> None:  # noqa: ANN401
        _check(event)
        self._separate(event)
        if len(self._open) >= _MOST_DEPTH:
            raise _refused(event, f"it is nested more than {_MOST_DEPTH} levels deep", _WRITE)
        self._held += event.anchor is not None
        self._anchors.pop(event.anchor, None)
        self._open.append((mapping, event.anchor, len(self._out)))
        self._counts.append(0)
        self._write("{" if mapping else "[")

    def _end(self, event: Any) -> None:  # noqa: ANN401
        mapping, anchor, start = self._open.pop()
        self._counts.pop()
        self._write("}" if mapping else "]")
        if anchor is not None:
            self._held -= 1
            self._anchors[anchor] = "".join(self._out[start:])
            self._repeat(event, self._anchors[anchor])

    def _repeat(self, event: Any, text: str) -> None:  # noqa: ANN401
        self._repeated += len(text)
        if self._repeated > _MOST_REPEATED:
            raise _refused(event, f"its aliases repeat more than {_MOST_REPEATED:,} characters", _WRITE)


def _check(event: Any) -> None:  # noqa: ANN401
    """Refuse a tag that is not one of plain data."""
    tag = event.tag
    if tag is not None and tag not in _TEXT_TAGS and tag not in _PLAIN_TAGS:
        shown = tag.replace(_TAG, "!!")
        raise _refused(event, f"the tag {shorten(shown)} needs the program that wrote it", _WRITE)


def _refused(event: Any, problem: str, remedy: str) -> ConversionError:  # noqa: ANN401
    return ConversionError(f"the YAML cannot be read at line {event.start_mark.line + 1:,}: {problem}", remedy)
