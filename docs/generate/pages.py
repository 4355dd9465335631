"""Replace the generated part of a page."""

from pathlib import Path

DOCS = Path(__file__).parents[1]


def with_part(page: str, name: str, body: str) -> str:
    """Return the page with a new body between the markers `<!-- name -->` and `<!-- /name -->`."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, opened, rest = page.partition(start)
    _, closed, tail = rest.partition(end)
    if not (opened and closed):
        raise ValueError(f"the page has no markers {start} and {end}")
    return f"{head}{start}\n\n{body.strip()}\n\n{end}{tail}"
