"""Phrases that read as translated stay out of everything that a person reads: docs, docstrings, comments, messages, help texts.

CONTRIBUTING.md gives the rules; the left column is what to write in place of a phrase.
"""

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GIVEN_UP = {
    "report, show, print": r"tell|tells|told|telling|says?|said|saying",
    "is; is next to; comes after": r"stands?(?![- ]?(?:alone|in\b|by\b))|stood|standing",
    "after; ahead of; next to": r"beside|behind(?! an? (?:reverse |load |TLS )?(?:proxy|balancer))",
    "fix": r"mend(?:s|ed|ing)?",
    "again, from scratch": r"anew|again and again",
    "anyone who, everything that, any": r"whoever|whatever|whichever",
    "permanent, permanently": r"for good",
    "in advance, first": r"beforehand",
    "available, current": r"at hand|in hand",
    "unchanged; or leave it out": r"as (?:it|they) (?:is|are|stands?)(?= *[,.;:)]|$)",
    "distinguished, separated": r"told apart|tell \w+ apart",
    "withdrawn": r"(?:taken|takes|took|take) back",
    "omitted": r"(?:is|are|was|were) left out",
    "this pair only; on its own": r"by itself|by themselves",
    "is not available with": r"has no room in",
}
PHRASES = {write: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for write, pattern in GIVEN_UP.items()}
TEXT = {".md", ".yml", ".yaml", ".toml", ".js", ".css", ".html", ".lua", ".conf", ".service", ".sh", ".cff"}
ROOMS = ("monitor", "schemas", "stats", "clients", "deploy", "docs", "benchmarks")
CODE = re.compile(r"`[^`\n]*`|```.*?```", re.DOTALL)


def files() -> list[Path]:
    """Return every file of the repository whose words are ours and are read."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name]
    return [
        path
        for path in paths
        if (path.parts[0] in ROOMS or len(path.parts) == 1 or path.parts[0] == ".github")
        and (path.suffix in TEXT | {".py"} or path.name in {"Makefile", "Dockerfile"})
    ]


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the text of a file that a person reads, with its line: comments and strings of Python, all of anything else."""
    source = (ROOT / path).read_text("utf-8")
    if path.suffix != ".py":
        yield 1, CODE.sub(lambda code: "\n" * code[0].count("\n"), source)
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], token.string


def complaints(line: int, text: str) -> Iterator[str]:
    """Yield each phrase that was given up, with its line and what to write in its place."""
    for write, phrase in PHRASES.items():
        for match in phrase.finditer(text):
            yield f"{line + text.count(chr(10), 0, match.start())}: {match[0]!r}: write: {write}"


@pytest.mark.parametrize("room", sorted({path.parts[0] for path in files() if len(path.parts) > 1} | {"."}))
def test_phrases_that_were_given_up_stay_out(room):
    inside = [path for path in files() if (path.parts[0] if len(path.parts) > 1 else ".") == room]
    assert [
        f"{path}:{found}" for path in inside for line, text in words(path) for found in complaints(line, text)
    ] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "what stands beside it",
        "The results told us.",
        "Fix it for good",
        "items as they are.",
        "the verdict is taken back",
    ],
)
def test_a_phrase_is_found(sentence):
    assert list(complaints(1, sentence))


@pytest.mark.parametrize("sentence", ["a standalone server", "behind a reverse proxy", "as they are declared"])
def test_plain_words_pass(sentence):
    assert not list(complaints(1, sentence))
