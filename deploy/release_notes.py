"""Check that a tag, pyproject.toml, CITATION.cff and CHANGELOG.md name one version, and print the notes of that version.

Usage: ``python -m deploy.release_notes v0.2.0``
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each file of the project names."""
    named = {
        name: tomllib.loads((root / name).read_text("utf-8"))["project"]["version"]
        for name in ("pyproject.toml", "clients/python/pyproject.toml")
    }
    citation = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    return named | {"CITATION.cff": citation[1] if citation else "none"}


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of CHANGELOG.md for a tag.

    Raises
    ------
    SystemExit
        When a file names another version, or the changelog has no section for it.
    """
    version = tag.removeprefix("v")
    wrong = [f"{file} names {other}" for file, other in versions(root).items() if other != version]
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    section = re.search(rf"^## \[?{re.escape(version)}\]?[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        wrong.append(f"CHANGELOG.md has no section {version}")
    if wrong or section is None:
        sys.exit(f"{tag} cannot be released: " + "; ".join(wrong))
    return section[1].strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m deploy.release_notes TAG")
    sys.stdout.write(notes(sys.argv[1]))
