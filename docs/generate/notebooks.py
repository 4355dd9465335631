"""Make a page of each notebook, with what its cells print; MkDocs calls `on_files` once, and every cell runs."""

import ast
import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page next to each notebook, which stays there to be downloaded."""
    from mkdocs.structure.files import File

    sys.path.append(str(Path(config["docs_dir"]).parent / "clients/python/src"))  # notebooks import the client
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = notebook.src_uri.removesuffix(".ipynb") + ".md"
        text = as_markdown(Path(notebook.abs_src_path), Path(notebook.src_uri).name)
        files.append(File.generated(config, page, content=text))
    return files


def as_markdown(path: Path, name: str) -> str:
    """Run the cells of a notebook in one namespace, and return its text, code and output as Markdown; a cell that fails raises."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += _run(source, names, str(path))
    parts.append(f"This page is made from [{name}]({name}), and every cell has run.")
    return "\n\n".join(parts) + "\n"


def _run(source: str, names: dict[str, Any], path: str) -> list[str]:
    """Run a cell; return what it prints, and the value of its last line as a notebook shows it."""
    tree, value = ast.parse(source, path), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, path, "exec"), names)  # noqa: S102 - the code is ours
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path, "eval"), names)  # noqa: S307
    parts = [f"```text\n{printed.getvalue().rstrip()}\n```"] if printed.getvalue() else []
    if hasattr(value, "_repr_html_"):
        html = re.sub(r"<style.*?</style>| border=\"1\" class=\"dataframe\"", "", value._repr_html_(), flags=re.DOTALL)
        parts.append(re.sub(r"\n\s*", "", html))
    elif value is not None:
        parts.append(f"```text\n{value!r}\n```")
    return parts
