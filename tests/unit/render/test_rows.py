"""CSV: every pair, every number as it is, and nothing that a spreadsheet would run."""

import csv
import io

from monitor.render.csv import columns, write_csv
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.results.report import RepeatsReport, Report
from tests.report_factory import benchmark, model, pair, without
from tests.unit.render.hostile import NAMES, hostile_benchmark


def written(report):
    text = io.StringIO()
    write_csv(report.benchmarks, text)
    return text.getvalue()


def rows(report):
    return list(csv.DictReader(io.StringIO(written(report))))


def test_reading_it_back_gives_the_report():
    report = Report(
        benchmarks=[benchmark_report(board_view(hostile_benchmark("plain")), pairs="all", assert_complete=True)]
    )
    table = rows(report)
    assert len(table) == len(NAMES) * (len(NAMES) - 1) // 2
    for row, shown in zip(table, report.benchmarks[0].pairs, strict=True):
        assert list(row) == list(columns())
        values = without(shown, "facts")
        for name, nested in (("decided", values.pop("decided")), ("resolved", values.pop("resolved"))):
            values |= {f"{name}_{key}": value for key, value in nested.items()}
        assert values.pop("cluster") is None
        values |= {f"run_ended_{side}": True for side in "ab"}
        values |= {f"repeats_{name}_{side}": 1 for side in "ab" for name in ("min", "mean", "max")}
        assert values.keys() < row.keys()
        for name, value in values.items():
            cell = row[name]
            if value is None:
                assert cell == ""
            elif isinstance(value, bool):
                assert cell == str(value).lower()
            elif isinstance(value, str):
                assert cell.removeprefix("'") == value
            else:
                assert float(cell) == value


def test_no_cell_of_text_is_a_formula():
    report = Report(
        benchmarks=[benchmark_report(board_view(hostile_benchmark("=1+1")), pairs="all", assert_complete=True)]
    )
    names = set()
    for row in rows(report):
        assert row["benchmark"] == "'=1+1"
        names |= {row["model_a"], row["model_b"]}
        assert not row["reason"].startswith(("=", "+", "-", "@"))
    assert {name.removeprefix("'") for name in names} == set(NAMES)
    assert {name for name in names if name.startswith("'")} == {f"'{name}" for name in NAMES if name[0] in "=+-@"}


def test_no_pair_is_a_header_alone():
    assert written(Report(benchmarks=[])).splitlines() == [",".join(columns())]


def test_each_pair_has_the_repeats_and_the_end_of_both_runs():
    counts = RepeatsReport(min=1, mean=3.25, max=96)
    models = [model("alpha", 1, repeats=counts, run_ended=False), model("beta", 2), model("new", 3, repeats=None)]
    pairs = [pair("alpha", "beta"), pair("alpha", "new"), pair("beta", "alpha", epoch_a=1, status="superseded")]
    table = rows(Report(benchmarks=[benchmark(pairs, models)]))
    titles = [f"{name}_{side}" for side in "ab" for name in ("repeats_min", "repeats_mean", "repeats_max", "run_ended")]
    assert [[row[title] for title in titles] for row in table] == [
        ["1", "3.25", "96", "false", "1", "1.0", "1", "true"],
        ["1", "3.25", "96", "false", "", "", "", "true"],
        ["", "", "", "", "1", "3.25", "96", "false"],
    ]
