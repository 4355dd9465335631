"""What is fuzzed: each target takes any bytes, and fails if they do more than they may.

Whatever comes from outside may be refused, with one of the documented errors or as a reject that says why; but it may not raise anything
else, and no good record beside it may be lost.
"""

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from monitor.engine.chunk_fold import Partition
from monitor.files.formats.choices import Choices
from monitor.files.importer import Importer
from monitor.files.streams.paths import PathError
from monitor.files.streams.read import read_files
from monitor.files.streams.segments import RAW_LENGTH
from monitor.files.tables.columns import find_battle, flatten
from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.body_parser import parse_body
from monitor.store.transfer.archive import ArchiveDamaged, read_archive
from schemas.records.chunks import Chunk, DeadLetter
from schemas.records.declaration import Declaration
from schemas.records.decode import decode_message
from schemas.records.events import BattleFields, EventFields
from schemas.records.names import name_fault
from schemas.records.text import Fault
from tests.unit.files.tool_files import TOOLS

CORPUS = Path(__file__).with_name("corpus")

FIRST = {"benchmark": "bench", "item_id": "first", "model": "good", "score": 1}
LAST = {"benchmark": "bench", "item_id": "last", "model": "good", "score": 0}
SAMPLE = {"doc": {}, "target": "x", "resps": [], "filtered_resps": [], "filter": "none", "metrics": ["acc"]}
TABLE = b"benchmark,item_id,model,score,cluster,repeat,epoch\nbench,first,good,1,,,\n"


def line(record):
    return json.dumps(record).encode() + b"\n"


# --- messages ---------------------------------------------------------------------------------------------------------------------------


def message(data):
    """A message of a topic: decoded, and folded between two good ones."""
    found = decode_message(data)
    assert isinstance(found, EventFields | Declaration | Fault)
    if isinstance(found, Fault):
        _sentence(found.field, found.found, found.reason)
    partition = Partition()
    records = [line(FIRST), data, line(LAST)]
    delta = partition.fold(Chunk(0, 0, 30, [0, 10, 20], records))
    bench = partition.benchmarks["bench"]
    for letter in delta.dead_letters:
        assert isinstance(letter, DeadLetter)
        json.dumps(letter._asdict())
    # The good ones count, unless the record between them is the very same key with another score.
    scores = _scores(bench)
    assert scores["first", "good", 0] == 1.0
    assert ("last", "good", 0) in scores
    for name, benchmark in partition.benchmarks.items():
        assert name_fault(name) is None
        assert not [c.model for c in benchmark.contestants if name_fault(c.model)]
        assert all(0 <= score <= 1 for score in _scores(benchmark).values())
    # One at a time it comes to the same.
    single = Partition()
    for place, record in zip((0, 10, 20), records, strict=True):
        single.fold(Chunk(0, place, place + 10, [place], [record]))
    assert single.counters == partition.counters
    assert {n: b.counters for n, b in single.benchmarks.items()} == {
        n: b.counters for n, b in partition.benchmarks.items()
    }
    assert all(_scores(b) == _scores(partition.benchmarks[n]) for n, b in single.benchmarks.items())


def _scores(benchmark):
    """Scores by item, model and epoch; they are kept in units of 1e-12."""
    matrix = benchmark.matrix()
    return {
        (row.item, contestant.model, contestant.epoch): benchmark.table.by_code[code] / 1e12
        for row, codes in zip(benchmark.rows, matrix.tolist(), strict=True)
        for contestant, code in zip(benchmark.contestants, codes, strict=True)
        if code >= 2 and row.repeat == 0
    }


def body(data):
    """The body of a request: all of it is taken, or a problem says what is wrong."""
    for kind in ("application/x-ndjson", "application/json"):
        try:
            submission = parse_body(data, kind)
        except ProblemError as problem:
            _sentence(str(problem))
        else:
            assert all(
                isinstance(event, EventFields) and name_fault(event.model) is None for event in submission.events
            )


# --- files ------------------------------------------------------------------------------------------------------------------------------


def read(name, contents, beside=None):
    """Read a file of this name, next to others, through an importer; return the events that it comes to."""
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        for other, content in {**(beside or {}), name: contents}.items():
            Path(folder, other).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, other).write_bytes(content)
        importer = Importer(Choices())
        events = []
        try:
            for segment in read_files(importer.find([path]), opener=importer.open):
                events += segment.events
                for reject in segment.rejects:
                    _sentence(reject["field"], reject["found"], reject["reason"])
                    assert len(reject["raw"]) <= RAW_LENGTH
                    json.dumps(reject)
        except (PathError, OSError):
            pass
    for event in events:
        models = (event.model_a, event.model_b) if isinstance(event, BattleFields) else (event.model,)
        assert not [n for n in (event.benchmark, event.item_id, *models) if name_fault(n)]
        assert event.score is None or 0 <= event.score <= 1
    return events


def _sentence(*texts):
    for text in texts:
        assert text.isprintable(), text
        assert len(text) < 1_000, text


def lines(data):
    """Lines of events, with a good one before and after whatever comes."""
    events = read("a.jsonl", line(FIRST) + data + b"\n" + line(LAST))
    assert [e.item_id for e in events][:1] == ["first"]
    assert [e.item_id for e in events][-1:] == ["last"]


def lm_eval(data):
    """Samples of lm-evaluation-harness, with a good one before and after."""
    first, last = (line({**SAMPLE, "doc_id": k, "doc_hash": f"{k:064x}", "acc": 1.0}) for k in (700_001, 700_002))
    events = read("samples_quiz_2026-01-02T03-04-05.678901.jsonl", first + data + b"\n" + last)
    items = [e.item_id for e in events]
    assert any("700001" in item for item in items)
    assert any("700002" in item for item in items)


def table(data):
    """Rows of a table after a good one, and a table of whatever comes. A quotation mark that stays open takes what follows with it."""
    events = read("a.csv", TABLE + data)
    assert [e.item_id for e in events][:1] == ["first"]
    read("a.tsv", data)


def array(data):
    """Elements of a JSON array after a good one; one that is not JSON refuses the file, as there is no telling where it ends."""
    contents = b"[" + line(FIRST) + b"," + data + b"]"
    events = read("a.json", contents)
    if _are_scores(contents):
        assert [e.item_id for e in events][:1] == ["first"]


def _are_scores(contents):
    """Return whether an array has objects only, and no field that makes its rows battles."""
    try:
        rows = json.loads(contents)
        return find_battle(list(dict.fromkeys(name for row in rows for name in flatten(row)))) is None
    except (ValueError, RecursionError, AttributeError):
        return False


def lighteval(data):
    """Details of lighteval: rows of JSON lines, as structs or as text in the columns doc and metric, next to a good one."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    rows = [{"doc": {"id": "first"}, "metric": {"acc": 1}}]
    for each in data.splitlines():
        try:
            value = json.loads(each)
        except (ValueError, RecursionError):
            value = {"doc": each.decode("utf-8", "replace"), "metric": each.decode("utf-8", "replace")}
        rows.append(value if isinstance(value, dict) else {"doc": value})
    try:
        table = pa.Table.from_pylist([{name: row.get(name) for name in ("doc", "metric")} for row in rows])
        file = pa.BufferOutputStream()
        write_table(table, file)
    except (pa.ArrowException, ValueError, OverflowError, RecursionError, TypeError):
        # The rows have no common type: they are written as text, which some versions do.
        texts = [{name: json.dumps(row.get(name)) for name in ("doc", "metric")} for row in rows]
        file = pa.BufferOutputStream()
        write_table(pa.Table.from_pylist(texts), file)
    events = read("details_quiz_2026-01-01T00-00-00.parquet", file.getvalue().to_pybytes())
    assert [e.item_id for e in events][:1] == ["first"]


def archive(data):
    """An exported state."""
    try:
        _, partitions = read_archive(iter(data.splitlines(keepends=True)))
        list(partitions)
    except ArchiveDamaged:
        pass


def tool(made, data):
    """Results of a harness, next to the files that it writes with them."""
    read(made.results, data, made.files)


TOOL_TARGETS = {f"tool_{name.lower()}": partial(tool, made) for name, made in TOOLS.items()}
"""One for each harness; the corpus begins with the results as it writes them."""

TARGETS = {
    "message": message,
    "body": body,
    "lines": lines,
    "lm_eval": lm_eval,
    "table": table,
    "json_lines": partial(read, "other.jsonl"),
    "inspect_json": partial(read, "log.json"),
    "inspect_eval": partial(read, "log.eval"),
    "gzip": partial(read, "a.jsonl.gz"),
    "parquet": partial(read, "a.parquet"),
    "array": array,
    "lighteval": lighteval,
    "archive": archive,
    **TOOL_TARGETS,
}
"""By the name of the folder of their corpus, if they have one."""


def seeds(name):
    """Return the kept corpus of a target."""
    folder = CORPUS / name
    kept = [file.read_bytes() for file in sorted(folder.iterdir())] if folder.is_dir() else []
    return kept if name not in TOOL_TARGETS else [TOOL_TARGETS[name].args[0].results_bytes, *kept]
