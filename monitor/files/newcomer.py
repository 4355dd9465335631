"""The files of an admission: the scores of the newcomer as they grow, and the certificate."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, get_args, get_origin

import msgspec
from pydantic import BaseModel, ValidationError

from monitor.durable import replace_file
from monitor.files.reject_limit import RejectedLine
from monitor.files.streams.paths import show
from schemas.records.decode import describe_error
from schemas.records.packed import Segment
from schemas.records.scores import SCORE_UNIT
from schemas.records.text import shorten
from schemas.results.admission import Certificate, FrozenBoard, canonical

_LARGEST: Final = 128_000_000  # bytes of a certificate; one of a million items has 100 MB
_SMALL: Final = 1_000_000  # bytes that take little memory, however they are nested
_LONGEST: Final = msgspec.Meta(max_length=2**21)


class NewcomerError(ValueError):
    """A file of an admission cannot be used: where, what was found, what to do."""


def read_scores(
    segments: Iterable[Segment], board: FrozenBoard, model: str, aliases: dict[str, str]
) -> dict[str, int | None]:
    """Return the score of each item in units, None for a skip; anything that is not a first score of the newcomer is refused."""
    items, scores = frozenset(board.items), dict[str, int | None]()
    scale = SCORE_UNIT // board.unit
    for segment in segments:
        where = show(segment.path)
        if segment.incomplete is not None:
            raise NewcomerError(f"{where} is incomplete ({segment.incomplete}); complete the file, and run again")
        if segment.rejects:
            raise NewcomerError(f"{RejectedLine.of(segment.rejects[0])}; if it is still being written, run again")
        for event in segment.events:
            name = aliases.get(event.model, event.model)
            if event.benchmark != board.benchmark:
                raise NewcomerError(
                    f"{where}: benchmark {shorten(event.benchmark)}, and the board is {shorten(board.benchmark)}; give one file with "
                    "scores of that benchmark"
                )
            if name != model:
                raise NewcomerError(
                    f"{where} holds scores of {shorten(name)}; give a file of {shorten(model)} alone. Each newcomer has its own "
                    "order: the best of several on one order leads by luck"
                )
            if event.item_id not in items:
                raise NewcomerError(f"{where}: item {shorten(event.item_id)} is not on the board; remove it")
            score = None if event.score is None else round(event.score * SCORE_UNIT)
            if score is not None and score % scale:
                raise NewcomerError(
                    f"{where}: item {shorten(event.item_id)} has the score {event.score:g}, and the board has 0 and 1 alone; score it so"
                )
            score = None if score is None else score // scale
            if scores.setdefault(event.item_id, score) != score:
                raise NewcomerError(f"{where}: item {shorten(event.item_id)} has two scores; keep the first one")
    return scores


def read_certificate(path: Path) -> Certificate:
    """Read a certificate; every byte must be as it was written."""
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise NewcomerError(f"{show(path)} has more than {_LARGEST:,} bytes; it is no certificate")
    try:
        if len(data) > _SMALL:
            # Of a large file of other contents, this keeps nothing.
            msgspec.json.decode(data, type=_struct(Certificate))
        certificate = Certificate.model_validate_json(data)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        problem = fault["msg"] if fault["type"] == "json_invalid" else describe_error(fault)
        raise NewcomerError(f"{show(path)} is no certificate of rankwatch: {problem}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NewcomerError(f"{show(path)} is no certificate of rankwatch: {error}") from None
    if data != (written := canonical(certificate)):
        place = next((k for k, (a, b) in enumerate(zip(data, written, strict=False)) if a != b), len(written))
        raise NewcomerError(f"{show(path)}: byte {place + 1:,} is not as rankwatch wrote it; get the file again")
    return certificate


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write a certificate, durably, in place of the one before."""
    data = canonical(certificate)
    if len(data) > _LARGEST:
        raise NewcomerError(
            f"{show(path)}: the board takes {len(data):,} bytes, more than {_LARGEST:,}; shorten the item ids"
        )
    replace_file(path, data)


def _struct(model: type[BaseModel]) -> type[msgspec.Struct]:
    """Return the fields and lists of a model, without what they may hold."""
    fields = [(name, _kind(field.annotation)) for name, field in model.model_fields.items()]
    return msgspec.defstruct(model.__name__, fields, forbid_unknown_fields=True)


def _kind(annotation: object) -> object:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _struct(annotation)
    if get_origin(annotation) is list:
        return Annotated[list[_kind(get_args(annotation)[0])], _LONGEST]  # type: ignore[misc]  # made at run time
    return str | int | float | bool | None
