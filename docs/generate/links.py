"""Point links to files outside docs/ at the repository; MkDocs calls `on_page_markdown` for every page."""

import os
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Rewrite relative links that leave docs/; refuse those that lead to no file."""
    docs = Path(config["docs_dir"])
    root = docs.parent

    def rewrite(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(docs / Path(page.file.src_uri).parent / link[2]))
        if path.is_relative_to(docs):
            return link[0]
        if not path.exists():
            raise ValueError(f"{page.file.src_uri}: no file {link[2]}")
        return f"{link[1]}{config['extra']['repository']}{path.relative_to(root).as_posix()}{link[3] or ''})"

    return _LINK.sub(rewrite, markdown)
