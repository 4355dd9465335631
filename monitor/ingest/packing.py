"""The packed line: a segment of a watched file as one record of the log."""

from collections.abc import Callable, Iterable
from typing import Any

from monitor.engine.state.delta import Source
from monitor.ingest.files.segments import Segment
from schemas.packed import SourceSpan, encode_span

Declare = Callable[[str], dict[str, Any] | None]
"""From the name of a benchmark to the declaration that is placed before its first event, if there is to be one."""


class Packer:
    """Packs segments; remembers which benchmarks are known, and declares the others.

    Parameters
    ----------
    declare : callable, optional
        Asked once for a benchmark that is not known, and that no file has declared before its first event.
    known : iterable of str
        Benchmarks that need no declaration any more.
    """

    def __init__(self, declare: Declare | None = None, known: Iterable[str] = ()) -> None:
        self._declare = declare
        self._known = set(known)

    def pack(self, segment: Segment, path: str, start: int, source: Source, raw: bytes | None = None) -> bytes:
        """Write a segment as JSON (`schemas.packed.Packed`).

        Parameters
        ----------
        segment : Segment
        path : str
            The file.
        start : int
            Where the segment begins: the position of the source before it.
        source : Source
            The source behind it.
        raw : bytes, optional
            The events as they stand in the file, separated by commas: they are taken over as they are.
        """
        span = SourceSpan(path, source.generation, source.prefix, source.line)
        given = self._missing(segment)
        return encode_span(
            segment.events,
            span,
            start,
            source.position,
            given=given,
            declarations=segment.declarations,
            declared_at=segment.declared_at,
            rejected=segment.rejects,
            lines=raw,
        )

    def _missing(self, segment: Segment) -> list[dict[str, Any]]:
        self._known.update(d.declare for d in segment.declarations)
        fresh = {e.benchmark for e in segment.events} - self._known
        if not fresh:
            return []
        self._known |= fresh
        made = [self._declare(name) for name in sorted(fresh)] if self._declare is not None else []
        return [declaration for declaration in made if declaration is not None]
