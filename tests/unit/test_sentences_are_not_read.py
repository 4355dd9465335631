"""Code never reads a sentence: facts phrase the same for programs, and the package of words alone knows English."""

import ast
import re
from pathlib import Path

import pytest

from monitor.words.page_templates import TEMPLATES
from tests.script_reads import script_reads, script_verdicts, tokens
from tests.sentence_reads import WORDS, Known, modules, python_reads

ROOT = Path(__file__).parents[2]
ROOMS = ("monitor", "schemas", "stats")

OF_OTHERS: dict[str, str] = {
    "monitor.cli.usage: ": "what typer and click print about wrong usage",
    "monitor.engine.chunk_fold: reading != benchmark.reading": "what is known of the files, no sentence",
    "monitor.files.declaration_file: ": "the place in an error of tomllib",
    "schemas.records.run_names: re.compile(": "the date in the name of a file",
    "monitor.files.formats.documents: _PLACE": "the place in an error of msgspec",
    "monitor.files.formats.documents: re.compile(": "the place in an error of msgspec",
    "monitor.files.formats.documents: error.msg": "an error of json",
    "monitor.files.maps.hints: re.compile(": "a criterion in the prompts of a judge",
    "monitor.files.maps.table: self.evaluation in": "the name of an evaluation of OpenTelemetry, no sentence of a gate",
    "monitor.files.tables.columns: re.compile(": "the heads of a table of somebody else",
    "monitor.render.board.tables: _LATEX.get(character": "characters that LaTeX escapes",
    "monitor.render.markdown: _MARKUP.sub(": "characters that Markdown escapes",
    "schemas.records.reading: name in file.differing": "the names of benchmarks",
    "monitor.service.doctor.redact: re.compile(": "secrets in the logs and settings of other programs",
    "monitor.service.file_reader: path.parent.name in": "the path of a temporary folder in a message",
    "monitor.service.file_reader: reject['reason'].replace(f'{path.parent}/', '')": "the path of a temporary folder in a message",
    "monitor.service.operations.dead_letters: self.reason.casefold() in text": "a person searches the dead letters",
    "monitor.service.state_notices: field not in stored": "the keys of notices in the store",
    "monitor.serve.metrics.budget: metric.detail": "a flag of the catalogue of metrics",
    "monitor.serve.access.rules: str(error) != self._reported": "whether a message was already logged: the same one is logged once",
    "monitor.render.terminal.plain: status.note != self._written.note": "whether a note was already written: the same one is written once",
    "monitor.store.server.connection: ": "an error of Redis",
    "picture.js: ": "style sheets and the text of a picture",
}
"""How reads begin that are not of a sentence of a verdict, each with what is read: a place and its code."""


@pytest.fixture(scope="module")
def found():
    """Return every read outside the package of words: its place and code."""
    trees = modules(ROOT, ROOMS)
    known = Known.of(trees)
    ours = {module: tree for module, tree in trees.items() if not module.startswith(WORDS)}
    return {f"{module}: {read.code}" for module, tree in ours.items() for read in python_reads(tree, module, known)} | {
        f"{name}: {read.code}"
        for name, script in SCRIPTS.items()
        for read in script_reads(script, known.fields, known.codes)
    }


def test_no_code_reads_a_sentence(found):
    ours = {place for place in found if not place.startswith(tuple(OF_OTHERS))}
    assert sorted(ours) == [], "compare a fact, or word in words/ what the surface needs"


def test_the_list_names_only_what_is_there(found):
    assert [start for start in OF_OTHERS if not any(place.startswith(start) for place in found)] == []


SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "monitor").rglob("*.js"))}
LABELS = {
    "changes.js": {"good settled"},
    "data.js": {"required for “resolved”"},
    "home.js": {" Verdicts wait for the number of items. Start with "},
    "items.js": {"category better-one"},
    "matrix.js": {
        "Where a cell has room, it has the percentage of the pair's prompts that the row's model wins, a tie as half."
    },
    "neighbours.js": {"data verdicts"},
    "time.js": {"verdict against"},
}
"""Labels, classes of elements and explanations in scripts that have the words of a verdict and are no sentence of one."""


def test_no_script_has_a_sentence_of_a_verdict():
    found = {name: {read.code.strip('"') for read in script_verdicts(script)} for name, script in SCRIPTS.items()}
    assert {name: places for name, places in found.items() if places} == LABELS, "write it in words/page_templates.py"


def test_scripts_fill_in_the_sentences_that_there_are():
    said = {key for script in SCRIPTS.values() for key in re.findall(r'[^\w.]phrase\("(\w+)"', script)}
    chosen = {
        key
        for script in SCRIPTS.values()
        for call in re.findall(r"[^\w.]phrase\(([^)]*)", script)
        for key in TEMPLATES
        if f'"{key}"' in call
    }
    assert said - set(TEMPLATES) == set()
    assert set(TEMPLATES) - said - chosen == BY_NAME


BY_NAME = {"row", "column", "open", "against"}
"""Sentences that a script names by a fact."""


@pytest.mark.parametrize(
    "code",
    [
        'h("p", {}, `${first} is better than ${second}`)',
        'h("p", {}, name(first), " is ahead of ", name(second))',
        "const text = `needs ${count(n)} items`",
        'const text = tied ? "The two are a tie." : ""',
        'const f = (n) => { if (!n) return "Nothing is settled"; }',
        'const side = { a: "decided against the rank" }',
        "const text = `${count(n)} items missing`",
        'const note = held && "Verdicts are held."',
    ],
)
def test_a_sentence_of_a_verdict_in_javascript_is_found(code):
    assert script_verdicts(code)


@pytest.mark.parametrize(
    "code",
    [
        'h("p", {}, "Who is best and whether that is decided, then one row for each model.")',
        'h("h2", {}, "Verdict changes")',
        'const side = pair.decided === "held"',
        "const text = `${count(n)} models`",
        'h("p", {}, phrase("tied", { n }))',
    ],
)
def test_an_explanation_in_javascript_is_fine(code):
    assert not script_verdicts(code)


SCHEMA = """
from typing import Literal
from schemas.records.text import Sentence
HELD = "the verdict is held"
CODES = Literal["exact test"]
class Row:
    reason: Sentence
    notes: list[Sentence]
    n: int
def clauses(row) -> Sentence: ...
"""


def reads_of(code):
    trees = {
        "schemas.rows": ast.parse(SCHEMA),
        "monitor.words.pairs": ast.parse("def why(row): ..."),
        "monitor.render.rows": ast.parse(code),
    }
    return python_reads(trees["monitor.render.rows"], "monitor.render.rows", Known.of(trees))


@pytest.mark.parametrize(
    "code",
    [
        'found = "is held" in text',
        'found = text not in ("held", "is held")',
        'found = text == "the verdict is held"',
        'found = text.startswith("the verdict")',
        'found = text.endswith((".", "is held"))',
        'head, _, tail = text.partition("; the")',
        'parts = text.split(" and that ")',
        'text = text.replace("is held", "held")',
        'place = text.find("is held")',
        'import re\nfound = re.search(r"is (held|decided)", text)',
        'import re\nPATTERN = re.compile("the (.*) is")',
        'import re\nPATTERN = re.compile("held")\nfound = PATTERN.search(row.reason)',
        'match text:\n    case "is held":\n        pass',
        'match row.reason:\n    case "held":\n        pass',
        'found = "held" in row.reason',
        "found = row.reason == other.reason",
        'found = "held" in (row.reason or "")',
        'found = row.reason.lower().startswith("held")',
        'found = row["reason"].startswith("held")',
        'found = row.get("reason").startswith("held")',
        'found = "held" in " ".join(row.notes)',
        'found = any("held" in note for note in row.notes)',
        "value = TABLE[row.reason]",
        "value = TABLE.get(row.reason)",
        'def f(row):\n    text = row.reason\n    return text.startswith("held")',
        'def f(row):\n    if (text := row.reason):\n        return "held" in text[1:]',
        'def f(row):\n    text = row.reason\n    def g():\n        return "held" in text\n    return g',
        'from schemas.records.text import Sentence\ndef f(text: Sentence):\n    return "held" in text',
        "from schemas.rows import HELD\nfound = text.startswith(HELD)",
        "from schemas import rows\nfound = text.startswith(rows.HELD)",
        'from schemas.rows import clauses\nfound = "held" in clauses(row)',
        'from monitor.words.pairs import why\nfound = "held" in why(row)',
        'from monitor.words import pairs\nfound = pairs.why(row) == "held"',
        'HEAD = "the verdict"\nfound = text.startswith(HEAD)',
        'found = f"{row.n} items" in text',
        'found = ("a " + name) in text',
        'try:\n    pass\nexcept ValueError as error:\n    found = "held" in str(error)',
        'found = text.__contains__("is held")',
    ],
)  # fmt: skip
def test_a_read_in_python_is_found(code):
    assert reads_of(code)


@pytest.mark.parametrize(
    "code",
    [
        "found = row.reason is None",
        'found = row.reason == ""',
        'text = f"{row.reason}." if row.reason else "nothing is held"',
        'words = "held decided tie".split()',
        'found = kind == "exact test"',
        'found = kind in {"held", "decided"}',
        'text = "; ".join(each.reason for each in rows)',
        'text = text.replace("&", "&amp;")',
        "text = row.reason[:1].upper() + row.reason[1:]",
        'row = {"reason": "the verdict is held"}["reason"]',
        "found = row.n == 1",
    ],
)  # fmt: skip
def test_python_that_only_passes_a_sentence_on_is_fine(code):
    assert not reads_of(code)


@pytest.mark.parametrize(
    "code",
    [
        'if (text.includes("is held")) {}',
        'if (text.startsWith("the verdict")) {}',
        "const [a, b] = text.split(' and that ')",
        "const at = text.indexOf(`the ${name}`)",
        'text = text.replace("is held", "")',
        'const found = text === "is held"',
        'const found = "is held" == text',
        "const CLAUSE = / Assumes that (.*)\\./s",
        "const found = row.reason.match(/held/)",
        "const found = /held/.test(row.reason)",
        'const found = row.reason?.includes("held")',
        "const found = row.reason === other",
        "const found = other !== row.reason",
        'const why = row.reason; const found = why.startsWith("held")',
        'const HEAD = "the verdict"; const found = line.startsWith(HEAD)',
        'const found = line.startsWith(row.reason + ".")',
        'const { reason } = row; const found = reason.includes("held")',
        'const f = ({ kind, reason }) => reason.indexOf("held")',
        'switch (row.reason) { case "held": break; }',
        'switch (line) { case "is held": break; }',
        "const rest = row.reason.slice(3)",
        "const value = TABLE[row.reason]",
        "const value = known.get(row.reason)",
        'const line = `${row.reason.includes("held") ? 1 : 2} of ${`${2}`}`',
    ],
)  # fmt: skip
def test_a_read_in_javascript_is_found(code):
    assert script_reads(code, {"reason"})


@pytest.mark.parametrize(
    "code",
    [
        "const found = row.reason === null",
        'const found = row.reason ?? "nothing is held"',
        "const text = `Held: ${row.reason}.`",
        'const found = kind === "held"',
        '// row.reason.includes("is held")',
        '/* a.includes("is held") */ const half = total / 2 / count',
        'const size = "a \\" b"; const url = text.replace(/\\s+/g, "-")',
        'h("p", { class: "about note", reason: "is held" })',
    ],
)  # fmt: skip
def test_javascript_that_only_passes_a_sentence_on_is_fine(code):
    assert not script_reads(code, {"reason"})


def test_a_script_is_cut_into_tokens():
    kinds = [(token.kind, token.text) for token in tokens('a?.b(`x ${f("y z")} w`, /[/"]/g) / 2')]
    assert kinds == [
        ("name", "a"), ("sign", "?."), ("name", "b"), ("sign", "("), ("template", "x  w"), ("sign", "("), ("name", "f"), ("sign", "("),
        ("string", "y z"), ("sign", ")"), ("sign", ")"), ("sign", ","), ("regex", '/[/"]/g'), ("sign", ")"), ("sign", "/"), ("number", "2"),
    ]  # fmt: skip
