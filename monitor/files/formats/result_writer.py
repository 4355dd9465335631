"""Write the results of a harness as events: names, metric, scale, failures and clusters as the command line chooses them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add, attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from monitor.files.formats.choices import FAILED_SKIP, FAILED_ZERO, LOWER, NONE, cluster_of, clusters_of
from monitor.files.formats.documents import decode_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, ResultColumns, Run, Single, Tool
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.event_lines import Columns, EventLineWriter, RecordTranslator, Translator
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream, Piece, TranslatedStream
from schemas.records.decode import OUT_OF_RANGE, above_scale
from schemas.records.events import EventFields
from schemas.records.lenient import read_score
from schemas.records.text import Fault, shorten

_PART: Final = "subtask"
_MISSING: Final = "the score is missing; choose another metric with --metric, or add the score"
_OUT_OF_RANGE: Final = f"{OUT_OF_RANGE}; choose another metric with --metric, or give its largest value with --scale"
_TOGETHER: Final = 1_000  # results that are written together

_IN_COLUMNS: Final = 4_000  # results by column that are read together: most of a chunk of the fold

_LISTED: Final = 12  # metrics that a note lists; some harnesses write dozens


def open_tool(tool: Tool, log: LogFile, plugin: str | None = None) -> Stream:
    """Open a file of a harness as event lines; an error of a plugin refuses the file, and ends nothing else."""
    if tool.lines is not None:
        return TranslatedStream(open_stream(log.path), lambda _: translate_lines(tool, log, plugin))
    assert tool.read is not None, "a tool reads files or their lines"
    read = tool.read
    if plugin is None:
        return DocumentStream(log.path, lambda: write_results(tool, log, read(log)))
    return DocumentStream(log.path, lambda: write_results(tool, log, _guarded(read(log), plugin)))


def translate_lines(tool: Tool, log: LogFile, plugin: str | None = None) -> Translator:
    """Return the translator of a file with a record a line."""
    assert tool.lines is not None, "the caller checks"
    try:
        read = tool.lines(log)
    except Refusal as refusal:
        read = _refusing(refusal)
    return _LineTranslator(tool, log, read if plugin is None else lambda record: _guarded(read(record), plugin))


def _refusing(refusal: Refusal) -> Callable[[Any], Iterable[Entry]]:
    """Return a reader of a file that is refused before its first record: a file that belongs to it is a link."""

    def read(_: object) -> Iterable[Entry]:
        raise refusal

    return read


def _guarded(entries: Iterable[Entry], plugin: str) -> Iterator[Entry]:
    try:
        yield from entries
    except (Refusal, Broken):
        raise
    except Exception as error:
        reason = f"the importer {plugin} failed ({type(error).__name__}); report it to its authors, or use --map"
        raise Refusal("importer", plugin, reason) from error


def write_results(tool: Tool, log: LogFile, entries: Iterable[Entry]) -> Iterator[Piece]:
    """Write the event lines of a whole file."""
    return _ResultWriter(tool, log).document(entries)


class _LineTranslator(RecordTranslator):
    """Translates a file that a harness appends to."""

    def __init__(self, tool: Tool, log: LogFile, read: Callable[[Any], Iterable[Entry]]) -> None:
        super().__init__(log.note)
        self._tool, self._results, self._read = tool, _ResultWriter(tool, log), read
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(tool.record)

    def events(self, line: bytes) -> Iterator[EventFields | Fault | bytes]:
        """Return the events of a line."""
        try:
            record = self._decode(line)
        except Broken:
            found = shorten(line.decode("utf-8", "replace"))
            yield Fault("record", found, "the line is not a JSON object; check that the file was not cut or edited")
        except Refusal as refusal:
            yield refusal.fault._replace(refuses=False)  # the next line may be a good one
        else:
            for entry in self._read(record):
                for each in entry.rows() if isinstance(entry, ResultColumns) else (entry,):
                    if type(each) is Result and (quick := self._results.quick(each)) is not None:
                        yield quick
                    else:
                        yield from self._results.events(each)

    def _decode(self, line: bytes) -> Any:  # noqa: ANN401 - an instance of the tool's record
        try:
            return self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return decode_document(line, self._tool.record, self._tool.name)

    def end(self) -> Fault | None:
        """Note what failed; a file that ends has no fault of its own."""
        self._results.finish()
        return None


class _Metric(NamedTuple):
    name: str
    lower: bool
    largest: float

    @property
    def converts(self) -> bool:
        """Whether a value of the metric is not its score."""
        return self.lower or self.largest != 1

    def scores(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """Return the scores of values; None if one of them needs a closer look."""
        if not self.converts:
            return values
        if not set(map(type, values)) <= {float, int, bool} or not (min(values) >= 0 and max(values) <= self.largest):
            return None
        scores = [value / self.largest for value in values] if self.largest != 1 else list(map(float, values))
        return [1.0 - score for score in scores] if self.lower else scores


class _Known(NamedTuple):
    """What is settled of a model on a benchmark, or a part of it, after its first result."""

    # `prefix` is put ahead of the item. `cluster` is the tag that is the cluster, unless `fixed` is it.
    metric: _Metric
    cluster: str | None
    benchmark: str
    model: str
    prefix: str
    fixed: str | None


_NAMES: Final = attrgetter("benchmark", "model", "prefix", "fixed")


class _ResultWriter:
    """Turns results into events, under the choices of the command line."""

    def __init__(self, tool: Tool, log: LogFile) -> None:
        self._tool, self._log, self._choices = tool, log, log.choices
        self._writer = EventLineWriter(log.note)
        self._metrics: dict[str, _Metric] = {}
        self._runs: set[tuple[str, str]] = set()
        self._given: dict[tuple[str, str], Run] = {}
        self._first_model: str | None = None
        self._clusters: dict[str, str | None] = {}
        self._failures: Counter[tuple[str, str]] = Counter()
        self._results = 0
        self._rows: list[Result] = []
        self._number = 1
        self._known: dict[tuple[str, str, str | None], _Known] = {}
        log.note_unused(tool.name, "metric", "cluster", "benchmark", "failed")

    def document(self, entries: Iterable[Entry]) -> Iterator[Piece]:
        """Write the event lines of a whole file; those ahead of a break are written too."""
        try:
            yield from self._written(entries)
        except (Refusal, Broken):
            yield from self._rows_written()
            raise
        if not self._results:
            raise Refusal(
                "file", "no results", f"{self._tool.name} without any result; check that the run wrote results"
            )
        self.finish()

    def _written(self, entries: Iterable[Entry]) -> Iterator[Piece]:
        for entry in entries:
            if type(entry) is Result:
                self._rows.append(entry)
                if len(self._rows) >= (_TOGETHER if self._known else 1):
                    yield from self._rows_written()
                continue
            yield from self._rows_written()
            if isinstance(entry, ResultColumns):
                yield from self._columns_written(entry)
            else:
                yield from self._singly(entry)
        yield from self._rows_written()

    def _singly(self, *entries: Single) -> Iterator[Piece]:
        """Write what is not written together: the first results of a run, and those that need a closer look."""
        for entry in entries:
            number = self._number = entry.number if isinstance(entry, Result) else self._number
            quick = self.quick(entry) if isinstance(entry, Result) else None
            for event in self.events(entry) if quick is None else (quick,):
                if isinstance(event, EventFields):
                    self._writer.add(event, number)
                else:
                    if kept := self._writer.flush():
                        yield kept
                    yield event if isinstance(event, bytes) else self._writer.reject(event, number)
        if kept := self._writer.flush():
            yield kept

    def _rows_written(self) -> Iterator[Piece]:
        """Write the results that were kept, together where nothing about them is new."""
        rows, self._rows = self._rows, []
        lines = self._together(rows) if len(rows) > 1 else None
        if lines is not None:
            self._number = rows[-1].number
            yield lines
        else:
            yield from self._singly(*rows)

    def _columns_written(self, results: ResultColumns) -> Iterator[Piece]:
        """Write results by column where they are like the first, which settles what counts."""
        yield from self._singly(*results.rows(0, 1))
        for start in range(1, len(results.items), _IN_COLUMNS):
            some = slice(start, start + _IN_COLUMNS)
            lines = self._of_columns(results, some)
            if lines is not None:
                yield lines
            else:
                yield from self._singly(*results.rows(some.start, some.stop))

    def _together(self, rows: list[Result]) -> bytes | None:
        """Write results by column; None if one of them needs a closer look."""
        benchmarks, models, items, values, repeats, tags, failures, _, parts, epochs = zip(*rows, strict=True)
        keys = list(zip(benchmarks, models, parts, strict=True))
        known = {key: self._known.get(key) for key in set(keys)}
        settled = [each for each in known.values() if each is not None]
        if len(settled) < len(known) or len({(each.metric, each.cluster) for each in settled}) > 1 or any(failures):
            return None
        metric, cluster = settled[0].metric, settled[0].cluster
        try:
            scores = metric.scores([each[metric.name] for each in values])
        except KeyError:
            return None
        if scores is None:
            return None
        clusters = None if cluster is None else [each.get(cluster) for each in tags]
        if len(settled) == 1:
            return self._write(settled[0], items, scores, clusters, repeats, epochs)
        each_known = [known[key] for key in keys]
        names, models, prefixes, fixed = zip(*map(_NAMES, each_known), strict=True)
        named = fixed if clusters is None else clusters_of(clusters)
        return self._counted([names, list(map(add, prefixes, items)), models, scores, named, repeats, epochs])

    def _of_columns(self, results: ResultColumns, some: slice) -> Piece | None:
        """Write some results by column; None if one of them needs a closer look."""
        known = self._known.get((results.benchmark, results.model, results.part))
        if known is None or known.metric.name not in results.values:
            return None
        scores = known.metric.scores(results.values[known.metric.name][some])
        if scores is None:
            return None
        items = results.items[some]
        count = len(items)
        tags = results.tags.get(known.cluster) if known.cluster is not None else None
        clusters = tags[some] if tags is not None else None
        if results.repeats is None and not known.prefix and known.fixed is None:
            labels = None if clusters is None else clusters_of(clusters)
            run = self._writer.run(known.benchmark, known.model, items, scores, labels)
            if run is not None:
                self._results += count
                return run
        repeats = [0] * count if results.repeats is None else results.repeats[some]
        return self._write(known, items, scores, clusters, repeats, [0] * count)

    def _write(
        self,
        known: _Known,
        items: Sequence[str],
        scores: Sequence[object],
        clusters: Sequence[object] | None,
        repeats: Sequence[int],
        epochs: Sequence[int],
    ) -> bytes | None:
        count = len(items)
        named = [known.fixed] * count if clusters is None else clusters_of(clusters)
        items = [known.prefix + item for item in items] if known.prefix else items
        return self._counted([[known.benchmark] * count, items, [known.model] * count, scores, named, repeats, epochs])

    def _counted(self, columns: Columns) -> bytes | None:
        lines = self._writer.columns(columns)
        self._results += len(columns[0]) if lines is not None else 0
        return lines

    def finish(self) -> None:
        """Note how many results are failures, and what they count as."""
        if not self._failures:
            return
        reasons = Counter[str]()
        for (_, reason), count in self._failures.items():
            reasons[reason] += count
        why = ", ".join(f"{shorten(reason)}: {count:,}" for reason, count in reasons.most_common(5))
        total = sum(reasons.values())
        zero = self._as_zero
        self._log.runs.set_failed(self._log.path, Counter() if zero else self._failures)
        counted = "count as 0" if zero else "are skipped"
        other = f"--failed {FAILED_SKIP} skips them" if zero else f"--failed {FAILED_ZERO} counts them as 0"
        self._log.note(f"{total:,} of {self._results:,} results failed in the run ({why}) and {counted}; {other}")

    @property
    def _as_zero(self) -> bool:
        return (self._choices.failed or self._tool.failed) == FAILED_ZERO

    def events(self, entry: Single) -> Iterator[EventFields | Fault | bytes]:
        """Return what one entry of a file comes to."""
        if isinstance(entry, Fault):
            self._results += 1
            yield entry
        elif isinstance(entry, Run):
            self._given[entry.benchmark, entry.model] = entry
        else:
            named = self._named(entry)
            if isinstance(named, Fault):
                self._results += 1
                yield named
                return
            if (named.benchmark, named.model) not in self._runs:
                yield from self._begin(entry, named)
            if (event := self._event(named)) is not None:
                self._results += 1
                yield event
                self._remember(entry, named)

    def _remember(self, entry: Result, named: Result) -> None:
        """Remember what the next results of a model need, where nothing is to be converted."""
        metric = self._metrics.get(named.benchmark)
        if metric is not None and not self._choices.scale:
            self._cluster(named)
            cluster = self._clusters[named.benchmark]
            prefix = named.item.removesuffix(entry.item)
            fixed = entry.part if cluster == _PART else None
            known = _Known(metric, None if fixed else cluster, named.benchmark, named.model, prefix, fixed)
            self._known[entry.benchmark, entry.model, entry.part] = known

    def quick(self, result: Result) -> EventFields | None:
        """Return the event of a result like the ones before it; None if it needs a closer look, which `events` takes."""
        known = self._known.get((result.benchmark, result.model, result.part))
        if known is None or result.failure is not None or known.metric.converts:
            return None
        value = result.values.get(known.metric.name)
        if value is not True and value is not False and not (isinstance(value, float | int) and 0 <= value <= 1):
            return None
        self._results += 1
        cluster = known.fixed if known.cluster is None else cluster_of(result.tags, known.cluster)
        item = known.prefix + result.item if known.prefix else result.item
        return EventFields(known.benchmark, item, known.model, value, cluster, result.repeat, result.epoch)

    def _named(self, result: Result) -> Result | Fault:
        """Apply the names on the command line, and place the item in its part."""
        if result.part is None and self._choices.benchmark is None and self._log.model is None:
            return result
        benchmark, item = result.benchmark, result.item
        if result.part is not None:
            if self._choices.subtasks:
                benchmark = f"{benchmark}/{result.part}"
            else:
                item = f"{result.part}/{item}"
        benchmark = self._choices.benchmark or benchmark
        if self._log.model is None:
            return result._replace(benchmark=benchmark, item=item)
        self._first_model = self._first_model or result.model
        if result.model != self._first_model:
            name, first = shorten(result.model), shorten(self._first_model)
            reason = f"{name} is a second model after {first}; use NAME=PATH (the field model of an upload) with a file of one model"
            return Fault("model", name, reason, benchmark)
        return result._replace(benchmark=benchmark, item=item, model=self._log.model)

    def _begin(self, entry: Result, named: Result) -> Iterator[bytes]:
        """Check the run against earlier ones, and declare its item count."""
        self._runs.add((named.benchmark, named.model))
        run = self._given.get((entry.benchmark, entry.model), Run(entry.benchmark, entry.model))
        path = self._log.path
        task = named.benchmark if named.part is None else f"{named.benchmark}/{named.part}"
        self._log.runs.add_run(path, task, named.model, run.version, run.name or path.name, named.benchmark)
        if run.items and self._log.declares_items:
            yield self._writer.declare(named.benchmark, items=run.items)

    def _event(self, result: Result) -> EventFields | Fault | None:
        if result.failure is None:
            metric = self._metric(result)
            if metric is None:
                return None
            score = self._score(result, metric)
            if isinstance(score, Fault):
                return score
        else:
            self._failures[result.benchmark, result.failure] += 1
            score = 0.0 if self._as_zero else None
        cluster = self._cluster(result)
        return EventFields(result.benchmark, result.item, result.model, score, cluster, result.repeat, result.epoch)

    def _metric(self, result: Result) -> _Metric | None:
        """Return the metric of a benchmark; None if this record has others only, as some files spread them."""
        metric = self._metrics.get(result.benchmark)
        if metric is None:
            metric = self._choose(result)
            if metric is None:
                return None
            self._metrics[result.benchmark] = metric
        return None if self._tool.partial and metric.name not in result.values else metric

    def _choose(self, result: Result) -> _Metric | None:
        tool, names = self._tool, list(result.values)
        flag = self._choices.metric.of(result.benchmark)
        wanted = flag or self._log.runs.chosen.get(result.benchmark, {}).get("metric") or ""
        usual = next((metric for metric in tool.metrics if metric in names), None)
        name = wanted.removesuffix(LOWER) or usual or min(names, default="")
        if name not in names:
            if tool.partial and names and flag is not None:
                return None
            choose = f"choose one of {', '.join(map(shorten, names))} with --metric" if names else "check the file"
            missing = f"there is no metric {shorten(name)}" if name else "there is no metric"
            raise Refusal("metric", shorten(name), f"{missing}; {choose}", result.benchmark)
        lower = wanted.endswith(LOWER)
        if name in tool.lower and not lower:
            reason = f"less {shorten(name)} is better; use --metric {name}{LOWER}, which counts one minus its value"
            raise Refusal("metric", shorten(name), reason, result.benchmark)
        largest = 1.0 if self._choices.scale.of(result.benchmark) is not None else tool.scale.get(name, 1.0)
        self._log.runs.choose(result.benchmark, "metric", f"{name}{LOWER if lower else ''}")
        self._note(result, _Metric(name, lower, largest), names)
        return _Metric(name, lower, largest)

    def _note(self, result: Result, metric: _Metric, names: list[str]) -> None:
        others = [shorten(name) for name in names if name != metric.name]
        more = f" and {len(others) - _LISTED:,} more" if len(others) > _LISTED else ""
        also = f" (also available: {', '.join(others[:_LISTED])}{more})" if others else ""
        scale = f", divided by {metric.largest:g}" if metric.largest != 1 else ""
        parts = [f"metric {shorten(metric.name)}{' (less is better)' if metric.lower else ''}{scale}{also}"]
        field = self._cluster_field(result)
        parts.append(f"clusters by {shorten(field)}" if field else "no clusters")
        noted = result.benchmark, metric, field
        if noted not in self._log.runs.noted:
            self._log.runs.noted.add(noted)
            self._log.notices.choice(result.benchmark, "; ".join(parts))
        if result.part is not None and not self._choices.subtasks:
            self._log.notices(
                f"{shorten(result.benchmark)}: its subtasks are one benchmark, and ids begin with the subtask; --subtasks keeps them apart"
            )

    def _score(self, result: Result, metric: _Metric) -> float | bool | Fault | None:
        value = result.values.get(metric.name)
        value = read_score(value) if isinstance(value, str) else value
        if value is None or value is msgspec.UNSET:  # what a record does not have, as where a later version renamed it
            return None if value is None and metric.name in result.values else self._fault(result, metric, _MISSING)
        value = self._choices.scaled(value, result.benchmark)
        if isinstance(value, float) and math.isnan(value):
            return None
        if not isinstance(value, bool | int | float):
            return self._fault(result, metric, "is not a number; choose another metric with --metric")
        if metric.largest != 1:
            value = math.inf if value > metric.largest else value / metric.largest
        if not 0 <= value <= 1:
            return self._fault(result, metric, _OUT_OF_RANGE)
        if metric.lower:
            return 1.0 - value
        return value if isinstance(value, bool) else float(value)

    def _fault(self, result: Result, metric: _Metric, problem: str) -> Fault:
        value = result.values.get(metric.name)
        value = None if value is msgspec.UNSET else value
        found = "nothing" if value is None else "a list" if isinstance(value, list | dict) else shorten(value)
        reason = problem if value is None else f"{found} {problem}"
        above = above_scale(self._choices.scaled(value, result.benchmark)) if metric.largest == 1 else None
        return Fault(shorten(metric.name), found, reason, result.benchmark, result.item, above)

    def _cluster(self, result: Result) -> str | None:
        if result.benchmark not in self._clusters:
            self._clusters[result.benchmark] = self._cluster_field(result)
        name = self._clusters[result.benchmark]
        return result.part if name == _PART else cluster_of(result.tags, name)

    def _cluster_field(self, result: Result) -> str | None:
        if self._choices.cluster == NONE:
            return None
        own = self._tool.cluster
        if self._choices.cluster is None and own in result.tags:
            return own
        if self._choices.cluster is None and result.part is not None and not self._choices.subtasks:
            return _PART
        return self._choices.cluster_field(result.tags)
