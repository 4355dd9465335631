"""MMLU-Pro ranks 5 and 6 in every format: decided (anytime), not decided (family of nine), resolved (fixed n), not resolved (anytime)."""

import csv
import io
import json
import re

import pytest

from tests.commands import rankwatch
from tests.golden_pair import VERDICTS, verdicts_by_sign, verdicts_of, write_golden_pair
from tests.html_tree import read_html


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """What `report` prints of the published counts, by format."""
    path = write_golden_pair(tmp_path_factory.mktemp("golden") / "ranks.jsonl")
    return {
        form: rankwatch("report", path, "--format", form, *(["--verbose"] if form == "table" else [])).stdout
        for form in ("table", "json", "csv", "markdown", "html")
    }


def verdicts_in(form, text):
    """(decided anytime, decided in the family, resolved at fixed n, resolved anytime) as the format shows them."""
    if form == "json":
        (pair,) = json.loads(text)["benchmarks"][0]["pairs"]
        return verdicts_of(pair)
    if form == "csv":
        (row,) = csv.DictReader(io.StringIO(text))
        decided = [row[f"decided_{name}"] == "a" for name in ("anytime", "anytime_family")]
        return (*decided, *(row[f"resolved_{name}"] == "true" for name in ("fixed_n", "anytime")))
    if form == "html":
        (row,) = (
            r
            for r in read_html(text).all("tr")
            if any("rank 5 ~ rank 6" in th.text for th in r.all("th")) and len(list(r.all("td"))) > 8
        )
        cells = [s.text for s in row.all("span") if s.attributes.get("class") == "hidden"]
        cells = [cell for cell in cells if not cell.startswith(("settled", "not settled"))]
        signs = ["●" if cell in {"decided for the first", "resolved"} else "○" for cell in cells]
    else:
        (line,) = (
            found
            for found in text.splitlines()
            if re.search("rank 5 \\\\?~ rank 6", found) and "12,032" in found and "○" in found and "●" in found
        )
        signs = re.findall("[●○·]", re.sub("[●○□] (exhausted|collecting|decided)", "", line))
    return verdicts_by_sign(signs)


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown", "html"])
def test_ranks_5_and_6(documents, form):
    assert verdicts_in(form, documents[form]) == VERDICTS


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown", "html"])
def test_every_format_has_the_sentence(documents, form):
    text = " ".join(read_html(documents[form]).text.split()) if form == "html" else " ".join(documents[form].split())
    assert "Decided for this pair only at alpha = 0.05: rank 5 is better than rank 6. Not decided family-wise" in text
    assert "Informative items: 3,134 of 12,032 shared" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_formats_for_people_have_the_numbers_of_the_pair(documents, form):
    for number in ("5,787", "2.08", "+1.88", "[+0.16, +3.59]"):
        assert number in documents[form].replace("\\", "")
