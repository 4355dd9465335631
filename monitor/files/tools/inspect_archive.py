"""Decode logs of Inspect: ``.json`` documents, and ``.eval`` archives of a header, summaries and samples."""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from monitor.files.formats.documents import DOCUMENT, broken, decode_as, read_bytes, wrong_field
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.zip_archive import Archive
from schemas.records.names import MAX_INDEX
from schemas.records.text import shorten

_HEAD: Final = 4_096  # how much of a document shows whether it may be a log

_WORKBOOKS: Final = {"xl/workbook.bin": "a binary Excel workbook", "content.xml": "an OpenDocument spreadsheet"}
"""A part of each kind of workbook that is not read."""

_MOST_REPEATS: Final = 1_000  # most repeats that can be declared


class Score(msgspec.Struct):
    """A score of a sample."""

    value: Any = None


class Sample(msgspec.Struct):
    """The fields of a sample, or of its summary, that are read."""

    id: int | str
    epoch: Annotated[int, msgspec.Meta(ge=1, le=MAX_INDEX)] = 1
    input: Any = None
    scores: dict[str, Score] | None = None
    score: Score | None = None
    metadata: dict[str, Any] | None = None
    error: Any = None
    completed_at: str | None = None

    @property
    def all_scores(self) -> dict[str, Any]:
        """The values by scorer; early logs have one score without a name."""
        if self.scores is None:
            return {} if self.score is None else {"score": self.score.value}
        return {name: score.value for name, score in self.scores.items()}


class Dataset(msgspec.Struct):
    """The fields of a dataset that are read."""

    samples: int | None = None
    sample_ids: list[Any] | None = None


class Named(msgspec.Struct):
    """Something with a name."""

    name: str


class Spec(msgspec.Struct):
    """The fields of the specification of a run that are read."""

    task: str
    model: str
    task_version: int | str | None = None
    task_id: str = ""
    dataset: Dataset = msgspec.field(default_factory=Dataset)
    config: dict[str, Any] = {}
    scorers: list[Named] | None = None

    @property
    def items(self) -> int | None:
        """How many items the run covers, if the log has the number."""
        if self.dataset.sample_ids:
            return len(self.dataset.sample_ids)
        if self.limited:
            return None
        return self.dataset.samples or None

    @property
    def limited(self) -> bool:
        """Whether the run covers a part of its data."""
        return self.config.get("limit") is not None or self.config.get("sample_id") is not None

    @property
    def counts(self) -> dict[str, int]:
        """How many items the run covers, and how many epochs each has, if the log has the numbers: what it declares."""
        epochs = self.config.get("epochs")
        repeats = {"repeats": epochs} if isinstance(epochs, int) and 1 < epochs <= _MOST_REPEATS else {}
        return ({} if self.items is None else {"items": self.items}) | repeats


class Log(msgspec.Struct):
    """A whole log, or the header of one; the status is missing while the run goes on."""

    eval: Spec
    status: str = "started"
    samples: list[Sample] | None = None


def read_log(path: Path) -> tuple[Log, str | None]:
    """Read a log, and return what is wrong at its end, if anything."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    return _read_archive(path) if zipped else (_decode(read_bytes(path), Log, None), None)


def _read_archive(path: Path) -> tuple[Log, str | None]:
    """Read the header, and the samples from their summaries if there are any: those are small and hold every score."""
    with Archive(path) as archive:
        names = archive.names()
        header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if header is None:
            if archive.damage is not None:
                raise Broken(archive.damage)
            reason = "the zip archive is not an Inspect log; use .eval files as Inspect writes them"
            for part, what in _WORKBOOKS.items():
                if part in names:
                    reason = f"the file is {what}, which is not read; save it as .xlsx, and give that file"
            raise Refusal("file", "a zip archive", reason)
        log: Log = _decode(archive.read(header), Log)
        log.samples, damage = _read_samples(archive, names)
        if damage is not None:
            log.status = "error"  # the missing samples may still come
    return log, damage


def _read_samples(archive: Archive, names: list[str]) -> tuple[list[Sample], str | None]:
    samples: dict[tuple[str, int], Sample] = {}
    damage = archive.damage
    for name in _summaries(names):
        try:
            _add(samples, _decode(archive.read(name), list[Sample]))
        except Broken as broken:
            damage = damage or str(broken)
    summarized = {f"samples/{sample.id}_epoch_{sample.epoch}.json" for sample in samples.values()}
    for name in names:
        if name.startswith("samples/") and name not in summarized:
            try:
                _add(samples, [_decode(archive.read(name), Sample)])
            except Broken as broken:
                damage = damage or str(broken)
    return list(samples.values()), damage


def _summaries(names: list[str]) -> list[str]:
    if "summaries.json" in names:
        return ["summaries.json"]
    return [name for name in names if name.startswith("_journal/summaries/")]


def _add(samples: dict[tuple[str, int], Sample], new: list[Sample]) -> None:
    for sample in new:
        key = (str(sample.id), sample.epoch)
        samples.pop(key, None)  # a sample that ran again moves to the end
        samples[key] = sample


def _decode(data: bytes, kind: Any, entry: str | None = "an entry of the archive") -> Any:  # noqa: ANN401 - an instance of `kind`
    what = entry or DOCUMENT
    try:
        return decode_as(data, kind)
    except msgspec.ValidationError as error:
        if entry is None and not all(name in data[:_HEAD] for name in (b'"eval"', b'"status"')):
            reason = f"{what} has a shape that no importer knows; `rankwatch map FILE` proposes how to read it"
            raise Refusal("file", "a JSON document", reason) from error
        name = wrong_field(error)
        problem = f"its field {shorten(name)} is missing or wrong" if name else "it is not an object"
        reason = (
            f"{what} is not an Inspect log: {problem}; use logs of Inspect (.json, .eval) "
            "or lm-eval (samples_*.jsonl), events (.jsonl) or tables (.csv, .parquet)"
        )
        raise Refusal("file", "a JSON document", reason) from error
    except (ValueError, RecursionError) as error:
        raise broken(data, error, entry) from error
