"""Parquet and Arrow: the columns of the CSV file with their types, and scores that read back."""

import io
import json

import pytest

from monitor.render import arrow
from monitor.render.arrow import ArrowError, write_pairs, write_scores
from monitor.render.csv import columns, rows
from monitor.view.build import benchmark_report
from schemas.results.report import Report
from tests.unit.render.hostile import hostile_benchmark

pytest.importorskip("pyarrow")
from pyarrow import feather, parquet

from monitor.view.from_state import board_view

READ = {"parquet": parquet.read_table, "arrow": feather.read_table}
FORMS = pytest.mark.parametrize("form", READ)


def lines(*records):
    return [b"".join(json.dumps(record).encode() + b"\n" for record in records)]


def table(write, what, form):
    file = io.BytesIO()
    written = write(what, file, form)
    return READ[form](io.BytesIO(file.getvalue())), written


@FORMS
def test_pairs_are_the_values_of_the_report_with_their_types(form):
    report = Report(
        benchmarks=[benchmark_report(board_view(hostile_benchmark("=1+1")), pairs="all", assert_complete=True)]
    )
    found, _ = table(write_pairs, report.benchmarks, form)
    assert found.column_names == list(columns())
    assert [list(row.values()) for row in found.to_pylist()] == list(rows(report.benchmarks))
    types = {
        name: str(found.schema.field(name).type) for name in ("n", "adjacent", "p_clustered", "settled", "cluster_icc")
    }
    assert types == {
        "n": "int64",
        "adjacent": "bool",
        "p_clustered": "double",
        "settled": "string",
        "cluster_icc": "double",
    }


@FORMS
def test_no_pair_is_columns_without_rows(form):
    found, _ = table(write_pairs, [], form)
    assert (found.num_rows, found.column_names) == (0, list(columns()))


@FORMS
def test_scores_are_rows_and_what_has_none_is_counted(form, monkeypatch):
    monkeypatch.setattr(arrow, "_ROWS_AT_ONCE", 2)
    scores = [
        {"benchmark": "b", "item_id": str(k), "model": "m", "score": score} for k, score in enumerate((1, 0.25, None))
    ]
    records = [{"declare": "b", "items": 3}, *scores, {"ended": "b", "model": "m"}]
    found, written = table(write_scores, lines(*records), form)
    assert (written.rows, written.declarations) == (3, 1)
    rest = {"cluster": None, "repeat": 0, "epoch": 0}
    assert found.to_pylist() == [score | rest for score in scores]


def test_battles_have_columns_of_their_own_and_do_not_mix_with_scores():
    battle = {"benchmark": "b", "item_id": "q", "model_a": "x", "model_b": "y", "winner": "tie", "position": "b"}
    found, _ = table(write_scores, lines(battle), "parquet")
    assert found.to_pylist() == [battle | {"cluster": None, "repeat": 0}]
    with pytest.raises(ArrowError, match="scores and battles"):
        table(write_scores, lines(battle, {"benchmark": "c", "item_id": "q", "model": "m", "score": 1}), "parquet")


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(arrow, "find_spec", lambda _: None)
    with pytest.raises(ArrowError, match="install rankwatch"):
        write_scores([], io.BytesIO(), "parquet")
