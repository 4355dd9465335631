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
        (None, "is not a file; correct the path"),
        ("x = = 1", "cannot be read as TOML"),
        ("colour = 1", "rankwatch.toml: colour is not a setting: remove it; `rankwatch config` lists"),
        ("prot = 1", "rankwatch.toml: prot is not a setting: use port, or remove it\n"),
        ("port = 'x'", "rankwatch.toml: port x: use a whole number from 0 to 65535\n"),
        ("port = {a = 1}", "rankwatch.toml: port {'a': 1}: use a whole number from 0 to 65535\n"),
        ("port = 1e30", "rankwatch.toml: port 1e+30: use a whole number from 0 to 65535\n"),
        ("data_dir = 5", "rankwatch.toml: data_dir 5: use a path\n"),
        ("topic = 'a b'", "rankwatch.toml: topic a b: use 1 to 200 characters of A-Z a-z 0-9 . _ -\n"),
        ("poll_seconds = 0", "rankwatch.toml: poll_seconds 0: use a number from 0.01 to 3600\n"),
        ("topic_replicas = 0", "rankwatch.toml: topic_replicas 0: use a whole number from 1 to 1000\n"),
        ("kafka_session_seconds = 0.001", "kafka_session_seconds 0.001: use a number from 1 to 1800\n"),
        ("stall_seconds = inf", "stall_seconds inf: use a number from 1 to 86400\n"),
        ("drain_seconds = nan", "drain_seconds nan: use a number from 1 to 3600\n"),
        ("kafka_mechanism = 'X'", "kafka_mechanism X: use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER\n"),
        ("kafka_tls = 'perhaps'", "kafka_tls perhaps: use true or false\n"),
        ("token = 5", "rankwatch.toml: token: use text that is not empty\n"),
        ("kafka_password = ['red-secret']", "rankwatch.toml: kafka_password: use text\n"),
        ("redis_url = {password = 'red-secret'}", "rankwatch.toml: redis_url: use text\n"),
        ('host = "0.0.0.0"', "accepts requests from other machines; set a token"),
    ],
)
def test_a_wrong_setting_is_named_with_the_rule(tmp_path, text, words):
    file = tmp_path / "rankwatch.toml"
    if text is not None:
        file.write_text(text)
    ended = rankwatch("config", code=2, RANKWATCH_CONFIG=str(file))
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "secret" not in ended.stderr.replace("secrets", "")


def test_a_wrong_value_is_reported_where_it_was_given():
    assert "rankwatch: RANKWATCH_PORT -1: use a whole" in rankwatch("config", code=2, RANKWATCH_PORT="-1").stderr
    assert "rankwatch: --topic a b: use 1 to 200" in rankwatch("doctor", "--topic", "a b", code=2).stderr


def test_a_misspelt_variable_is_refused_with_the_nearest_name():
    misspelt = {"RANKWATCH_TOPPIC": "events", "RANKWATCH_DATA": "/data", "RANKWATCH_COLOUR": "red-secret"}
    message = (
        "rankwatch: RANKWATCH_COLOUR is not a setting: unset it; `rankwatch config` lists all settings; "
        "RANKWATCH_DATA is not a setting: use RANKWATCH_DATA_DIR, or unset it; "
        "RANKWATCH_TOPPIC is not a setting: use RANKWATCH_TOPIC, or unset it\n"
    )
    for command in ("doctor", "run", "serve"):
        assert rankwatch(command, code=2, **misspelt).stderr == message
    listed = rankwatch("config", code=2, **misspelt)
    assert listed.stderr == message
    assert "data_dir" in listed.stdout


def test_variables_that_others_set_are_not_misspelt():
    links = {
        "RANKWATCH_READER_SERVICE_HOST": "10.0.0.7",
        "RANKWATCH_SERVICE_PORT_HTTP": "8642",
        "RANKWATCH_PORT_8642_TCP_ADDR": "10.0.0.7",
        "RANKWATCH_READER_PORT": "tcp://10.0.0.7:80",
    }
    rankwatch("config", RANKWATCH_URL="http://localhost:8642", RANKWATCH_COLOUR="", rankwatch_topic="t", **links)


def test_an_empty_variable_is_not_a_token():
    open_to_all = {"RANKWATCH_HOST": "0.0.0.0", "RANKWATCH_TOKEN": ""}
    assert "set a token" in rankwatch("config", code=2, **open_to_all).stderr


def test_the_schemas_are_the_generated_ones():
    names = rankwatch("schema").stdout.split()
    assert sorted(f"{name}.schema.json" for name in names) == sorted(file.name for file in FOLDER.iterdir())
    for name in names:
        assert rankwatch("schema", name).stdout == (FOLDER / f"{name}.schema.json").read_text()
    assert "choose one of event" in rankwatch("schema", "evnt", code=2).stderr
