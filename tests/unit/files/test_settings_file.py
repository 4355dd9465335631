"""A settings file next to results may come from anyone: it is parsed in time that grows with its length."""

import pytest

from monitor.files.maps.mapped import read_rows
from monitor.files.streams.regular import parse_settings

LONG = ".".join("a" * 10_000) + " = 1"


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.replace("a", '"a"'),
        LONG.replace("a.", "a . "),
        f"[{LONG.removesuffix(' = 1')}]",
        f'x = "#"\n{LONG}',
        f'x = "\\\\"\n{LONG}',
        f'x = {{s = """\n"""", {LONG}}}',
        f'x = {{s = """\nx\'""", {LONG}, b = \'y\'}}',
        f"x = {{s = '''a''''', {LONG}}}",
    ],
)
def test_a_key_of_many_parts_is_refused(text):
    with pytest.raises(ValueError, match="too many parts"):
        parse_settings(text.encode())


@pytest.mark.parametrize("text", ['"' + '\\"' * 450_000, '"""' + '"' * 900_000, "'''" + "'\\" * 450_000])
def test_a_string_without_an_end_is_read_once(text):
    with pytest.raises(ValueError, match=r"line 1\b|end of document"):
        parse_settings(f"x = {text}".encode())


def test_points_elsewhere_are_no_parts():
    points = "." * 100
    text = f"# {points}\nx = [\"{points}\", '{points}']\ny = '''\n{points}'''\nz = {{{', '.join(f'k{k} = 0.5' for k in range(99))}}}\n"
    assert parse_settings(text.encode())["x"] == [points, points]


def test_a_table_of_many_columns_is_read_in_one_pass(tmp_path):
    """To count each name among all of them would take minutes."""
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{k}" for k in range(200_000)) + "\n" + ",".join("1" * 200_000) + "\n")
    assert len(read_rows(path)[0][0]) == 200_000
