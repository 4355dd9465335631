"""How suites are written."""

import pytest

from monitor.cli.shared.settings import SettingsError, parse_settings
from schemas.records.suites import Member, parse_suites, split_suites


def test_members_have_a_weight_and_a_baseline():
    (suite,) = parse_suites({"overall": ["gsm8k", "arc:2", "mmlu~0.25", "gpqa:0.5~.25", "a:b", "c~d"]})
    assert dict(suite.members) == {
        "gsm8k": Member(),
        "arc": Member(2),
        "mmlu": Member(1, 0.25),
        "gpqa": Member(0.5, 0.25),
        "a:b": Member(),
        "c~d": Member(),
    }


def test_a_benchmark_that_exists_is_not_split():
    (suite,) = parse_suites({"overall": ["run:2", "old:2:3", "x~0.5"]}, {"run:2", "old:2", "x~0.5"})
    assert dict(suite.members) == {"run:2": Member(), "old:2": Member(3), "x~0.5": Member()}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["a"], "at least 2 benchmarks"),
        ([], "at least 2 benchmarks"),
        (["a", "a:2"], "a is given twice"),
        (["a", "overall"], "it holds itself"),
        (["a", "other"], "it holds the suite other"),
        (["a", "b:0"], "0 is not a positive weight"),
        (["a", "b:-1"], "-1 is not a positive weight"),
        (["a", "b:nan"], "nan is not a positive weight"),
        (["a", "b:inf"], "inf is not a positive weight"),
        (["a", "b~1"], "1 is not a baseline"),
        (["a", "b~-0.1"], "-0.1 is not a baseline"),
        (["a", "b~nan"], "nan is not a baseline"),
        (["a", ":2"], "the name of the benchmark is empty"),
        (["a", "b\u202e"], "forbidden character U+202E"),
        ([f"b{k}" for k in range(1001)], "at most 1,000"),
    ],
)
def test_a_wrong_member_is_refused(members, message):
    with pytest.raises(ValueError, match=r"^overall: ") as error:
        parse_suites({"overall": members, "other": ["b", "c"]})
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["overall", "=a,b", " =a,b"])
def test_a_suite_in_one_line_has_a_name(text):
    with pytest.raises(ValueError, match="NAME=A,B,C"):
        split_suites([text])


def test_two_suites_have_two_names():
    with pytest.raises(ValueError, match="given twice"):
        split_suites(["x=a,b", "x=a,c"])


def test_the_setting_is_a_line_or_a_table(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKWATCH_SUITES", "overall=gsm8k, arc:2 ; math=algebra,geometry;")
    assert parse_settings().suites == {"overall": ["gsm8k", "arc:2"], "math": ["algebra", "geometry"]}
    monkeypatch.delenv("RANKWATCH_SUITES")
    file = tmp_path / "rankwatch.toml"
    file.write_text('[suites]\noverall = ["a, b=c", "arc:2~0.25"]\n')
    monkeypatch.setenv("RANKWATCH_CONFIG", str(file))
    assert parse_settings().suites == {"overall": ["a, b=c", "arc:2~0.25"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [("overall", "give a name and its benchmarks"), ("overall=a,b:0", "not a positive weight")],
)
def test_a_wrong_setting_says_where_and_what(monkeypatch, value, message):
    monkeypatch.setenv("RANKWATCH_SUITES", value)
    with pytest.raises(SettingsError, match=rf"^RANKWATCH_SUITES: overall: .*{message}"):
        parse_settings()


@pytest.mark.parametrize("table", ["suites = 3", "[suites]\noverall = 3", "[suites]\noverall = [1, 2]"])
def test_a_table_holds_lists_of_names(monkeypatch, tmp_path, table):
    file = tmp_path / "rankwatch.toml"
    file.write_text(table)
    monkeypatch.setenv("RANKWATCH_CONFIG", str(file))
    with pytest.raises(SettingsError, match="a list of benchmarks for each suite"):
        parse_settings()
