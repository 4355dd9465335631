"""A copy of a file is no run of its own."""

import gzip
import json
from pathlib import Path

import pytest

from monitor.files.dated_runs import DatedRuns, name_of
from monitor.files.importer import Importer
from monitor.files.streams.read import read_files


def write(folder, run, model="new"):
    rows = [
        {"benchmark": "agent", "item_id": item, "model": model, "score": 1, "attributes": {"ms": run}} for item in "ab"
    ]
    path = folder / f"{model}-{run:02d}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def same(path):
    (path.parent / "other.jsonl").write_bytes(path.read_bytes())


def in_another_order(path):
    lines = path.read_text().splitlines()
    (path.parent / "other.ndjson").write_text("\r\n\r\n".join(f"{line}  " for line in reversed(lines)))


def zipped(path):
    (path.parent / "other.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))


def part(path):
    (path.parent / "other.jsonl").write_text(path.read_text().splitlines()[0])


def joined(path):
    lines = [each.read_text() for each in path.parent.glob("*.jsonl")]
    (path.parent / "other.jsonl").write_text("".join(lines))


def table(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    cells = [f"agent,{row['item_id']},{row['model']},{row['score']}" for row in rows]
    (path.parent / "other.csv").write_text("\n".join(["benchmark,item_id,model,score", *cells]))


def read(folder, name=str, *, by_file=True):
    runs, files = DatedRuns(name, by_file=by_file), sorted(folder.iterdir())
    runs.files = {str(file): file for file in files}
    for segment in read_files(files, opener=Importer().open):
        runs.add(segment)
    return runs, {model: found for (_, model), (found, _) in runs.sentinels().items()}


def test_runs_with_lines_of_their_own_are_no_copies_however_alike_they_answer(tmp_path):
    for run in range(3):
        write(tmp_path, run)
    runs, found = read(tmp_path)
    assert runs.copied(found["new"]) is None


@pytest.mark.parametrize("copy", [same, in_another_order, zipped, part, joined, table])
def test_a_copy_is_found_in_any_order_format_or_part(tmp_path, copy):
    path = [write(tmp_path, run) for run in range(3)][1]
    copy(path)
    runs, found = read(tmp_path)
    pair = runs.copied(found["new"])
    assert pair is not None
    assert any("other." in name for name in pair)


def test_a_copy_of_another_model_is_of_no_account(tmp_path):
    write(tmp_path, 0)
    same(write(tmp_path, 0, "third"))
    runs, found = read(tmp_path)
    assert runs.copied(found["new"]) is None
    assert runs.copied(found["third"]) is not None


def test_a_copy_is_found_where_dates_name_the_runs(tmp_path):
    for day in range(3):
        write(tmp_path, day).rename(tmp_path / f"new_2026-08-{1 + day:02}.jsonl")
    copy = tmp_path / "new_2026-08-09.jsonl"
    copy.write_bytes((tmp_path / "new_2026-08-02.jsonl").read_bytes())
    runs, found = read(tmp_path, name_of, by_file=False)
    assert [run.name for run in found["new"]] == [f"2026-08-0{day}" for day in (1, 2, 3, 9)]
    assert {Path(each).name for each in runs.copied(found["new"])} == {copy.name, "new_2026-08-02.jsonl"}


def test_runs_that_a_field_names_are_no_copies_also_in_one_file(tmp_path):
    for run in range(3):
        for kept in ("all.jsonl", f"{run}.jsonl"):
            with (tmp_path / kept).open("a") as file:
                row = {"benchmark": "agent", "item_id": "a", "model": "new", "score": 1, "run": f"{kept} {run}"}
                file.write(f"{json.dumps(row)}\n")
    runs, found = read(tmp_path, name_of, by_file=False)
    assert len(found["new"]) == 6
    assert runs.copied(found["new"]) is None


def test_each_file_of_a_run_is_compared(tmp_path):
    """A folder of an archive is a run; here the second one has the first one in two parts."""
    whole = write(tmp_path, 0)
    (tmp_path / "second").mkdir()
    for k, line in enumerate(whole.read_text().splitlines()):
        (tmp_path / "second" / f"part-{k}.jsonl").write_text(line)
    files = [whole, *sorted((tmp_path / "second").iterdir())]
    runs = DatedRuns(lambda file: Path(file).parent.name, by_file=True)
    runs.files = {str(file): file for file in files}
    for segment in read_files(files, opener=Importer().open):
        runs.add(segment)
    (of, _) = runs.sentinels()["agent", "new"]
    assert len(of) == 2
    assert runs.copied(of) is not None
