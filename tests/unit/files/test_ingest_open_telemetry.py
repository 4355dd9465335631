"""Evaluation results of OpenTelemetry in files: OTLP JSON of logs and traces, by a mapping."""

import json

import pytest

from monitor.files.formats.choices import ChoiceError
from monitor.files.maps.table import read_mappings
from tests.unit.files.native_logs import Read

MAP = '[[map]]\nfiles = "*.jsonl"\nevaluation = "Correctness"\nitem_id = "test.case.id"\n'


def attributes(**values):
    """Attributes as OTLP JSON writes them: integers of 64 bits as text."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": name.replace("_", "."), "value": {kinds[type(v)]: str(v) if type(v) is int else v}}
        for name, v in values.items()
    ]


def result(score=1.0, name="Correctness", **more):
    values = {} if score is None else {"gen.ai.evaluation.score.value": score}
    found = attributes(**{"gen.ai.evaluation.name": name, **values, **more})
    return [{**each, "key": each["key"].replace("gen.ai", "gen_ai")} for each in found]


def logs(*records, resource=()):
    """A line of logs: each record is a list of attributes, or one with the span it belongs to."""
    rows = [r if isinstance(r, dict) else {"attributes": r} for r in records]
    for row in rows:
        row.setdefault("eventName", "gen_ai.evaluation.result")
    return {"resourceLogs": [{"resource": {"attributes": list(resource)}, "scopeLogs": [{"logRecords": rows}]}]}


def traces(*spans):
    """A line of traces: attributes of the span, and of its events."""
    rows = [
        {
            "traceId": "t",
            "spanId": str(number),
            "attributes": own,
            "events": [{"name": "gen_ai.evaluation.result", "attributes": each} for each in events],
        }
        for number, (own, events) in enumerate(spans, 1)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}


def case(item, model="m", **more):
    found = attributes(**{"test.case.id": item, "gen.ai.request.model": model, **more})
    return [{**each, "key": each["key"].replace("gen.ai", "gen_ai")} for each in found]


def read(folder, table=MAP, **files):
    (folder / "rankwatch.toml").write_text(table)
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Read(folder)


def keys(found):
    return [(e.benchmark, e.item_id, e.model, e.score, e.repeat) for e in found.events]


def test_a_result_of_a_span_has_the_attributes_of_the_span(tmp_path):
    table = MAP + 'repeat = "test.case.repeat"\n'
    found = read(tmp_path, table, traces=[traces((case("q1", **{"test.case.repeat": 2}), [result(0.5)]))])
    assert keys(found) == [("Correctness", "q1", "m", 0.5, 2)]


def test_the_attributes_of_a_result_come_before_those_of_its_span_and_of_its_resource(tmp_path):
    line = logs(result(1.0, **{"test.case.id": "q1"}), result(0.0) + case("q2", "own"), resource=case("none", "shared"))
    assert keys(read(tmp_path, logs=[line])) == [
        ("Correctness", "q1", "shared", 1.0, 0),
        ("Correctness", "q2", "own", 0.0, 0),
    ]


def test_log_records_are_joined_with_the_spans_of_a_file(tmp_path):
    line = logs(
        {"attributes": result(0.0), "traceId": "t", "spanId": "2"},
        {"attributes": result(1.0), "traceId": "t", "spanId": "9"},
    )
    spans = [traces((case("q1"), []), (case("q2"), []))]
    (tmp_path / "spans").mkdir()
    (tmp_path / "spans" / "all.json").write_text(json.dumps(spans[0]))
    found = read(tmp_path, MAP + 'spans = "spans/all.json"\n', logs=[line])
    assert keys(found) == [("Correctness", "q2", "m", 0.0, 0)]
    assert [each["field"] for each in found.rejects] == ["item_id"]
    (tmp_path / "spans" / "all.json").unlink()
    assert "spans" in read(tmp_path, MAP + 'spans = "spans/all.json"\n', logs=[line]).rejects[0]["reason"]


def test_a_failed_evaluation_is_skipped_and_one_without_a_score_is_rejected(tmp_path):
    line = logs(
        result(None, **{"error.type": "timeout"}) + case("q1"), result(None) + case("q2"), result(0.0) + case("q3")
    )
    (failed,) = (
        each
        for each in line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][2]["attributes"]
        if "doubleValue" in each["value"]
    )
    failed["value"]["doubleValue"] = "NaN"
    found = read(tmp_path, logs=[line])
    assert keys(found) == [("Correctness", "q1", "m", None, 0), ("Correctness", "q3", "m", None, 0)]
    assert [each["field"] for each in found.rejects] == ["score"]


def test_an_evaluation_without_a_mapping_is_omitted_with_a_note(tmp_path):
    found = read(tmp_path, logs=[logs(result() + case("q1"), result(name="Tone") + case("q1"))])
    assert [e.item_id for e in found.events] == ["q1"]
    assert any("Tone are omitted" in note for note in found.notes)


def test_every_evaluation_is_a_benchmark_of_its_own_and_labels_have_scores(tmp_path):
    table = (
        MAP.replace('"Correctness"', '"*"')
        + 'score = "gen_ai.evaluation.score.label"\nscores = { pass = 1, fail = 0 }\n'
    )
    label = {"gen.ai.evaluation.score.label": "pass"}
    found = read(
        tmp_path, table, logs=[logs(result(name="A", **label) + case("q"), result(name="B", **label) + case("q"))]
    )
    assert keys(found) == [("A", "q", "m", 1.0, 0), ("B", "q", "m", 1.0, 0)]


def test_other_records_and_other_lines_hold_no_results(tmp_path):
    other = {"eventName": "gen_ai.client.inference", "attributes": result() + case("q1")}
    old = {
        "eventName": None,
        "attributes": result() + case("q2") + attributes(**{"event.name": "gen_ai.evaluation.result"}),
    }
    found = read(
        tmp_path, logs=[logs(other), {"resourceMetrics": []}, {"resourceLogs": None}, logs(old), {"resourceLogs": [3]}]
    )
    assert [e.item_id for e in found.events] == ["q2"]
    assert len(found.rejects) == 1


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('evaluation = ""\nitem_id = "i"\n', "evaluation: use"),
        ('evaluation = 3\nitem_id = "i"\n', "evaluation: use"),
        ('evaluation = "A"\n', "item_id is missing"),
        ('evaluation = "A"\nitem_id = "i"\nrecords = "x"\n', "records has no meaning"),
        ('item_id = "i"\nmodel = "m"\nscore = "s"\nspans = "x"\n', "spans: use"),
    ],
)
def test_a_mapping_that_is_wrong_names_what_to_do(tmp_path, table, said):
    file = tmp_path / "map.toml"
    file.write_text(f"[[map]]\n{table}")
    with pytest.raises(ChoiceError, match=said):
        read_mappings(file)
