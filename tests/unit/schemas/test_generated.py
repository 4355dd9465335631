import json

from schemas.generate import FOLDER, main, render, stale
from schemas.records.declaration import Declaration
from schemas.records.events import Event


def test_the_generated_files_are_what_the_models_say():
    assert stale() == [], "run `make schemas`"
    assert {path.name for path in FOLDER.iterdir()} == set(render())


def test_a_changed_file_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("schemas.generate.FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["generate"])
    assert main() == 0
    assert stale() == []
    (tmp_path / "event.schema.json").write_text("{}")
    assert stale() == ["event.schema.json"]
    monkeypatch.setattr("sys.argv", ["generate", "--check"])
    assert main() == 1


def test_the_event_schema_names_the_contract():
    schema = json.loads((FOLDER / "event.schema.json").read_text())
    assert schema["required"] == ["benchmark", "item_id", "model", "score"]
    assert set(schema["properties"]) == set(Event.model_fields)


def test_a_known_item_count_means_completion():
    assert Declaration.model_validate({"declare": "b", "items": 5}).order.policy == "completion"
    assert Declaration.model_validate({"declare": "b", "items": 5, "order": "trusted"}).order.policy == "trusted"
    assert Declaration.model_validate({"declare": "b"}).order.policy == "none"
