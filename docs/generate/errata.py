"""Count the rows of `rankwatch reproduce`, and list those that do not equal the printed digits."""

from monitor.paper.reproduce import counts, run
from monitor.paper.reproduce.render import display


def rows() -> str:
    """Recompute the paper, and return the counts and the rows that are compatible or differ."""
    sections = run()
    total = counts(sections)
    compared = sum(total[verdict] for verdict in ("equal", "compatible", "differs"))
    equal = f"Of {compared} rows {total['equal']} equal the printed digits, {total['compatible']} are compatible"
    lines = [
        f"{equal}, and {total['differs']} differ; {total['not_recomputable']} more are not recomputable from print."
    ]
    for verdict, title in (("differs", "Rows that differ"), ("compatible", "Compatible rows")):
        lines += ["", f"**{title}**", "", "| quantity | published | computed | why |", "|---|---:|---:|---|"]
        lines += [
            "| " + " | ".join(_cell(text) for text in (row.name, row.published, display(row), row.note)) + " |"
            for section in sections
            for row in section.rows
            if row.verdict == verdict
        ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
