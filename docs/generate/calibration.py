"""Write the tables of the calibration from the error rates that `python -m tests.calibration` has kept."""

import json
from collections.abc import Callable
from math import sqrt
from typing import Any

from docs.generate.pages import DOCS

_KEPT = DOCS.parent / "tests" / "calibration"


def table(name: str) -> Callable[[], str]:
    """Return the function that writes a table: its rows, and the error rate of each policy with the standard error."""
    return lambda: _table(name)


def _table(name: str) -> str:
    cases = [case for case in _read("rates.json").values() if case["table"] == name]
    columns = list(dict.fromkeys(case["column"] for case in cases))
    columns.sort(key=lambda column: _ORDER.index(column) if column in _ORDER else len(_ORDER))
    cells: dict[str, dict[str, str]] = {}
    for case in cases:
        cells.setdefault(case["row"], {})[case["column"]] = _rate(case)
    lines = [f"| | {' | '.join(map(_code, columns))} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(found.get(column, '') for column in columns)} |" for row, found in cells.items()]
    return "\n".join(lines)


_ORDER = ("naive", "trusted", "committed", "completion")


def breaking() -> str:
    """Return the table of the streams that break an assumption."""
    cases = [case for case in _read("rates.json").values() if case["table"] == "breaking"]
    lines = ["| broken | policy | rate | the sentence assumes that |", "|---|---|---|---|"]
    lines += [f"| {case['row']} | `{case['column']}` | {_rate(case)} | {case['breaks']} |" for case in cases]
    return "\n".join(lines)


def provenance() -> str:
    """Return the table of the choices that are made once scores are known."""
    lines = ["| equal models, and a choice | policy | false verdicts | the verdict |", "|---|---|---|---|"]
    for found in _read("provenance.json").values():
        named = f"names `{found['answer']}`" if found["named"] else found["answer"]
        lines.append(f"| {found['row']} | {found['policy']} | {_share(found['false'], found['runs'])} | {named} |")
    return "\n".join(lines)


def close_pair() -> str:
    """Return the table of the items that ranks 5 and 6 of MMLU-Pro need in committed orders."""
    lines = ["| | orders | reached | items: median | quartiles |", "|---|---|---|---|---|"]
    for claim, found in _read("close_pair.json").items():
        quartiles = f"{found['q1']:,.0f} to {found['q3']:,.0f}"
        lines.append(f"| {claim} | {found['orders']:,} | {found['reached']:,} | {found['median']:,.0f} | {quartiles} |")
    return "\n".join(lines)


def one_look() -> str:
    """Return the table of exact errors at one look: of each rule and alpha the largest, and its case."""
    lines = ["| | alpha | largest error | at |", "|---|---|---|---|"]
    for name, label in _ONE_LOOK.items():
        largest: dict[float, tuple[float, str]] = {}
        for case, (alpha, rate, *_) in _read("exact.json")[name].items():
            largest[alpha] = max(largest.get(alpha, (0.0, "")), (rate, case.partition(", alpha")[0]))
        lines += [f"| {label} | {alpha:.3g} | {rate:.3g} | {case} |" for alpha, (rate, case) in largest.items()]
    return "\n".join(lines)


_ONE_LOOK = {
    "false_pass": "`gate --margin` passes a model that is worse by the margin",
    "bound": "its lower bound is above the gap",
    "interval": "the interval under `completion` misses the gap",
}


def gate_runs() -> str:
    """Return the table of the sequential gate: what share of runs passes, and how many items they evaluate."""
    lines = ["| | runs | pass | fail | undecided | items: median | quartiles |", "|---|---:|---:|---:|---:|---:|---|"]
    for name, found in _read("gate.json")["one"].items():
        shares = [_share(found[verdict], found["runs"]) for verdict in ("pass", "fail", "undecided")]
        lines.append(f"| {name} | {found['runs']:,} | {' | '.join(shares)} | {_items(found)} |")
    return "\n".join(lines)


def gates_of_several() -> str:
    """Return the table of gates with several candidates: how often any passes or fails falsely, and how often the others pass."""
    lines = [
        "| three candidates | runs | any false pass | any false fail | each other passes | the gate passes | items: median | quartiles |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name, found in _read("gate.json")["several"].items():
        runs, others = found["runs"], found["others"]
        wrong = [
            _share(found["false_pass"], runs) if others < 3 else "",
            _share(found["false_fail"], runs) if others else "",
        ]
        # Of a gate that stops at the cheapest one, the others are not evaluated.
        passed = _share(found["others_passed"] / others, runs) if others and "cheapest" not in name else ""
        cells = [f"{runs:,}", *wrong, passed, _share(found["pass"], runs), _items(found)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _items(found: dict[str, Any]) -> str:
    low, high = found["quartiles"]
    return f"{found['median']:,.0f} | {low:,.0f} to {high:,.0f}"


def race_shares() -> str:
    """Return the table of what races on real boards take, by board and goal."""
    kept = json.loads((DOCS.parent / "benchmarks" / "results" / "race.json").read_text(encoding="utf-8"))
    (table,) = (each for each in kept["tables"] if "scores run, %" in each["columns"])
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    sizes = list(dict.fromkeys(row["K"] for row in rows))
    goals = ["best" if size == 1 else f"top:{size}" for size in sizes]
    lines = [f"| board | models | items | orders | {' | '.join(goals)} |", "|---" * (4 + len(sizes)) + "|"]
    boards: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        boards.setdefault(row["board"], []).append(row)
    for name, mine in boards.items():
        shares = " | ".join(f"{row['scores run, %']:g} %" for row in mine)
        first = mine[0]
        lines.append(f"| {name} | {first['models']} | {first['items']:,} | {first['orders']:,} | {shares} |")
    return "\n".join(lines)


def _share(count: float, runs: int) -> str:
    share = count / runs
    return f"{_decimals(share)} ({_decimals(sqrt(share * (1 - share) / runs))})" if 0 < count < runs else f"{share:.0f}"


def _rate(case: dict[str, Any]) -> str:
    """Return the rate of the worst family with its standard error, and the streams where they are not 2,000."""
    streams, errors = case["streams"], max(case["errors"].values(), default=0)
    share = errors / streams
    shown = "0" if errors == 0 else f"{_decimals(share)} ({_decimals(sqrt(share * (1 - share) / streams))})"
    return shown if streams == 2_000 else f"{shown} of {streams:,}"


def _decimals(share: float) -> str:
    return f"{share:.4f}".removeprefix("0")


def _code(column: str) -> str:
    policy, comma, rest = column.partition(", ")
    return f"`{policy}`{comma}{rest}" if policy in {"trusted", "committed", "completion"} else column


def _read(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((_KEPT / name).read_text(encoding="utf-8"))
    return kept
