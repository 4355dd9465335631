"""The messages of the readers, each produced and read whole: what was found, and what to do, down to its last word."""

import gzip
import json

import pytest

from tests.unit.files.native_logs import STORED, Read, zipped

HEAD = b"item_id,model,score\n"
EVENT = b'{"benchmark":"b","item_id":"q","model":"m","score":1}\n'
NUMBER = "use a number from 0 to 1, true, false or null"
NAME = "use a string of 1 to 200 printable characters"
MAP = "for files, `rankwatch map FILE` proposes how to read it"
DAMAGED = "is cut off or damaged, and nothing of it is read; copy the file again, or write it again"


def made(value):
    return json.dumps(value).encode()


MESSAGES = [
    ("t.csv", b"a,b\nx,y\n", "columns", "no column for item_id, model and score in a, b; name them with --columns item_id=COLUMN,model=COLUMN,score=COLUMN; `rankwatch map FILE` proposes a mapping"),
    ("t.csv", b"item_id,new,old\nq,1,0\n", "columns", "no column for score in item_id, new, old; if new, old are models, add --columns 'models=*'; else name the score with --columns score=COLUMN"),
    ("t.csv", b"prompt,new,old\nq,1,0\n", "columns", "no column for item_id and score in prompt, new, old; if new, old are models, add --columns 'item_id=prompt,models=*'; else name the score with --columns score=COLUMN"),
    ("t.csv", b",question,model,correct\n0,q,m,1\n", "columns", "no column for item_id in (no name), question, model, correct; name it with --columns item_id=question; `rankwatch map FILE` proposes a mapping"),
    ("t.csv", b"item_id,model,score,score\nq,m,1,0\n", "columns", "2 columns are called score; rename or remove all but one"),
    ("t.csv", HEAD + b"q,m\n", "record", "the row has 2 cells and the table 3 columns; quote cells that hold a separator"),
    ("t.csv", HEAD + b'"q,m,1\n', "record", 'a cell opens with " and is never closed; close it, and double each " within a quoted cell'),
    ("t.csv", HEAD + b"q\xe8,m,1\n", "record", "byte 0xe8 at position 1 is not valid UTF-8; write the file as UTF-8"),
    ("t.csv", HEAD + b"q,m,50%\n", "score", f'"50%" is not a number; {NUMBER}; {MAP}'),
    ("t.csv", HEAD + b"q,m,correct\n", "score", f'"correct" is not a number; {NUMBER}; {MAP}'),
    ("t.csv", HEAD + b'q,m,"0,5"\n', "score", f'"0,5" is not a number; {NUMBER}; write decimals with a point'),
    ("t.csv", HEAD + b"q,m,-1\n", "score", f"-1.0 is out of range; {NUMBER}; if scores go from -1 to 1, add 1 and halve them (for files: --scale=-1:1)"),
    ("t.csv", HEAD + b"q,m,1e25\n", "score", f"1e+25 is out of range; {NUMBER}"),
    ("t.csv", HEAD + b"q,,1\n", "model", f'"" is too short; {NAME}'),
    ("t.csv", b"q,Status,Score,Named Scores,Grader Reason\n", "columns", "a table of promptfoo has columns of the same names for each provider; write the results with promptfoo eval -o results.json"),
    ("t.csv", b"dataset,version,metric,mode,a\n", "columns", "a summary of OpenCompass has one score a dataset; run it with --dump-eval-details, and give its folder results"),
    ("t.csv", b"id,model_x,model_y,preference\n1,a,b,left\n", "columns", "model_x, model_y and preference make a row a battle of two models; name its columns item_id (the prompt), model_a, model_b and winner (a, b or tie), and omit --columns"),
    ("t.csv", bytes(range(256)) * 9, "file", "the file is binary data, not results; use JSON lines, a table (CSV, TSV, Parquet) or the log of a harness"),
    ("t.jsonl", b'{"benchmark":"b","item_id":\n', "record", "the record is not valid JSON at column 28; write one JSON object a line"),
    ("t.jsonl", EVENT.replace(b":1}", b':1,"score":0}'), "score", "score comes twice in one object; keep one of the two"),
    ("t.jsonl", EVENT + EVENT.replace(b'"model":"m",', b""), "model", "the field is missing; add a string of 1 to 200 printable characters"),
    ("t.jsonl", b'{"question_id":1,"a":1,"b":0}\n', "columns", "no column for score in question_id, a, b; if a, b are models, add --columns 'models=*'; else name the score with --columns score=COLUMN"),
    ("t.json", b'{"a": 1}', "file", "the JSON document has a shape that no importer knows; `rankwatch map FILE` proposes how to read it"),
    ("t.json", b'{"a": ', "file", f"the JSON document {DAMAGED}"),
    ("t.json", made([{"q": "1", "ok": 1}]), "columns", "no column for item_id and score in q, ok; if every other column is a model, add --columns 'item_id=COLUMN,models=*'; else `rankwatch map FILE` proposes a mapping"),
    ("t.json", b"<!doctype html><p>", "file", "the file is an HTML page, not results; download the file itself, signed in where the site asks for it"),
    ("t.json", b"<?xml version='1.0'?>", "file", "the file is an XML document, not results; convert it to JSON lines or a table"),
    ("t.yaml", b"a: [1\n", "file", "the YAML is not valid at line 2, column 1 (did not find expected ',' or ']'); correct the file"),
    ("t.eval", zipped({"x": b"1"}, STORED), "file", "the zip archive is not an Inspect log; use .eval files as Inspect writes them"),
    ("t.xlsb", zipped({"xl/workbook.bin": b"1"}, STORED), "file", "the file is a binary Excel workbook, which is not read; save it as .xlsx, and give that file"),
    ("t.ods", zipped({"content.xml": b"1"}, STORED), "file", "the file is an OpenDocument spreadsheet, which is not read; save it as .xlsx, and give that file"),
    ("t.xls", b"\xd0\xcf\x11\xe0" + bytes(99), "file", "the file is a workbook of an old Excel (.xls), or has a password; save it as .xlsx without one, and give that file"),
    ("t.gz", gzip.compress(b"PAR1xx", mtime=0), "file", "the file is a gzip of another packed file, which is not read; unpack it with gunzip"),
    ("t.json", made({"mteb_version": "1", "scores": {}}), "file", "MTEB writes one score a task and none for its items, so no two models can be compared on the same items; rankwatch needs a score for each query, pair or text"),
    ("t.json", made([{"question_id": "q", "contest_date": "d", "output_list": []}]), "graded_list", "the file has answers without grades; give the *_eval_all.json of the run"),
    ("t.json", made({"config": {"agent_name": "a", "benchmark_name": "b"}, "results": {}}), "results", "the run has totals, and no successful_tasks and failed_tasks; run a version of HAL that writes both lists"),
    ("t.json", made({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": []}), "samples", "the log holds no samples; score it with `inspect score`, log the samples, or omit the file"),
    ("t.csv", b"id,traceId,name,dataType,value,stringValue,source\n1,t,exact,NUMERIC,1,,API\n", "file", "an export of scores names no item and no model; export the traces or the observations that have them"),
    ("t.csv", b"question,answer,contexts,faithfulness\nq,a,c,good\n", "metric", "no column has scores; check that the run was scored, or name the columns of a table with --columns"),
    ("t.csv", b'question,answer,contexts,faithfulness\nq,a,"c,1\n', "file", "the table breaks off within its last row, and nothing of it is read; copy the file again, or write it again"),
    ("t.csv", 2 * b"question,answer,contexts,faithfulness\nq,a,c,1\n", "record", "row 3 repeats the names of the columns, and the table has 4 columns; give each table a file, as the tool writes it"),
    ("t.csv", b"question,answer,contexts,faithfulness\nq,a,c,1,0\n", "record", "row 2 has 5 cells, and the table has 4 columns; give each table a file, as the tool writes it"),
    ("t.json", made([{"question": "q", "answer": "a", "contexts": []}, 1]), "file", "the file is not an array of rows; use it as the tool writes it"),
    ("t.json", made({"eval": {"T/0": [{"base_status": None, "solution": "x"}]}}), "base_status", "T/0 has no base_status or status; use a file as EvalPlus or BigCodeBench writes it"),
]  # fmt: skip

CHOSEN = [
    ("t.csv", HEAD + b"q,m,1\n", {"columns": ["score=points"]}, "no column for score in item_id, model, score; points is not one of them; choose another with --columns score=COLUMN"),
    ("t.csv", b"item_id,a,b\nq,1,x\n", {"columns": ["models=a|b"]}, f'column b holds "x", which is not a score; {NUMBER}'),
    ("m_eval_results.json", made({"eval": {"T/0": [{"base_status": "pass"}]}}), {"metric": ["f1"]}, "there is no metric f1; choose one of base with --metric"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "field", "message"), MESSAGES)
def test_a_message_has_what_was_found_and_what_to_do_to_its_last_word(tmp_path, name, content, field, message):
    path = tmp_path / name
    path.write_bytes(content)
    reject = Read(path).rejects[-1]
    assert (reject["source"], reject["field"], reject["reason"]) == (str(path), field, message)
    assert reject["line"] >= 1
    assert "; " in message or "close it" in message


@pytest.mark.parametrize(("name", "content", "choices", "message"), CHOSEN)
def test_a_choice_that_a_file_does_not_have_names_those_that_it_has(tmp_path, name, content, choices, message):
    (tmp_path / name).write_bytes(content)
    assert Read(tmp_path / name, **choices).rejects[-1]["reason"] == message


@pytest.mark.parametrize(
    "message", [message for *_, message in MESSAGES if "add --columns '" in message and "item_id=COLUMN" not in message]
)
def test_the_flag_of_a_message_works_at_once(tmp_path, message):
    content = next(content for _, content, _, text in MESSAGES if text == message)
    (tmp_path / "t.csv").write_bytes(content)
    flag = message.partition("add --columns '")[2].partition("'")[0]
    read = Read(tmp_path / "t.csv" if b"{" not in content[:1] else _lines(tmp_path, content), columns=[flag])
    assert read.rejects == []
    assert len({e.model for e in read.events}) == 2


def _lines(folder, content):
    (folder / "t.jsonl").write_bytes(content)
    return folder / "t.jsonl"
