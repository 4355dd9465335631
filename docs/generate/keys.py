"""List the keys of the web page, from its own list of them."""

import re

from docs.generate.pages import DOCS

_KEY = re.compile(r"<dt>(.*)</dt><dd>(.*)</dd>")


def table() -> str:
    """Return a table of the keys."""
    page = (DOCS.parent / "monitor/serve/page/index.html").read_text("utf-8")
    rows = (f"| {re.sub('</?kbd>', '`', keys)} | {does} |" for keys, does in _KEY.findall(page))
    return "\n".join(("| key | does |", "|---|---|", *rows))
