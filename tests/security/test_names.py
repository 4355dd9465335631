"""One list of hostile names, against everything that shows a name."""

import csv
import io
import json
import random
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.commands import Watch, events, get, letters, rankwatch, report, until, write
from tests.hostile_names import ACCEPTED, CONTROLS, REFUSED

ITEMS = 8
SKILLS = {name: 0.1 + 0.8 * k / len(ACCEPTED) for k, name in enumerate(ACCEPTED)}


def renamed(records):
    """Each item has a hostile name, and a hostile cluster."""
    for event in records:
        place = int(event["item_id"].rpartition(" ")[2])
        yield event | {"item_id": ACCEPTED[place], "cluster": ACCEPTED[-1 - place % 3]}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two benchmarks of hostile names, as a file of hostile name."""
    folder = tmp_path_factory.mktemp("results")
    rng = random.Random(71)
    records = [event for name in ACCEPTED[:2] for event in renamed(events(rng, SKILLS, ITEMS, benchmark=name))]
    return write(folder / "=1+1 <b>[red] $(id).jsonl", records)


def plain(text):
    """Nothing in it can move a cursor, hide a letter or turn it round."""
    assert not CONTROLS & set(text), sorted(CONTROLS & set(text))


# --- reports ----------------------------------------------------------------------------------------------------------------------------


def test_json_has_every_name_as_it_is(results):
    result, errors = report(results, "--pairs", "all")
    assert errors == ""
    assert [b["benchmark"] for b in result["benchmarks"]] == sorted(ACCEPTED[:2])
    for benchmark in result["benchmarks"]:
        assert {m["model"] for m in benchmark["models"]} == set(ACCEPTED)
        assert benchmark["items"] == ITEMS


@pytest.mark.fault("attacks", "hostile names in CSV", "no cell is a formula")
def test_no_cell_of_a_csv_is_a_formula(results):
    text = rankwatch("report", results, "--format", "csv", "--pairs", "all").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2 * len(ACCEPTED) * (len(ACCEPTED) - 1) // 2
    assert all(None not in row for row in rows)
    for row in rows:
        for field in ("benchmark", "model_a", "model_b", "reason"):
            assert not row[field].lstrip().startswith(("=", "+", "-", "@", "\t", "\r")), row[field]
    # Whatever keeps a cell from being a formula, the name is still in it.
    shown = {row[field] for row in rows for field in ("model_a", "model_b")}
    assert all(any(name in cell for cell in shown) for name in ACCEPTED)
    plain(text.replace("\r\n", "\n"))


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.fault("attacks", "hostile names in HTML", "text")
def test_html_holds_names_as_text_alone(results):
    page = Page(rankwatch("report", results, "--format", "html").stdout)
    assert not {"script", "img", "iframe", "object", "embed", "base", "form", "failure", "textarea"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [v for name, v in page.attributes if name in {"href", "src"} and v and not v.startswith("#")]
    text = "".join(page.text)
    assert all(name.strip() in text for name in ACCEPTED)


@pytest.mark.fault("attacks", "hostile names in Markdown", "text")
def test_markdown_holds_names_as_text_alone(results):
    text = rankwatch("report", results, "--format", "markdown").stdout
    plain(text)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert len(tables) > 2 * len(ACCEPTED)
    assert len(widths) <= 8, "a name has changed the number of cells"
    # Nothing that a renderer takes for an element, a link or a mention, outside of an escape.
    assert not re.search(r"(?<!\\)<(script|img|failure|/style)", text)
    assert not re.search(r"(?<!\\)\]\((?=javascript)", text)


@pytest.mark.fault("attacks", "hostile names in a terminal", "shown, not obeyed")
@pytest.mark.parametrize("columns", ["80", "200"])
def test_a_terminal_shows_names_and_obeys_none(results, columns):
    text = rankwatch("report", results, COLUMNS=columns).stdout
    plain(text)
    assert "[red]markup[/red]" in text.replace("\n", "") or columns == "80"
    coloured = rankwatch("report", results, COLUMNS=columns, NO_COLOR="", FORCE_COLOR="1").stdout
    plain(re.sub(r"\x1b\[[0-9;]*m", "", coloured))
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", coloured)


PAIRS = {
    "junit": (ACCEPTED[12], ACCEPTED[1]),
    "github": (ACCEPTED[10], ACCEPTED[11]),
    "json": (ACCEPTED[7], ACCEPTED[8]),
}


@pytest.mark.parametrize("form", PAIRS)
def test_a_pipeline_reads_names_as_text(results, form):
    first, second = PAIRS[form]
    command = ("gate", results, "--pair", first, second, "--benchmark", ACCEPTED[0], "--format", form)
    text = rankwatch(*command, code=3).stdout
    plain(text)
    if form == "junit":
        (case,) = ET.fromstring(text).iter("testcase")
        assert case.get("name") == f"{first} better than {second}"
    elif form == "github":
        # One annotation: a workflow command begins a line, and there is no other line.
        assert text.count("\n") == 1
        assert len(re.findall(r"^::(?:error|warning|notice)[ :]", text, re.MULTILINE)) == 1
        assert "%250A" in text
    else:
        assert first in text.replace("\\\\", "\\").replace('\\"', '"')
        assert json.loads(text)


# --- a running monitor ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(results, tmp_path_factory):
    """A `watch` of these results, whose address is known."""
    data = tmp_path_factory.mktemp("served") / "data"
    with Watch(data, results, "--order", "trusted", "--max-rejected", "1") as watch:
        until(lambda: len(json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"]) == 2, "both")
        until(lambda: get(f"{watch.url}/readyz")[0] == 200, "it to be ready")
        yield watch, data


@pytest.mark.fault("attacks", "hostile names in labels of metrics", "text")
def test_no_label_breaks_out_of_a_metric(served):
    watch, _ = served
    status, text = get(f"{watch.url}/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text))
    assert all(family.name.startswith("rankwatch_") for family in families)
    labels = {value for family in families for sample in family.samples for value in sample.labels.values()}
    names = {name for family in families for sample in family.samples for name in sample.labels}
    assert labels >= set(ACCEPTED)
    assert "evil" not in names
    assert not [line for line in text.splitlines() if not line.startswith(("#", "rankwatch_"))]


def test_the_page_holds_no_name_at_all(served):
    """The page is a shell: what it shows comes from the API as JSON, which no browser takes for a page."""
    watch, _ = served
    status, text = get(watch.url)
    assert status == 200
    assert not any(name in text for name in ACCEPTED if len(name) > 4 and name != "null")
    with_headers = Headers(f"{watch.url}/api/v1/benchmarks")
    assert with_headers["content-type"].startswith("application/json")
    assert with_headers["x-content-type-options"] == "nosniff"
    page = Headers(watch.url)["content-security-policy"]
    assert "default-src 'none'" in page
    assert "script-src 'self'" in page
    assert "unsafe" not in page


class Headers:
    """The headers of an answer."""

    def __init__(self, url):
        import urllib.request

        with urllib.request.urlopen(url, timeout=60) as answer:
            self._headers = answer.headers

    def __getitem__(self, name):
        return self._headers[name]


@pytest.mark.fault(
    "attacks", "forbidden names in every field, over HTTP and in files", "refused; the message escapes the name"
)
def test_what_is_no_name_is_refused_everywhere_and_shown_nowhere(served, results):
    import urllib.error
    import urllib.request

    watch, data = served
    good = {"benchmark": "b", "item_id": "i", "model": "m", "score": 1}
    poison = [good | {field: name} for name in REFUSED for field in ("benchmark", "item_id", "model", "cluster")]
    body = b"".join(json.dumps(event).encode() + b"\n" for event in poison)
    request = urllib.request.Request(f"{watch.url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    with refused.value as answer:
        text = answer.read().decode()
    assert refused.value.code == 422
    assert len(json.loads(text)["errors"]) == len(poison)
    plain(json.dumps(json.loads(text), ensure_ascii=False))
    write(results.with_name("poison.jsonl"), [good, *poison, good | {"item_id": "j"}])
    refused = rankwatch("report", results.with_name("poison.jsonl"), "--max-rejected", "1")
    plain(refused.stdout + refused.stderr)
    # A watched file: all of them are letters, in ASCII, and the good lines beside them count.
    with Watch(data.with_name("other"), results.with_name("poison.jsonl"), "--max-rejected", "1") as other:
        until((data.with_name("other") / "dead-letters.jsonl").exists, "letters")
        until(lambda: len(letters(data.with_name("other"))) == len(poison), "all letters")
        until(lambda: '"events":2' in get(f"{other.url}/api/v1/benchmarks")[1].replace(" ", ""), "the good events")
        plain(get(f"{other.url}/metrics")[1])
        assert other.stop() == 0
    assert (data.with_name("other") / "dead-letters.jsonl").read_bytes().isascii()
    plain("".join(other.lines + other.errors))
    results.with_name("poison.jsonl").unlink()


def test_what_watch_prints_obeys_no_name(served):
    watch, _ = served
    plain("".join(watch.lines + watch.errors))
