"""Read files of any shape by a mapping: tables ``[[map]]`` in a `rankwatch.toml` next to the results, or in the file of ``--map``.

    [[map]]
    files = "*.json"
    records = "performances.*"
    item_id = "sample_id"
    model = "model"
    score = "Pass@1"
    scale = 100
    benchmark = { value = "livecodebench" }

`records` leads from the document to its records: names with dots, `*` for every element or field, `{model}` for every field whose name
is the model (or another field of an event). Paths of the other fields begin at the record; `.` is the record itself, `../` what holds it.

With ``evaluation = "NAME"`` the files are exports of OpenTelemetry, and the fields come from the attributes of its evaluation results.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from monitor.files.formats.documents import decode_document, read_bytes
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from monitor.files.maps.table import CAPTURE, EVERY, FileMap, Node, step_into
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Refusal, inside, open_regular
from monitor.files.tables.parquet_memory import open_table
from monitor.files.tools.open_telemetry import ERROR, NAME, Spans, as_export, evaluations, no_span, spans_of
from schemas.records.lenient import read_index, read_name, read_score, without_value
from schemas.records.text import Fault, shorten

_MOST_ITEMS: Final = 1_000_000


_HUGE: Final = 1e300


def mapped_tool(mappings: Sequence[FileMap], path: Path) -> Tool:
    """Return the reader of a file under the mappings that match it: line by line if it is JSON lines, else as a whole."""
    if path.name.lower().endswith(_LINES) and all(mapping.others is None for mapping in mappings):
        return Tool(_NAME, lines=lambda log: _line_reader(mappings, log), record=object)
    return Tool(_NAME, read=lambda log: _read(mappings, log))


_NAME: Final = "a file that is read by a mapping"
_TABLES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".xlsx")
_LINES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def _line_reader(mappings: Sequence[FileMap], log: LogFile) -> Any:  # noqa: ANN401 - a callable
    number = 0

    def read(record: object) -> Iterator[Entry]:
        nonlocal number
        number += 1
        yield from _rows_of(mappings, record, log, number)

    return read


def _read(mappings: Sequence[FileMap], log: LogFile) -> Iterator[Entry]:
    for row in read_rows(log.path, log.note):
        yield from _rows_of([each for each in mappings if each.evaluation is not None], row, log, 1)
        for mapping in [each for each in mappings if each.evaluation is None]:
            seen: dict[tuple[str, str], set[str]] = {}
            for entry in _entries(mapping, _records(mapping, row), log, 1):
                if isinstance(entry, Result) and mapping.others is not None:
                    seen.setdefault((entry.benchmark, entry.model), set()).add(entry.item)
                yield entry
            if mapping.items is not None:
                yield from _others(mapping, row, log, seen)


def read_rows(path: Path, note: Callable[[str], None] | None = None) -> list[Any]:
    """Return a document, the rows of a table as one array, or the records of JSON lines as one; `note` as for `read_bytes`."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        with open_table(path) as parquet:
            return [parquet.rows()]
    data = read_bytes(path, note)
    if name.endswith(_TABLES):
        try:
            text = data.decode("utf-8").lstrip("\r\n")
            separator = "\t" if ".tsv" in name else max(",;\t", key=text.partition("\n")[0].count)
            table = csv.DictReader(io.StringIO(text), delimiter=separator)
            columns = table.fieldnames or ()
            twice, number = next(iter(Counter(columns).most_common(1)), ("", 0))
            if number > 1:
                reason = f"{number} columns are called {shorten(twice)}; rename or remove all but one"
                raise Refusal("columns", "a table", reason)
            return [_whole_rows(list(table), note)]
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refusal("file", "a table", "the table is not valid CSV in UTF-8; write it again") from error
    if name.endswith(_LINES):
        return [[decode_document(line, object, _NAME) for line in data.splitlines() if line.strip()]]
    return [decode_document(data, object, _NAME)]


def _whole_rows(rows: list[dict[Any, Any]], note: Callable[[str], None] | None) -> list[dict[Any, Any]]:
    whole = [row for row in rows if None not in row]  # what a row has beyond the columns
    if len(whole) < len(rows) and note is not None:
        note(
            f"{len(rows) - len(whole):,} rows have more cells than columns, and are omitted; quote cells that hold a separator"
        )
    return whole


def _records(mapping: FileMap, root: object) -> Iterator[Node]:
    """Return the records of a document, with the names that were captured; a table and JSON lines begin at a row."""
    start: list[Node] = [(root, None, {})]
    if isinstance(root, list) and (not mapping.records or not _leads_into_list(mapping.records[0])):
        start = [(row, (root, None, {}), {}) for row in root]
    for up, name in zip(range(len(mapping.records), 0, -1), mapping.records, strict=True):
        start = [inner for node in start for inner in _step(mapping, node, name, up)]
    yield from start


def _leads_into_list(name: str) -> bool:
    return name == EVERY or name.isdecimal()


def _step(mapping: FileMap, node: Node, name: str, up: int) -> list[Node]:
    """Return what a node leads to; a field that another field of the event is read from is no record."""
    value, captured = node[0], node[2]
    capture = CAPTURE.fullmatch(name)
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if capture:
        wanted = mapping.models if capture[1] == "model" else mapping.only if up == 1 else ()
        read = {source.path[0] for source in mapping.sources.values() if source.path and source.up == up}
        return [
            (inner, node, {**captured, capture[1]: str(key)})
            for key, inner in pairs
            if (key in wanted if wanted else key not in read)
        ]
    if name == EVERY:
        return [(inner, node, captured) for _, inner in pairs]
    inner = step_into(value, name)
    return [] if inner is None else [(inner, node, captured)]


def _rows_of(mappings: Sequence[FileMap], record: object, log: LogFile, first: int) -> Iterator[Entry]:
    """Return what a line or a document holds by all of its mappings."""
    telemetry = [mapping for mapping in mappings if mapping.evaluation is not None]
    for mapping in mappings:
        if mapping.evaluation is None:
            yield from _entries(mapping, _records(mapping, record), log, first)
    for each in record if isinstance(record, list) and telemetry else [record] if telemetry else ():
        export = as_export(each)
        if isinstance(export, Fault):
            yield export
            continue
        for mapping in telemetry:
            for evaluation in evaluations(export, _spans(mapping)):
                yield from read_evaluation([mapping], evaluation.attributes, log)
        for evaluation in evaluations(export):
            name = evaluation.attributes.get(NAME)
            if not any(mapping.reads(evaluation.attributes) for mapping in telemetry):
                log.note(f"results of the evaluation {shorten(name)} are omitted: no [[map]] has evaluation = its name")


def _spans(mapping: FileMap) -> Spans:
    if mapping.spans is None:
        return no_span
    try:
        return spans_of(inside(mapping.folder, mapping.spans))
    except OSError as error:
        place = show(mapping.folder / mapping.spans)
        reason = f"{place}: {error.strerror or error}; correct spans in {mapping.where}, or remove it"
        raise Refusal("spans", place, reason) from None


def read_evaluation(mappings: Sequence[FileMap], attributes: dict[str, Any], log: LogFile) -> Iterator[Entry]:
    """Return the results of an evaluation of OpenTelemetry by the mappings that read it, none if there is none."""
    for mapping in mappings:
        if mapping.reads(attributes):
            yield from _entries(mapping, [(attributes, None, {})], log, 1)


def _entries(mapping: FileMap, nodes: Iterable[Node], log: LogFile, first: int) -> Iterator[Entry]:
    for number, node in enumerate(nodes, first):
        data = {name: source.read(node, log.path) for name, source in mapping.sources.items()}
        data = {**node[2], **data}
        if mapping.evaluation is None:
            data["score"] = without_value(data.get("score"))
        benchmark = read_name(data.get("benchmark")) if "benchmark" in data else log.choices.benchmark
        names = {
            "item_id": read_name(data.get("item_id")),
            "model": read_name(data.get("model")),
            "benchmark": benchmark,
        }
        if log.model is not None and names["model"] is None:
            names["model"] = log.model
        wrong = next((name for name, value in names.items() if not isinstance(value, str)), None)
        repeat, epoch = read_index(data.get("repeat")), read_index(data.get("epoch"))
        if wrong is not None or not isinstance(repeat, int) or not isinstance(epoch, int):
            wrong = wrong or ("epoch" if isinstance(repeat, int) else "repeat")
            yield _missing(mapping, wrong, data.get(wrong), benchmark)
            continue
        if mapping.evaluation is not None and data.get("score") is None and node[0].get(ERROR) is None:
            yield _missing(mapping, "score", None, benchmark)
            continue
        if data.get("score") is None:
            log.note(
                f"records without a value at {mapping.sources['score'].name} are not scored, and count as skipped items"
            )
        tags = {"cluster": data["cluster"]} if data.get("cluster") is not None else {}
        values = {"score": _score(mapping, data.get("score"))}
        yield Result(
            str(names["benchmark"]), str(names["model"]), str(names["item_id"]), values, repeat, tags, None, number, epoch=epoch
        )  # fmt: skip


def _missing(mapping: FileMap, name: str, value: object, benchmark: object) -> Fault:
    source = mapping.sources.get(name)
    if source is None:
        return Fault(name, "nothing", f"the mapping has no {name}; add it to {mapping.where}, or use --benchmark NAME")
    what = (
        "the file's path does not match"
        if source.expression
        else f"the result has no text or number in its attribute {source.name}"
        if mapping.evaluation is not None
        else f"there is no text or whole number at {source.name}"
    )
    found = "nothing" if value is None else shorten(value)
    about = benchmark if isinstance(benchmark, str) else None
    return Fault(name, found, f"{what}; correct {name} in {mapping.where}", about)


def _score(mapping: FileMap, value: object) -> object:
    """Return a score on the scale from 0 to 1 of which more is better; a value that is no number is left for its message."""
    if isinstance(value, str) and value in mapping.scores:
        return mapping.scores[value]
    if isinstance(value, bool):
        value = mapping.scores.get(str(value).lower(), value)
    number = percentage(value)
    if not isinstance(number, int | float) or (isinstance(number, float) and math.isnan(number)):
        return number
    if mapping.threshold is not None:
        return (number <= mapping.threshold) if mapping.lower_is_better else (number >= mapping.threshold)
    if (mapping.lowest, mapping.scale) != (0, 1) and not isinstance(number, bool):
        number = (number - mapping.lowest) / (mapping.scale - mapping.lowest) if abs(number) < _HUGE else math.inf
    return 1 - number if mapping.lower_is_better and 0 <= number <= 1 else number


def percentage(value: object) -> object:
    """Return a score as `read_score` does, and ``85%`` as 0.85.

    >>> percentage("85 %"), percentage("0.5"), percentage("?")
    (0.85, 0.5, '?')
    """
    if isinstance(value, str) and value.endswith("%"):
        number = read_score(value[:-1].strip())
        if isinstance(number, int | float) and not isinstance(number, bool):
            return number / 100 if abs(number) < _HUGE else math.inf
    return read_score(value)


def _others(mapping: FileMap, root: object, log: LogFile, seen: Mapping[tuple[str, str], set[str]]) -> Iterator[Entry]:
    """Return the items of a list that have no record, with the score that the mapping gives them."""
    assert mapping.items is not None, "the caller checks"
    place = show(mapping.folder / mapping.items)
    try:
        with open_regular(inside(mapping.folder, mapping.items)) as file:
            text = file.read(1 << 28).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = (error.strerror or "cannot be read") if isinstance(error, OSError) else "is not UTF-8"
        reason = f"the list of items {place}: {problem}; correct items in {mapping.where}"
        raise Refusal("items", place, reason) from None
    items = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))[:_MOST_ITEMS]
    runs = dict(seen)
    if not runs:  # nothing is listed: everything passed, if the file's name names the model
        names = [
            mapping.sources[name].read((root, None, {}), log.path) if name in mapping.sources else None
            for name in ("benchmark", "model")
        ]
        benchmark, model = names[0] or log.choices.benchmark, names[1] or log.model
        if not (isinstance(benchmark, str) and isinstance(model, str)):
            reason = (
                f"no record names the model, and no item is listed; use {{ file = 'expression' }} in {mapping.where}"
            )
            raise Refusal("model", "nothing", reason)
        runs = {(benchmark, model): set()}
    for (benchmark, model), done in runs.items():
        unknown = done - set(items)
        if unknown:
            reason = f"{shorten(min(unknown))} is not in {place}; list all items there"
            raise Refusal("items", shorten(min(unknown)), reason, benchmark)
        rest = [item for item in items if item not in done]
        log.note(
            f"{shorten(model)}: {len(done):,} items have a record; the other {len(rest):,} of {place} get {mapping.others:g}"
        )
        for number, item in enumerate(rest, 1):
            yield Result(benchmark, model, item, {"score": mapping.others}, number=number)
