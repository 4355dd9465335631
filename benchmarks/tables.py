"""Write results as Markdown: one table, or all of them into ``docs/explanation/benchmarks.md`` between its markers."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "benchmarks.md"


def cell(value: object) -> str:
    """Return a cell with its significant digits; a missing value is a dash.

    >>> [cell(value) for value in (123456.7, 12.34, 0.01234, 7, None, "x")]
    ['123,457', '12.3', '0.0123', '7', '–', 'x']
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(table: dict[str, Any]) -> str:
    """Write one table with its title, if any, and notes; columns of numbers are aligned to the right."""
    rows = table["rows"]
    title = [f"{table['title']} (load {table['load']}):", ""] if "title" in table else []
    right = [any(isinstance(row[k], (int, float)) for row in rows) for k in range(len(table["columns"]))]
    lines = [
        *title,
        "| " + " | ".join(table["columns"]) + " |",
        "|" + "|".join("---:" if number else "---" for number in right) + "|",
        *("| " + " | ".join(cell(value).replace("|", "\\|") for value in row) + " |" for row in rows),
    ]
    return "\n".join([*lines, *(f"\n{note}" for note in table["notes"])])


def write_page(results: Path, names: Sequence[str]) -> None:
    """Put the tables and charts of the kept results between the markers of the page."""
    from benchmarks.charts import draw
    from benchmarks.goals import goals_table

    text = PAGE.read_text(encoding="utf-8")
    machines = set()
    drawn = draw(results)
    for name in names:
        file = results / f"{name}.json"
        if not file.exists():
            continue
        result = json.loads(file.read_text(encoding="utf-8"))
        machines.add(machine(result["environment"]))
        body = "\n\n".join(markdown(table) for table in result["tables"])
        body = f"Measured on {result['date']} with `python -m benchmarks --runs {result['runs']} {name}`.\n\n{body}"
        if name in drawn:
            body += f"\n\n![{name}](charts/{name}.svg)"
        text = put(text, name, body)
    text = put(text, "goals", markdown(goals_table(results)))
    PAGE.write_text(put(text, "machine", "\n".join(sorted(machines))), encoding="utf-8")


def put(text: str, name: str, body: str) -> str:
    """Return the text with a body between two markers."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    return re.sub(pattern, lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text, flags=re.DOTALL)


def machine(environment: dict[str, Any]) -> str:
    """Return one line about the machine."""
    versions = ", ".join(f"{name} {each}" for name, each in environment["versions"].items() if each)
    return (
        f"Machine: {environment['processor']}, {environment['cores']} cores, {environment['memory_gb']} GB; Python "
        f"{environment['python']}, {versions}."
    )
