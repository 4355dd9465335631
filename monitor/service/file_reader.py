"""Read a file of results that was posted, as the commands read a file of that name."""

import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from monitor.files.importer import MAP_FILE, Importer
from monitor.files.reject_limit import RejectedLine
from monitor.files.streams.read import read_files
from monitor.files.streams.zip_archive import Archive
from monitor.serve.api.writing.request import Submission
from monitor.serve.serving import FileError, FileResults
from schemas.records.events import models_of
from schemas.records.packed import Segment
from schemas.records.text import shorten
from schemas.results.api import RecordError

MAX_RESULTS: Final = 200_000
"""Results of a file: a table of a few bytes a score has millions, and each takes some hundred bytes of memory."""

_MAX_ERRORS: Final = 100
_NAME_BYTES: Final = 200
_FOLDERS: Final = 6
"""Folders around a posted file, all of one name: some tools name the model or the benchmark in a folder a few levels up."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_SEND: Final = "send it with `rankwatch send`"


class FileReader:
    """Reads posted files of any format; nothing of the machine is read but the file."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def __call__(self, name: str, body: bytes, model: str | None) -> FileResults:
        """Return what a file holds, or the lines that cannot be read; `model` is that of a file that names none."""
        if not is_file_name(name):
            raise FileError(422, f"{shorten(name)} is no name of a file of results; use one such as results.jsonl")
        if model is not None and "=" in model:
            raise FileError(422, f"the model {shorten(model)} has a =; {_SEND}")
        if body.startswith(b"\x1f\x8b"):
            body, name = self._inflated(body, name), name.removesuffix(".gz")
        if body.startswith(b"PAR1"):
            raise FileError(415, f"{name}: Parquet is not read here; {_SEND}")
        with TemporaryDirectory(prefix="rankwatch-") as folder:
            # Some tools number a repeat by the name of its folder: the same file has the same one.
            path = Path(folder).resolve().joinpath(*[sha256(body).hexdigest()[:32]] * _FOLDERS, name)
            path.parent.mkdir(parents=True)
            path.write_bytes(body)
            if body.startswith(b"PK"):
                with Archive(path) as archive:
                    if archive.unpacked_bytes > self._limit:
                        raise self._too_large(path.name)
            return self._read(path, model)

    def _read(self, path: Path, model: str | None) -> FileResults:
        def as_posted(text: str) -> str:
            return text.replace(f"{path.parent}/", "")

        notes: list[str] = []
        try:
            importer = Importer(report=notes.append)
            collected = self._collected(importer, path, model)
        except FileError as error:
            raise FileError(error.status, as_posted(str(error))) from None
        except (OSError, ValueError) as error:
            raise FileError(422, as_posted(str(error))) from None
        errors = [each.replace(reason=as_posted(each.reason)) for each in collected.errors]
        return FileResults(
            collected.submission, errors, collected.first and as_posted(collected.first), [*map(as_posted, notes)]
        )

    def _collected(self, importer: Importer, path: Path, model: str | None) -> FileResults:
        files = importer.find([path if model is None else f"{model}={path}"])
        submission, errors, first = Submission.empty(), list[RecordError](), None
        for segment in self._segments(importer, files):
            submission.declarations.extend(segment.declarations)
            named = [each for event in segment.events for each in (*models_of(event), event.benchmark)]
            if any(path.parent.name in each for each in named):
                raise FileError(422, f"{path.name} does not name its model, and its folder is not sent; give the model")
            if any(path.parent.name in reject["reason"].replace(f"{path.parent}/", "") for reject in segment.rejects):
                why = "its folder, or a file there, names the model and the benchmark, and neither is sent"
                raise FileError(422, f"{path.name}: {why}; send the folder with `rankwatch send`")
            submission.events.extend(segment.events)
            submission.ended.extend(segment.ended)
            if len(submission.events) > MAX_RESULTS:
                raise FileError(413, f"The file has more than {MAX_RESULTS:,} results; {_SEND}")
            for reject in segment.rejects[: _MAX_ERRORS - len(errors)]:
                first = first or str(RejectedLine.of(reject))
                errors.append(
                    RecordError(
                        line=reject["line"], field=reject["field"], found=reject["found"], reason=reject["reason"]
                    )
                )
            if len(errors) == _MAX_ERRORS:
                break
        submission.event_lines.extend(range(1, len(submission.events) + 1))
        submission.ended_lines.extend(range(-len(submission.ended), 0))
        return FileResults(submission, errors, first, [])

    def _segments(self, importer: Importer, files: list[Path]) -> Iterator[Segment]:
        for segment in read_files(files, opener=importer.open):
            if segment.incomplete is not None:
                raise FileError(422, f"{segment.path}: {segment.incomplete}; send the whole file")
            yield segment

    def _inflated(self, body: bytes, name: str) -> bytes:
        inflate = zlib.decompressobj(_GZIP)
        try:
            data = inflate.decompress(body, self._limit + 1)
        except zlib.error:
            raise FileError(422, f"{name}: the gzip data is damaged; compress the file again") from None
        if len(data) > self._limit:
            raise self._too_large(name)
        if not inflate.eof or inflate.unused_data:
            raise FileError(422, f"{name}: the gzip data breaks off, or has several members; {_SEND}")
        return data

    def _too_large(self, name: str) -> FileError:
        return FileError(413, f"{name} unpacks to more than {self._limit:,} bytes; {_SEND}")


def is_file_name(name: str) -> bool:
    """Return whether a name from outside is that of a file in a folder, and of no mapping."""
    inside = name not in {"", ".", ".."} and "/" not in name and "\0" not in name and name.isprintable()
    return inside and name != MAP_FILE and len(name.encode("utf-8", "surrogatepass")) <= _NAME_BYTES
