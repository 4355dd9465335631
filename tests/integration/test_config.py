"""`rankwatch config` and `rankwatch schema`."""

import json

import pytest

from schemas.generate import FOLDER
from tests.commands import rankwatch


def test_it_says_where_each_value_comes_from_and_keeps_secrets(tmp_path):
    file = tmp_path / "rankwatch.toml"
    file.write_text('group = "night"\nport = 1\n')
    secrets = {"RANKWATCH_TOKEN": "tok-secret", "RANKWATCH_REDIS_URL": "redis://u:red-secret@h:1"}
    more = secrets | {"RANKWATCH_BROKER_URL": "kafka://u:kaf-secret@h:1", "RANKWATCH_PORT": "2"}
    ended = rankwatch("config", "--format", "json", RANKWATCH_CONFIG=str(file), **more)
    rows = {row["setting"]: (row["value"], row["source"]) for row in json.loads(ended.stdout)}
    assert rows["group"] == ("night", "file")
    assert rows["port"] == ("2", "environment")
    assert rows["host"] == ("127.0.0.1", "default")
    assert rows["broker_url"] == ("kafka://***@h:1", "environment")
    assert all(value != "None" for value, _ in rows.values())
    table = rankwatch("config", RANKWATCH_CONFIG=str(file), **more)
    assert "night" in table.stdout
    assert "-secret" not in ended.stdout + ended.stderr + table.stdout + table.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not a file: correct the path"),
        ("x = = 1", "cannot be read as TOML"),
        ("colour = 1", "setting colour does not exist"),
        ("port = 'x'", "setting port: use a whole number"),
        ('host = "0.0.0.0"', "accepts requests from other machines: set a token"),
    ],
)
def test_a_wrong_setting_is_named_with_the_rule(tmp_path, text, words):
    file = tmp_path / "rankwatch.toml"
    if text is not None:
        file.write_text(text)
    assert words in rankwatch("config", code=2, RANKWATCH_CONFIG=str(file)).stderr


def test_the_schemas_are_the_generated_ones():
    names = rankwatch("schema").stdout.split()
    assert sorted(f"{name}.schema.json" for name in names) == sorted(file.name for file in FOLDER.iterdir())
    for name in names:
        assert rankwatch("schema", name).stdout == (FOLDER / f"{name}.schema.json").read_text()
    assert "choose one of event" in rankwatch("schema", "evnt", code=2).stderr
