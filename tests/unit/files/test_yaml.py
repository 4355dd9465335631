"""Results in YAML, read as the JSON that they come to."""

import gzip
import sys

import pytest
import yaml

from monitor.files.maps.propose import propose
from monitor.files.streams.encodings import open_stream
from tests.unit.files.native_logs import Read

ROWS = "- {item_id: q1, model: new, score: 1}\n- {item_id: q1, model: old, score: 0}\n"


def read(path):
    stream, parts = open_stream(path), []
    while part := stream.read(1 << 16):
        parts.append(part)
    stream.close()
    return b"".join(parts).decode()


def test_a_scalar_that_yaml_1_1_reads_as_another_value_stays_what_is_written(tmp_path):
    names = ["no", "on", "012", "1e3", "1_000", "12:30:45", "0x1F", "2026-01-01", "1.0", "7", "'7'"]
    rows = [f"- item_id: {name}\n  model: yes\n  score: .5\n" for name in names]
    path = tmp_path / "quiz.yaml"
    path.write_text("".join(rows))
    assert yaml.safe_load(path.read_text())[2]["item_id"] == 10, "012 in YAML 1.1"
    events = Read(path).events
    assert [event.item_id for event in events] == [*names[:8], "1", "7", "7"], "1.0 is 1, as in JSON"
    assert {(event.model, event.score) for event in events} == {("yes", 0.5)}


def test_scores_are_numbers_truth_values_or_blank(tmp_path):
    scores = ["1", "1.0", "2.5e-1", "1e0", "true", "False", "null", "~", "", ".nan"]
    path = tmp_path / "quiz.yaml"
    path.write_text("".join(f"- {{item_id: q{k}, model: m, score: {each}}}\n" for k, each in enumerate(scores)))
    assert [event.score for event in Read(path).events] == [1, 1, 0.25, 1, 1, 0, None, None, None, None]


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        "---\n" + ROWS + "...\n",
        "# a comment\n--- # another\nitem_id: q1\nmodel: new\nscore: 1\n---\nitem_id: q1\nmodel: old\nscore: 0\n---\n",
        "[{item_id: q1, model: new, score: 1}, {item_id: q1, model: old, score: 0}]",
        "- &a {item_id: q1, model: new, score: 1}\n- *a\n- {item_id: q1, model: old, score: 0}\n",
        "- item_id: &id |-\n    q1\n  model: new\n  score: 1\n- {item_id: *id, model: old, score: 0}\n",
    ],
)
def test_one_document_several_and_aliases_are_rows(tmp_path, content):
    for name, data in (
        ("a.yaml", content.encode()),
        ("b.yml", content.encode("utf-16")),
        ("c.yaml.gz", gzip.compress(content.encode())),
    ):
        (tmp_path / name).write_bytes(data)
        found = {(event.item_id, event.model, event.score) for event in Read(tmp_path / name).events}
        assert found == {("q1", "new", 1), ("q1", "old", 0)}, name


def test_json_that_is_called_yaml_is_read_as_json(tmp_path):
    (tmp_path / "a.yaml").write_text('{"benchmark":"b","item_id":"q","model":"m","score":1}\n' * 2)
    assert len(Read(tmp_path / "a.yaml").events) == 2


def test_a_mapping_is_proposed_for_a_document_and_read(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("model: gpt\nresults:\n" + "".join(f"  - id: {k}\n    passed: {k % 2 == 1}\n" for k in range(9)))
    (tmp_path / "other.yaml").write_text("learning_rate: 1\n")
    text = propose(path).text
    assert 'files = "run.yaml"' in text
    (tmp_path / "rankwatch.toml").write_text(text)
    assert [event.score for event in Read(path).events] == [k % 2 for k in range(9)]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * 10)}]\n" for k in range(30)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "the YAML cannot be read at line 7: its aliases repeat more than 16,777,216 characters; write plain values"),
        ("- &a [*a]\n", "at line 1: the alias a has no anchor ahead of it that is complete; write plain values"),
        ("[" * 5_000, "at line 1: it is nested more than 500 levels deep; write plain values"),
        ("- !!python/object/apply:os.system [ls]\n", "the tag !!python/object/apply:os.system needs the program that wrote it; "),
        ("- &b {a: 1}\n- <<: *b\n", "at line 2: a merge key (<<) joins mappings; write it out with yq -o json 'explode(.)' FILE"),
        ("- [a, b]: 1\n", "at line 1: the name of a field is no text; write plain values"),
        ("- a: 1\n b: 2\n" * 50, "the YAML is not valid at line 2, column 2 (did not find expected '-' indicator); correct the file"),
        ("- *x\n", "at line 1: the alias x has no anchor ahead of it that is complete; write plain values"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_message_with_its_line(tmp_path, content, message):
    (tmp_path / "a.yaml").write_text(content)
    (reject,) = Read(tmp_path / "a.yaml").rejects
    assert message in reject["reason"]


def test_a_name_that_comes_twice_is_named(tmp_path):
    (tmp_path / "a.yaml").write_text(ROWS + "- {item_id: q2, model: new, score: 1, score: 0}\n")
    assert [reject["reason"] for reject in Read(tmp_path / "a.yaml").rejects] == [
        "score comes twice in one object; keep one of the two"
    ]


def test_text_that_is_not_utf_8_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "a.yaml").write_bytes("- {item_id: qé, model: m, score: 1}\n".encode("latin-1"))
    (reject,) = Read(tmp_path / "a.yaml").rejects
    assert reject["reason"].endswith("; write the file as UTF-8 text")


def test_without_pyyaml_its_name_is_given(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "a.yaml").write_text(ROWS)
    (reject,) = Read(tmp_path / "a.yaml").rejects
    assert reject["reason"] == "YAML needs PyYAML; install rankwatch[yaml], or pyyaml"


def test_a_long_file_is_read_piece_by_piece(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("".join(f"- {{item_id: q{k}, model: m, score: {k % 2}}}\n" for k in range(5_000)))
    assert len(Read(path).events) == 5_000
    assert read(path).count("\n") == 5_001
