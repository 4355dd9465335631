"""List the decision records: the question of each, and its title, which is the decision."""

import re

from docs.generate.pages import DOCS

_RECORD = re.compile(r"# (\d+)\. (.+)\n\n\*\*Question\.\*\* (?:[^?]*?[.:] )??([A-Z][^?]*\?)")


def table() -> str:
    """Return a table of every decision record in `docs/decisions`."""
    rows = []
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        found = _RECORD.match(path.read_text("utf-8"))
        if found is None:
            raise ValueError(f"{path.name}: begin it with a title, `# N. ...`, and a paragraph `**Question.** ...?`")
        number, decision, question = found.groups()
        rows.append(f"| [{number}]({path.name}) | {' '.join(question.split())} | {decision} |")
    return "\n".join(("| | question | decision |", "|---|---|---|", *rows))
