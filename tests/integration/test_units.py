"""Units of items in files: by a file of units, by the field of events, by a column."""

import json

import pytest

from stats import committed_order
from tests.commands import rankwatch, watch_once, write
from tests.commands import report as report_of

UNITS, COPIES = 12, 5


def events(*, unit):
    """Two models of which one has 9 of 12 units right and the other 3; all copies of a unit are alike."""
    return [
        {"benchmark": "quiz", "item_id": f"{u}-{c}", "model": model, "score": int((u % 4 == 0) == (model == "b"))}
        | ({"unit": f"q{u}"} if unit else {})
        for model in "ab"
        for u in range(UNITS)
        for c in range(COPIES)
    ]


def unit_file(folder, name):
    units = {f"{u}-{c}": f"q{u}" for u in range(UNITS) for c in range(COPIES)}
    path = folder / name
    if name.endswith(".csv"):
        path.write_text("item,unit\n" + "".join(f"{item},{unit}\n" for item, unit in units.items()))
    elif name.endswith(".json"):
        path.write_text(json.dumps(units))
    else:
        write(path, [{"item_id": item, "unit": unit} for item, unit in units.items()])
    return path


def without_assumptions(benchmark):
    pairs = [{**pair, "reason": None} for pair in benchmark["pairs"]]
    return {**benchmark, "assumption": None, "assumptions": None, "order": None, "pairs": pairs}


def report(*arguments):
    content, note = report_of(*arguments)
    return content["benchmarks"][0], note


def test_copies_decide_only_while_nobody_says_that_they_are(tmp_path):
    copies, _ = report(write(tmp_path / "copies.jsonl", events(unit=False)))
    assert (copies["items"], copies["pairs"][0]["status"]) == (60, "decided")
    assert {"code": "independent"} in copies["assumptions"]
    units, note = report(write(tmp_path / "units.jsonl", events(unit=True)))
    assert (units["items"], units["unit_items"], units["pairs"][0]["n"]) == (12, 60, 12)
    assert units["pairs"][0]["status"] == "exhausted"
    assert "quiz: 60 items in 12 units, by the field unit" in note
    assert "60 items in 12 units: the score of a unit is the mean of its items" in units["order"]["reason"]
    assert {"code": "units_read", "units": 12} in units["assumptions"]
    assert {"code": "units"} in units["assumptions"]
    assert {"code": "independent"} not in units["assumptions"]


@pytest.mark.parametrize("name", ["units.csv", "units.json", "units.jsonl"])
def test_a_file_of_units_is_the_same_as_the_field(name, tmp_path):
    copies, units = (
        write(tmp_path / "copies.jsonl", events(unit=False)),
        write(tmp_path / "named.jsonl", events(unit=True)),
    )
    named, file = report(units)[0], unit_file(tmp_path, name)
    for value in (file, f"quiz={file}"):
        flagged = report(copies, "--units", value)[0]
        assert without_assumptions(flagged) == without_assumptions(named)
        assert flagged["assumptions"] == named["assumptions"]  # both come with the scores, or after them
        assert {"code": "declared_late", "parts": ["units"]} in flagged["assumptions"]


@pytest.mark.parametrize("column", ["unit", "group"])
def test_a_column_of_a_table_is_the_same_as_the_field(column, tmp_path):
    named = report(write(tmp_path / "named.jsonl", events(unit=True)))[0]
    lines = [f"benchmark,item_id,model,score,{column}"]
    lines += [",".join(map(str, each.values())) for each in events(unit=True)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    flags = () if column == "unit" else ("--columns", f"unit={column}")
    assert report(tmp_path / "table.csv", *flags)[0] == named
    items = report(tmp_path / "table.csv")[0]["items"]
    assert items == (UNITS if column == "unit" else UNITS * COPIES)


def test_a_gate_counts_units(tmp_path):
    copies = write(tmp_path / "copies.jsonl", events(unit=False))
    rankwatch("gate", copies, "--pair", "a", "b")
    rankwatch("gate", copies, "--pair", "a", "b", "--units", unit_file(tmp_path, "u.csv"), code=3)


def test_a_gate_that_runs_an_evaluation_does_not_know_units(tmp_path):
    path = write(tmp_path / "named.jsonl", events(unit=True))
    flags = ("--margin", "0.1", "--pair", "c", "b", "--run", "true {items} {output}", "--folder", tmp_path / "run")
    assert "has units of items" in rankwatch("gate", path, *flags, code=1).stderr


@pytest.mark.parametrize("unit", [False, True])
def test_live_a_unit_is_declared(unit, tmp_path):
    path, units = write(tmp_path / "copies.jsonl", events(unit=unit)), unit_file(tmp_path, "u.csv")
    flags = ("--units", units, "--items", "12", "--family", "capacity:1")
    (live,) = json.loads(watch_once(tmp_path / "data", path, *flags))["benchmarks"]
    (files,) = report_of(path, *flags)[0]["benchmarks"]
    assert live | {"order": files["order"]} == files
    assert (live["items"], live["declared_items"]) == (12, 12)
    (held,) = json.loads(watch_once(tmp_path / "held", path, "--items", "60"))["benchmarks"]
    assert ("results name units of their items, and none are declared" in (held["order"]["reason"] or "")) == unit
    assert [pair["status"] for pair in held["pairs"]] == ["held" if unit else "decided"]


def test_missing_items_of_a_unit_leave_the_mean_of_the_others(tmp_path):
    some = [each for each in events(unit=True) if each["item_id"] != "0-0" or each["model"] == "a"]
    found, _ = report(write(tmp_path / "some.jsonl", some))
    assert [model["items"] for model in found["models"]] == [12, 12]
    assert {"code": "members"} in found["assumptions"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("item,unit\n1,a\n1,b\n", "item 1 is in two units, a and b; give each item one unit"),
        ("1,a\n", "does not name the columns item and unit"),
        ("item,unit\n", "there are no units"),
    ],
)
def test_a_file_of_units_that_cannot_be_used(content, reason, tmp_path):
    path = tmp_path / "units.csv"
    path.write_text(content)
    assert (
        reason in rankwatch("report", write(tmp_path / "c.jsonl", events(unit=False)), "--units", path, code=2).stderr
    )


def test_unknown_items_of_a_file_of_units_are_reported(tmp_path):
    path = tmp_path / "units.csv"
    path.write_text("item,unit\n0-0,q\nelsewhere,q\n")
    _, note = report(write(tmp_path / "copies.jsonl", events(unit=False)), "--units", path)
    assert "quiz: elsewhere of the declared units has no scores; correct the ids, or omit them" in note


@pytest.mark.parametrize(
    ("more", "flags", "reason"),
    [
        ([{"unit": "q1", "model": "c"}], (), "item 0-0 is in unit q0 in some results, and in unit q1 in others"),
        ([], ("--order", "trusted"), "its results name units, which order policy trusted needs in advance"),
    ],
)
def test_units_that_contradict_each_other_or_come_too_late(more, flags, reason, tmp_path):
    records = events(unit=True)
    records += [records[0] | each for each in more]
    assert reason in rankwatch("report", write(tmp_path / "named.jsonl", records), *flags, code=1).stderr


def test_declared_units_reject_what_contradicts_them(tmp_path):
    records = events(unit=True)
    records[0]["unit"] = "q1"
    units = unit_file(tmp_path, "u.csv")
    done = rankwatch("report", write(tmp_path / "named.jsonl", records), "--units", units)
    assert "0-0 is declared to be in unit q0, and comes with unit q1; give each item one unit" in done.stderr


def test_rankwatch_toml_may_list_units(tmp_path):
    path = write(tmp_path / "copies.jsonl", events(unit=False))
    table = "".join(f'"{u}-{c}" = "q{u}"\n' for u in range(UNITS) for c in range(COPIES))
    (tmp_path / "rankwatch.toml").write_text(f'[benchmark."quiz".units]\n{table}')
    assert report(path)[0]["items"] == UNITS


def test_order_puts_units_in_order(tmp_path):
    items = [f"{u}-{c}" for u in range(UNITS) for c in range(COPIES)]
    (tmp_path / "ids.txt").write_text("\n".join(items))
    units = unit_file(tmp_path, "u.csv")
    flags = ("order", "--seed", "7", "--items", tmp_path / "ids.txt", "--units", units)
    listed = rankwatch(*flags).stdout.split()
    names = [f"q{u}" for u in range(UNITS)]
    assert [item.split("-")[0] for item in listed[::COPIES]] == [names[k][1:] for k in committed_order("7", names)]
    assert [item.split("-")[1] for item in listed] == [str(c) for c in range(COPIES)] * UNITS
    declaration = json.loads(rankwatch(*flags, "--format", "json", "--benchmark", "quiz").stdout)
    assert len(declaration["units"]) == UNITS * COPIES
    path = write(tmp_path / "copies.jsonl", [declaration, *events(unit=False)])
    found = report(path)[0]
    assert (found["items"], found["declared_items"], found["order"]["policy"]) == (UNITS, UNITS, "committed")


@pytest.mark.parametrize("family", [(), ("--models", "a,b"), ("--family", "spending")])
def test_the_field_decides_and_settles_what_a_file_of_units_does_where_items_are_declared(family, tmp_path):
    clear = [row | {"score": int(row["model"] == "b")} for row in events(unit=True)]
    named = write(tmp_path / "named.jsonl", clear)
    plain = [{key: value for key, value in row.items() if key != "unit"} for row in clear]
    flags = ("--items", str(UNITS), *family)
    field, note = report(named, *flags)
    file, quiet = report(write(tmp_path / "plain.jsonl", plain), "--units", unit_file(tmp_path, "units.csv"), *flags)
    assert field["result"] == file["result"]
    rows = [each["pairs"][0] | {"decided_at_n": None, "reason": ""} for each in (field, file)]
    assert rows[0] == rows[1], "units of the field are known at the end of the files, and judged there"
    assert (field["pairs"][0]["status"], field["pairs"][0]["settled"]) == ("decided", "a")
    assert "by the field unit" in note
    assert "by the field unit" not in quiet


def test_refused_files_and_rejected_items_are_known_where_the_field_names_units(tmp_path):
    lost = {"benchmark": "quiz", "item_id": "lost", "model": "a", "score": "bad", "unit": "q-lost"}
    write(tmp_path / "named.jsonl", [*events(unit=True), lost])
    benchmark, _ = report(tmp_path / "named.jsonl")
    assert benchmark["unread_items"] == 1
    assert {"code": "items_rejected", "items": 1} in benchmark["assumptions"]
    (tmp_path / "broken.jsonl").write_text('{"x":\n')
    benchmark, _ = report(tmp_path, "--max-rejected", "0.6")
    assert benchmark["pairs"][0]["status"] == "held"
    assert "broken.jsonl was refused" in benchmark["pairs"][0]["reason"]


def test_items_that_contradict_the_declared_units_are_missing(tmp_path):
    units = "".join(f"{u}-{c},q{u}\n" for u in range(UNITS // 2) for c in range(COPIES))
    (tmp_path / "half.csv").write_text("item,unit\n" + units)
    named = write(tmp_path / "named.jsonl", events(unit=True))
    benchmark, _ = report(named, "--units", tmp_path / "half.csv", "--max-rejected", "0.5")
    assert benchmark["unread_items"] == COPIES * UNITS // 2
    assert {"code": "items_rejected", "items": COPIES * UNITS // 2} in benchmark["assumptions"]


def test_units_that_the_file_declares_are_not_said_to_come_from_the_field(tmp_path):
    declared = {"declare": "quiz", "units": {f"{u}-{c}": f"q{u}" for u in range(UNITS) for c in range(COPIES)}}
    _, note = report(write(tmp_path / "runs.jsonl", [declared, *events(unit=True)]))
    assert "by the field unit" not in note


def test_a_suite_counts_units_where_its_members_do(tmp_path):
    other = [
        each | {"benchmark": "more", "item_id": f"m{each['item_id']}", "unit": f"m{k}"}
        for k, each in enumerate(events(unit=False))
    ]
    for name, rows, heading, result in (
        (
            "units",
            [each | {"unit": f"m{each['item_id'][:-2]}"} for each in other],
            "24 units of 120 items",
            "50 points ahead of b, and 24 units cannot show that.",
        ),
        (
            "mixed",
            [{k: v for k, v in each.items() if k != "unit"} for each in other],
            "72 units of 120 items",
            "Decided: a is better than b, 50 points ahead, p = 0.0422",
        ),
    ):
        path = write(tmp_path / f"{name}.jsonl", [*events(unit=True), *rows])
        shown = rankwatch("report", path, "--suite", "all=quiz,more").stdout
        assert shown.startswith(f"all  {heading}"), shown
        assert result in shown
