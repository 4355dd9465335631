"""Write logs as other programs write them, and read them through an importer."""

import json
import struct
import zlib

import zstandard

from monitor.files.formats.choices import Choices
from monitor.files.importer import Importer
from monitor.files.streams.read import read_files

TIME = "2026-01-02T03-04-05.678901"
STORED, DEFLATED, ZSTANDARD = 0, 8, 93


class Read:
    """What files come to: events, declarations and rejects, and its notes."""

    def __init__(self, *paths, **choices):
        self.notes = []
        importer = Importer(Choices.parse(**choices), self.notes.append)
        segments = list(read_files(importer.find(paths), opener=importer.open))
        self.events = [event for segment in segments for event in segment.events]
        self.declared = [(d.declare, d.items) for segment in segments for d in segment.declarations]
        self.rejects = [reject for segment in segments for reject in segment.rejects]

    @property
    def scores(self):
        return {(e.benchmark, e.item_id, e.repeat, e.model): e.score for e in self.events}

    @property
    def faults(self):
        return [(r["line"], r["field"], r["found"], r["reason"]) for r in self.rejects]


def sample(doc, score=1.0, *, filter="none", metrics=None, **more):  # noqa: A002 - as the field is called
    """A line of lm-evaluation-harness."""
    values = {"acc": score} if metrics is None else metrics
    contents = {"question": f"{doc}?", "subject": ["law", "math"][doc % 2]}
    return {
        "doc_id": doc,
        "doc": contents,
        "target": "x",
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": "\n"}},
        "resps": [["a"]],
        "filtered_resps": ["a"],
        "filter": filter,
        "metrics": list(values),
        "doc_hash": f"{doc:064x}",
        **values,
        **more,
    }


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)) + "\n" for line in lines)
    )
    return path


def lm_eval_run(
    folder, model, samples, *, task="quiz", time=TIME, better=None, version=1.0, items=None, filters=("none",)
):
    """The files of one run of one task."""
    results = {
        "results": {task: {}},
        "configs": {task: {"filter_list": [{"name": name} for name in filters]}},
        "versions": {task: version},
        "higher_is_better": {task: better or {"acc": True}},
        "n-samples": {task: {"original": 1_000, "effective": items or len({s["doc_id"] for s in samples})}},
        "date": 1_800_000_000.5,
        "model_name": model,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"results_{time}.json").write_text(json.dumps(results, indent=2))
    return write_lines(folder / f"samples_{task}_{time}.jsonl", samples)


def lm_eval_group(folder, model, tasks, *, groups, scored, time=TIME, mean=0.5):
    """The files of one run of a group; `groups` maps each group to its parts, `scored` names those with a metric of their own: `mean`."""
    means = {task: sum(each["acc"] for each in samples) / len(samples) for task, samples in tasks.items()}
    results = {
        "results": {task: {"alias": task, "acc,none": mean} for task, mean in means.items()},
        "groups": {name: {"alias": name} | ({"acc,none": mean} if name in scored else {}) for name in groups},
        "group_subtasks": groups | {"alone": []},
        "versions": dict.fromkeys(tasks, 1.0),
        "higher_is_better": {task: {"acc": True} for task in tasks},
        "n-samples": {task: {"original": 9, "effective": len(samples)} for task, samples in tasks.items()},
        "model_name": model,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"results_{time}.json").write_text(json.dumps(results))
    for task, samples in tasks.items():
        write_lines(folder / f"samples_{task}_{time}.jsonl", samples)


def inspect_sample(item, value, *, epoch=1, done=None, error=None, **scores):
    """A sample of Inspect; `value` is what the scorer `match` gave, None for no score."""
    values = {} if value is None else {"match": {"value": value, "answer": "a"}}
    values |= {name: {"value": other} for name, other in scores.items()}
    return {
        "id": item,
        "epoch": epoch,
        "input": f"{item}?",
        "target": "x",
        "messages": [{"role": "user", "content": "?" * 50}],
        "scores": values,
        "metadata": {"category": "ab"[len(str(item)) % 2]},
        **({"error": {"message": error, "traceback": ""}} if error else {}),
        **({"completed_at": f"2026-01-01T00:00:{done:02d}+00:00"} if done is not None else {}),
    }


def inspect_header(*, model="m", status="success", task="quiz", items=None, **spec):
    """A header of an Inspect log."""
    dataset = {"name": "d", "samples": 100} | ({"sample_ids": list(range(items))} if items else {})
    return {
        "version": 2,
        "status": status,
        "eval": {
            "task": task,
            "task_version": 0,
            "task_id": model,
            "model": model,
            "dataset": dataset,
            "config": {},
            **spec,
        },
        "plan": {},
    }


def inspect_json(path, samples, **header):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**inspect_header(**header), "samples": samples}, indent=2))
    return path


def inspect_eval(path, samples, *, method=ZSTANDARD, running=False, summarized=None, **header):
    """An .eval archive; while running it has no header yet, and summaries in pieces of two samples."""
    head = inspect_header(**header)
    entries = {"_journal/start.json": {"version": 2, "eval": head["eval"], "plan": {}}}
    for s in samples:
        entries[f"samples/{s['id']}_epoch_{s['epoch']}.json"] = s
    short = [
        {key: value for key, value in s.items() if key not in {"messages", "error"}}
        | ({"error": s["error"]["message"]} if "error" in s else {})
        for s in samples
    ][: len(samples) if summarized is None else summarized]
    for k in range(0, len(short), 2):
        entries[f"_journal/summaries/{k // 2 + 1}.json"] = short[k : k + 2]
    if not running:
        entries["summaries.json"] = short
        entries["header.json"] = head
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zipped({name: json.dumps(data, indent=2).encode() for name, data in entries.items()}, method))
    return path


def zipped(entries, method):
    """A zip archive, written field by field: the standard library knows no zstd."""
    body, directory = b"", b""
    for name, data in entries.items():
        packed = _pack(data, method)
        common = struct.pack(
            "<5H3L2H", 20, 0x800, method, 0, 0x21, zlib.crc32(data), len(packed), len(data), len(name), 0
        )
        place = len(body)
        body += b"PK\x03\x04" + common + name.encode() + packed
        directory += (
            b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<3H2L", 0, 0, 0, 0, place) + name.encode()
        )
    end = struct.pack("<4H2LH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def _pack(data, method):
    if method == ZSTANDARD:
        half = len(data) // 2
        pack = zstandard.ZstdCompressor().compress
        return pack(data[:half]) + pack(data[half:])  # large entries come in several frames
    if method == DEFLATED:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush()
    return data
