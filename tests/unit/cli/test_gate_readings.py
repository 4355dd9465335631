"""Which metric of which benchmark each reading of a gate's files is for."""

import pytest

from monitor.cli.gates.readings import has_several_metrics, read_metrics
from monitor.cli.shared.options import ScoreOptions


def read(benchmarks, asked):
    def one(logs):
        asked.append(logs)
        return dict.fromkeys(benchmarks)

    return one


def metrics_of(logs, *benchmarks):
    asked = []
    return [dict(each.metrics) for each in read_metrics(logs, read(benchmarks, asked))], asked


def test_one_metric_a_benchmark_is_one_reading():
    logs = ScoreOptions(metric=["acc", "gsm8k=exact_match", "acc"], scorer=["match"])
    assert not has_several_metrics(logs)
    assert metrics_of(logs, "mmlu", "gsm8k") == ([{"mmlu": None, "gsm8k": None}], [logs])


def test_a_benchmark_with_fewer_metrics_is_compared_once_in_each():
    logs = ScoreOptions(metric=["acc", "mmlu=acc", "mmlu=acc_norm", "mmlu=f1"])
    metrics, asked = metrics_of(logs, "mmlu", "gsm8k")
    assert metrics == [{"mmlu": "acc", "gsm8k": "acc"}, {"mmlu": "acc_norm"}, {"mmlu": "f1"}]
    assert [each.metric for each in asked] == [["acc", f"mmlu={name}"] for name in ("acc", "acc_norm", "f1")]
    metrics, asked = metrics_of(ScoreOptions(scorer=["a", "b", "gsm8k=c"]), "mmlu", "gsm8k", "other")
    assert metrics == [{"mmlu": "a", "gsm8k": "c", "other": "a"}, {"mmlu": "b", "other": "b"}]
    metrics, asked = metrics_of(ScoreOptions(metric=["mmlu=acc", "mmlu=f1"]), "mmlu", "gsm8k")
    assert metrics == [{"mmlu": "acc", "gsm8k": None}, {"mmlu": "f1"}]


def test_other_columns_are_those_of_every_reading():
    metrics, asked = metrics_of(ScoreOptions(columns=["item_id=q, score=acc", "score=f1,model=m"]), "qa")
    assert metrics == [{"qa": "acc"}, {"qa": "f1"}]
    assert [each.columns for each in asked] == [["item_id=q", "model=m", f"score={name}"] for name in ("acc", "f1")]


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        (ScoreOptions(metric=["a", "b"], scorer=["c", "d"]), "--metric and --scorer name several metrics each"),
        (ScoreOptions(metric=["group=a", "group=b"]), "--metric group: several metrics need the name of a benchmark"),
    ],
)
def test_what_cannot_be_compared_in_full_is_refused(logs, words, capsys):
    with pytest.raises(SystemExit):
        metrics_of(logs, "mmlu")
    assert words in capsys.readouterr().err
