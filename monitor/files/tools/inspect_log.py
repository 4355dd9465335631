"""Logs of Inspect.

Inspect rewrites a log while its run goes on, and a crashed run leaves one unfinished. Samples are read in the order they end, and
samples without a score come last: a log that went on begins with the same events as before.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from monitor.files.formats.choices import FAILED_SKIP, FAILED_ZERO, cluster_of
from monitor.files.formats.log_file import LogFile
from monitor.files.streams.event_lines import EventLineWriter
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from monitor.files.tools.inspect_archive import Log, Sample, read_log
from monitor.files.tools.inspect_scores import choose_scorer
from schemas.records.events import EventFields
from schemas.records.text import Fault, shorten

_UNFINISHED: Final = ("started", "cancelled", "error")
_FINGERPRINT: Final = 200


def open_log(log: LogFile) -> Stream:
    """Open a log of Inspect as event lines."""
    return DocumentStream(log.path, lambda: _read(log))


def _read(file: LogFile) -> Iterator[bytes]:
    log, damage = read_log(file.path)
    yield from _LogReader(log, file).lines()
    if damage is not None:
        raise Broken(damage)


class _LogReader:
    """Reads the samples of one log."""

    def __init__(self, log: Log, file: LogFile) -> None:
        self._log, self._file = log, file
        self._benchmark = file.choices.benchmark or log.eval.task
        self._model = file.model or log.eval.model
        self._writer = EventLineWriter(file.note)
        self._score_on_error = log.eval.config.get("score_on_error") is True
        self._finished = log.status not in _UNFINISHED
        self._cluster: str | None = None

    def lines(self) -> Iterator[bytes]:
        """Write event lines: first of samples with a score, then of samples that will never have one."""
        samples = sorted(self._log.samples or (), key=lambda sample: sample.completed_at or "")
        scores = next((s.all_scores for s in samples if s.all_scores and self._counts(s)), None)
        if scores is None:
            self._refuse_without_scores(len(samples))
            return
        file, spec = self._file, self._log.eval
        file.note_unused("a log of Inspect", "scorer", "cluster", "benchmark", "failed")
        file.runs.add_run(
            file.path, spec.task, self._model, spec.task_version, spec.task_id or file.path.name, self._benchmark
        )
        if spec.limited and self._finished:
            items = frozenset(str(sample.id) for sample in samples)
            file.runs.add_subset(file.path, spec.task, items, self._benchmark)
        if spec.counts and file.declares_items:
            yield self._writer.declare(self._benchmark, **spec.counts)
        scorers = [scorer.name for scorer in spec.scorers or ()]
        kind = f"scorer:{spec.task}"
        known = file.runs.chosen.get(self._benchmark, {}).get(kind)
        scorer = choose_scorer(spec.task, scorers, scores, file.choices, self._benchmark, known)
        file.runs.choose(self._benchmark, kind, scorer.label)
        self._cluster = file.choices.cluster_field(samples[0].metadata or {})
        clusters = f"clusters by {shorten(self._cluster)}" if self._cluster else "no clusters"
        file.notices.choice(spec.task, f"{scorer.description}; {clusters}")
        unscored: list[Sample] = []
        failed = 0
        for number, sample in enumerate(samples, 1):
            value = scorer.value(sample.all_scores) if self._counts(sample) else None
            if self._finished and not self._counts(sample):
                failed += 1
                value = 0.0 if file.choices.failed == FAILED_ZERO else None
            if value is None or (isinstance(value, float) and math.isnan(value)):
                unscored.append(sample)
            elif isinstance(value, Fault):
                yield self._writer.reject(value._replace(item=str(sample.id)), number, _raw(sample))
            else:
                yield self._writer.event(self._event(sample, value), number)
        if failed:
            zero = file.choices.failed == FAILED_ZERO
            other = f"--failed {FAILED_SKIP} skips them" if zero else f"--failed {FAILED_ZERO} counts them as 0"
            counted = "count as 0" if zero else "are skipped"
            file.note(f"{failed:,} of {len(samples):,} samples failed in the run and {counted}; {other}")
            file.runs.set_failed(file.path, Counter({} if zero else {(self._benchmark, "error"): failed}))
        yield from self._unscored_lines(unscored, len(samples))

    def _counts(self, sample: Sample) -> bool:
        return sample.error is None or self._score_on_error

    def _unscored_lines(self, unscored: list[Sample], count: int) -> Iterator[bytes]:
        """Write skipped items if the run is over; a retry of an interrupted run may still bring the scores."""
        if unscored and not self._finished:
            self._file.note(
                f"{len(unscored):,} of {count:,} samples failed or have no score; the run did not finish, so they are omitted"
            )
            return
        for sample in unscored:
            yield self._writer.event(self._event(sample, None), count)

    def _event(self, sample: Sample, score: float | None) -> EventFields:
        item, task = str(sample.id), self._log.eval.task
        if isinstance(sample.input, str):
            fingerprint = sample.input[:_FINGERPRINT].encode("utf-8", "replace")
            self._file.runs.add_item(self._file.path, task, item, fingerprint, self._benchmark)
        cluster = cluster_of(sample.metadata, self._cluster)
        return EventFields(self._benchmark, item, self._model, score, cluster, repeat=sample.epoch - 1)

    def _refuse_without_scores(self, samples: int) -> None:
        if not self._finished:
            return  # its first scores may still come
        found = f"{samples:,} samples without a score" if samples else "no samples"
        reason = f"the log holds {found}; score it with `inspect score`, log the samples, or omit the file"
        raise Refusal("samples", found, reason, self._benchmark)


def _raw(sample: Sample) -> bytes:
    return json.dumps({"id": sample.id, "epoch": sample.epoch, "scores": sample.all_scores}).encode()
