"""Logs of Inspect: ``.json`` documents, and ``.eval`` archives of a header, summaries and samples.

A log is written again and again while its run goes on, and may have been left behind by a run that crashed. Samples are read in the order
in which they were completed, and what has no score comes last, so that a log that went on begins with what it began with.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from monitor.ingest.files.translated import Broken, Lines, Refusal
from monitor.ingest.files.zip_archive import Archive
from monitor.ingest.formats.clusters import cluster_field
from monitor.ingest.formats.inspect_scores import choose_scorer
from monitor.ingest.formats.log_file import Reading
from schemas.decode import Fault
from schemas.events import MAX_INDEX, EventFields
from schemas.text import shorten

_UNFINISHED: Final = ("started", "cancelled", "error")
_FINGERPRINT: Final = 200


class Score(msgspec.Struct):
    """A score of a sample."""

    value: Any = None


class Sample(msgspec.Struct):
    """What is read of a sample, or of its summary."""

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
    """What is read of the description of a dataset."""

    samples: int | None = None
    sample_ids: list[Any] | None = None


class Named(msgspec.Struct):
    """Something with a name."""

    name: str


class Spec(msgspec.Struct):
    """What is read of the specification of a run."""

    task: str
    model: str
    task_version: int | str | None = None
    task_id: str = ""
    dataset: Dataset = msgspec.field(default_factory=Dataset)
    config: dict[str, Any] = {}
    scorers: list[Named] | None = None

    @property
    def items(self) -> int | None:
        """How many items the run covers, where the log says so."""
        if self.dataset.sample_ids:
            return len(self.dataset.sample_ids)
        if self.config.get("limit") is not None or self.config.get("sample_id") is not None:
            return None
        return self.dataset.samples or None


class Log(msgspec.Struct):
    """A whole log, or the header of one: the status is missing while the run goes on."""

    eval: Spec
    status: str = "started"
    samples: list[Sample] | None = None


def read(reading: Reading) -> Iterator[bytes]:
    """Read a log as event lines.

    Raises
    ------
    Refusal
        If it is not to be read.
    Broken
        If it breaks off; all that is whole has been read by then.
    """
    path = reading.path
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    log, damage = _read_archive(path) if zipped else (_read_json(path), None)
    spec = log.eval
    benchmark, model = reading.choices.benchmark or spec.task, reading.model or spec.model
    yield from _Reader(log, benchmark, model, reading).lines(Lines())
    if damage is not None:
        raise Broken(damage)


class _Reader:
    """Reads the samples of one log."""

    def __init__(self, log: Log, benchmark: str, model: str, reading: Reading) -> None:
        self._log, self._benchmark, self._model, self._reading = log, benchmark, model, reading
        self._failures_count = log.eval.config.get("score_on_error") is True
        self._cluster: str | None = None

    def lines(self, lines: Lines) -> Iterator[bytes]:
        """Make event lines: of what is scored, then of what will never be."""
        samples = sorted(self._log.samples or (), key=lambda sample: sample.completed_at or "")
        finished = self._log.status not in _UNFINISHED
        scored = [sample for sample in samples if sample.all_scores and self._counts(sample)]
        if not scored:
            self._refuse_without_scores(samples, finished=finished)
            return
        reading, spec = self._reading, self._log.eval
        reading.runs.begin(reading.path, spec.task, self._model, spec.task_version, spec.task_id or reading.path.name)
        if spec.items is not None and reading.declares(self._benchmark):
            yield lines.declare(self._benchmark, spec.items)
        task, choices = spec.task, reading.choices
        scorer = choose_scorer(task, [s.name for s in spec.scorers or ()], scored, choices, self._benchmark)
        self._cluster = cluster_field(samples[0].metadata or {}, choices)
        clusters = f"clusters by {shorten(self._cluster)}" if self._cluster else "no clusters"
        reading.notes.chosen(task, f"{scorer.told}; {clusters}")
        left: list[Sample] = []
        for number, sample in enumerate(samples, 1):
            value = scorer.value(sample.all_scores) if self._counts(sample) else None
            if value is None or (isinstance(value, float) and math.isnan(value)):
                left.append(sample)
            elif isinstance(value, Fault):
                yield lines.reject(value, number, self._raw(sample))
            else:
                yield lines.event(self._event(sample, value), number)
        yield from self._left(lines, left, len(samples), finished=finished)

    def _counts(self, sample: Sample) -> bool:
        return sample.error is None or self._failures_count

    def _left(self, lines: Lines, left: list[Sample], count: int, *, finished: bool) -> Iterator[bytes]:
        """Skip what has no score, if the run is over; if it was interrupted, another may still bring the score."""
        if left and not finished:
            self._reading.note(
                f"{len(left):,} of {count:,} samples failed or have no score, and the run did not finish: they are left out"
            )
            return
        for sample in left:
            yield lines.event(self._event(sample, None), count)

    def _event(self, sample: Sample, score: float | None) -> EventFields:
        item = str(sample.id)
        if isinstance(sample.input, str):
            self._reading.runs.item(
                self._reading.path, self._log.eval.task, item, sample.input[:_FINGERPRINT].encode("utf-8", "replace")
            )
        found = (sample.metadata or {}).get(self._cluster) if self._cluster is not None else None
        cluster = str(found) if isinstance(found, str | int) and found != "" else None
        return EventFields(self._benchmark, item, self._model, score, cluster, repeat=sample.epoch - 1)

    def _raw(self, sample: Sample) -> bytes:
        return json.dumps({"id": sample.id, "epoch": sample.epoch, "scores": sample.all_scores}).encode()

    def _refuse_without_scores(self, samples: list[Sample], *, finished: bool) -> None:
        if not finished:
            return  # its first scores may still come
        found = f"a log with {len(samples):,} samples and no score" if samples else "a log without samples"
        raise Refusal(
            "samples", found, "score it with `inspect score`, or log samples; or leave the file out", self._benchmark
        )


def _read_json(path: Path) -> Log:
    data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=Log)
    except msgspec.ValidationError as error:
        raise _not_a_log(error) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # Inspect writes NaN where JSON has none
        return msgspec.convert(json.loads(data), Log)
    except msgspec.ValidationError as error:
        raise _not_a_log(error) from error
    except (ValueError, RecursionError) as error:
        raise Broken(f"the JSON document breaks off, or is damaged ({shorten(str(error))})") from error


def _not_a_log(error: Exception) -> Refusal:
    return Refusal(
        "file",
        f"a JSON document that is no log of Inspect ({shorten(str(error))})",
        "give logs of Inspect (.json, .eval), samples of lm-eval (samples_*.jsonl), events (.jsonl), or tables (.csv, .parquet)",
    )


def _read_archive(path: Path) -> tuple[Log, str | None]:
    """Read the header, and the samples from their summaries as far as there are any: those are small, and hold every score."""
    with Archive(path) as archive:
        names = archive.names()
        header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if header is None:
            if archive.damage is not None:
                raise Broken(archive.damage)
            raise Refusal("file", "a zip archive that is no log of Inspect", "give .eval files as Inspect writes them")
        log: Log = _decode(archive.read(header), Log)
        log.samples, damage = _read_samples(archive, names)
        if damage is not None:
            log.status = "error"  # what is missing may yet come
    return log, damage


def _read_samples(archive: Archive, names: list[str]) -> tuple[list[Sample], str | None]:
    found: dict[tuple[str, int], Sample] = {}
    damage = archive.damage
    for name in _summaries(names):
        try:
            _take(found, _decode(archive.read(name), list[Sample]))
        except Broken as broken:
            damage = damage or str(broken)
    known = {f"samples/{sample.id}_epoch_{sample.epoch}.json" for sample in found.values()}
    for name in names:
        if name.startswith("samples/") and name not in known:
            try:
                _take(found, [_decode(archive.read(name), Sample)])
            except Broken as broken:
                damage = damage or str(broken)
    return list(found.values()), damage


def _summaries(names: list[str]) -> list[str]:
    if "summaries.json" in names:
        return ["summaries.json"]
    return [name for name in names if name.startswith("_journal/summaries/")]


def _take(found: dict[tuple[str, int], Sample], samples: list[Sample]) -> None:
    for sample in samples:
        key = (str(sample.id), sample.epoch)
        found.pop(key, None)  # what was done again takes its place at the end
        found[key] = sample


def _decode(data: bytes, kind: Any) -> Any:  # noqa: ANN401 - of the kind that was asked for
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _not_a_log(error) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            return msgspec.convert(json.loads(data), kind)
        except (ValueError, RecursionError) as error:
            raise Broken(f"an entry of the archive is no valid JSON ({shorten(str(error))})") from error
