"""Report on a table of results in a notebook, by the installed command `rankwatch`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

_WORDS = {"model", "step"}
"""Columns of words; the others are numbers."""

_LINES = ("best", "steps", "change")
"""The lines of a result that are shown; the report as JSON has more."""


class Report:
    """A report of the results; a notebook shows it as tables, and an interpreter as text.

    Attributes
    ----------
    json : dict
        The report, as `rankwatch report --format json` writes it.
    models, pairs
        A row a model and a row a pair, with the name of the benchmark: frames of the kind that was given, or lists of dictionaries.
    result : dict of str to dict
        The lines of each benchmark: best, steps and change, and settled, decided, resolved.
    """

    def __init__(self, report: "dict[str, Any]", make_frame: Any) -> None:  # noqa: ANN401 - a class of frames
        self.json = report
        self.models = make_frame(_rows(report, "models"))
        self.pairs = make_frame(_rows(report, "pairs"))
        self.result = {
            each["benchmark"]: {word: line["text"] for word, line in (each["result"] or {}).items() if line}
            for each in report["benchmarks"]
        }

    def _repr_html_(self) -> str:
        """Return the result and the ranking of each benchmark."""
        return "".join(map(_show, self.json["benchmarks"]))

    def __repr__(self) -> str:
        """Return the same as text."""
        return "\n\n".join(map(_text, self.json["benchmarks"]))


def report(
    data: Any,  # noqa: ANN401 - a frame of a library that may not be installed
    *flags: str,
    columns: "dict[str, str] | None" = None,
    command: "str | os.PathLike[str] | None" = None,
) -> Report:
    """Report on results that are complete.

    Parameters
    ----------
    data : DataFrame or path
        A pandas or polars frame with the columns benchmark, item_id, model and score, and if you like cluster and repeat; or a file or
        folder of results.
    *flags : str
        Flags of `rankwatch report`, for example "--alpha", "0.01".
    columns : dict, optional
        Names of your columns, for example ``{"score": "correct", "model": "run"}``.
    command : str or path, optional
        The command; by default `rankwatch` of this environment or of the path.

    Raises
    ------
    FileNotFoundError
        If the command is not installed.
    ValueError
        If the results cannot be read: the message is that of the command.
    """
    call = _command(command)
    if columns:
        flags = (*flags, "--columns", ",".join(f"{field}={column}" for field, column in columns.items()))
    if isinstance(data, (str, os.PathLike)):
        return Report(_run([*call, "report", os.fspath(data), *flags, "--format", "json"]), list)
    with tempfile.TemporaryDirectory(prefix="rankwatch-") as folder:
        path = Path(folder) / "frame.csv"
        make_frame: Any = type(data)
        if hasattr(
            data, "write_csv"
        ):  # polars, which takes the types of columns from the first rows unless it has to read all
            data.write_csv(path)
            make_frame = partial(make_frame, infer_schema_length=None)
        elif hasattr(data, "to_csv"):
            data.to_csv(path, index=False)
        else:
            raise TypeError(f"data: give a pandas or polars frame, or a path, not {type(data).__name__}")
        try:
            return Report(_run([*call, "report", str(path), *flags, "--format", "json"]), make_frame)
        except ValueError as error:
            raise ValueError(str(error).replace(os.path.realpath(path), "frame").replace(str(path), "frame")) from None


def _command(given: "str | os.PathLike[str] | None") -> "list[str]":
    if given is not None:
        return [os.fspath(given)]
    beside = Path(sys.executable).with_name("rankwatch")
    found = str(beside) if beside.exists() else shutil.which("rankwatch")
    if found is None:
        raise FileNotFoundError("the command rankwatch is not installed; install it, or give its path as command=")
    return [found]


def _run(call: "list[str]") -> "dict[str, Any]":
    ended = subprocess.run(call, capture_output=True, text=True, encoding="utf-8", check=False)  # noqa: S603 - a list, no shell
    if ended.returncode:
        raise ValueError(ended.stderr.strip() or f"rankwatch ended with exit code {ended.returncode}")
    if ended.stderr:
        print(ended.stderr, end="", file=sys.stderr)  # noqa: T201 - what the command skipped or guessed
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def _rows(report: "dict[str, Any]", kind: str) -> "list[dict[str, Any]]":
    """Return the rows of all benchmarks: a field that holds fields becomes one column each, a list its names or codes."""
    rows = []
    for benchmark in report["benchmarks"]:
        for row in benchmark[kind]:
            flat = {"benchmark": benchmark["benchmark"]}
            for name, value in row.items():
                if isinstance(value, dict):
                    flat.update({f"{name}_{inner}": each for inner, each in value.items()})
                elif isinstance(value, list):
                    flat[name] = ", ".join(each["code"] if isinstance(each, dict) else each for each in value)
                else:
                    flat[name] = value
            rows.append(flat)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]


def _lines(benchmark: "dict[str, Any]") -> "list[str]":
    """Return the lines of the result, the first one with its sign."""
    result = benchmark["result"] or {}
    return [
        f"{_sign(line)} {line['text']}" if word == "best" else line["text"]
        for word in _LINES
        if (line := result.get(word)) is not None
    ]


def _sign(line: "dict[str, Any]") -> str:
    return "!" if line.get("held") and not line["yes"] else "○●"[line["yes"]]


def _ranking(benchmark: "dict[str, Any]") -> "dict[str, list[str]]":
    """Return the columns of the ranking by key, as the command heads them: the head, then a cell a model."""
    steps = {p["model_a"]: p for p in benchmark["pairs"] if p["adjacent"] and p["status"] != "superseded"}
    models = benchmark["models"]
    cells = {
        "rank": [str(m["rank"]) for m in models],
        "ranks": [_range(m) for m in models],
        "model": [m["model"] for m in models],
        "score": [_percent(m["mean"]) for m in models],
        "step": [_step(steps.get(m["model"])) for m in models],
    }
    return {key: [head, *cells[key]] for key, head in benchmark["heads"].items() if key in cells}


def _step(pair: "dict[str, Any] | None") -> str:
    """Return the gap to the next model in points, and the verdict on it."""
    if pair is None:
        return ""
    gap = "" if pair["gap"] is None else f"{100 * pair['gap']:+.2f} "
    word = {"exhausted": "tie", "collecting": "undecided"}.get(pair["status"], pair["status"])
    return f"{gap}{word}"


def _text(benchmark: "dict[str, Any]") -> str:
    columns = _ranking(benchmark)
    padded = [
        [f"{cell:{'<' if key in _WORDS else '>'}{max(map(len, cells))}}" for cell in cells]
        for key, cells in columns.items()
    ]
    table = ["  ".join(row).rstrip() for row in zip(*padded)]  # noqa: B905 - columns of one length
    return "\n".join([benchmark["benchmark"], *_lines(benchmark), "", *table])


def _show(benchmark: "dict[str, Any]") -> str:
    lines = "".join(f"<li style='list-style:none'>{escape(text)}</li>" for text in _lines(benchmark))
    columns = ([_cell(key, cell) for cell in cells] for key, cells in _ranking(benchmark).items())
    head, *body = (f"<tr>{''.join(row)}</tr>" for row in zip(*columns))  # noqa: B905 - columns of one length
    name = escape(benchmark["benchmark"])
    head = head.replace("<td", "<th").replace("</td", "</th")
    return f"<h3>{name}</h3><ul>{lines}</ul><table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _cell(key: str, text: str) -> str:
    return f'<td style="text-align:{"left" if key in _WORDS else "right"}">{escape(text)}</td>'


def _range(model: "dict[str, Any]") -> str:
    low, high = model["rank_low"], model["rank_high"]
    return str(low) if low == high else f"{low}–{high}"


def _percent(mean: "float | None") -> str:
    return "-" if mean is None else f"{100 * mean:.2f}"
