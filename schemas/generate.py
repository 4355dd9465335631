"""Write the JSON Schemas of everything that crosses a border into schemas/json; with --check, only check that they are up to date."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from schemas.records.declaration import Declaration
from schemas.records.events import Battle, Ended, Event
from schemas.records.run_columns import Run
from schemas.results.answer import Answer, answer_schemas
from schemas.results.changes import DriftChange, VerdictChange
from schemas.results.detail import DetailedReport
from schemas.results.drift import DriftReport
from schemas.results.gate import GateReport
from schemas.results.gate_cases import GateCases
from schemas.results.gate_check import GateCheck
from schemas.results.gate_replay import Replay
from schemas.results.report import Report

FOLDER = Path(__file__).parent / "json"
MODELS: dict[str, type[BaseModel | msgspec.Struct]] = {
    "event": Event,
    "run": Run,
    "battle": Battle,
    "declaration": Declaration,
    "ended": Ended,
    "verdict-change": VerdictChange,
    "drift-change": DriftChange,
    "report": Report,
    "report-detail": DetailedReport,
    "gate": GateReport,
    "gate-cases": GateCases,
    "gate-check": GateCheck,
    "gate-replay": Replay,
    "drift": DriftReport,
}


def render() -> dict[str, str]:
    """Return the text of each generated file by its name."""
    texts = {}
    for name, model in MODELS.items():
        schema = _schema(name, model)
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    return texts


_TITLES = {"verdict-change": "Verdict change", "drift-change": "Drift", "gate": "Gate"}


def _schema(name: str, model: type[BaseModel | msgspec.Struct]) -> dict[str, Any]:
    if issubclass(model, Answer):
        parts = answer_schemas([model], "#/$defs/{name}")
        return {**parts.pop(model.__name__), "title": _TITLES.get(name, model.__name__)} | (
            {"$defs": parts} if parts else {}
        )
    if issubclass(model, msgspec.Struct):
        return msgspec.json.schema(model)
    return model.model_json_schema()


def stale() -> list[str]:
    """Return the names of the generated files that differ from the models."""
    return [
        name for name, text in render().items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]


def main() -> int:
    """Write the files, or check them."""
    if "--check" in sys.argv[1:]:
        names = stale()
        if names:
            print(f"out of date: {', '.join(names)} (run `make schemas`)", file=sys.stderr)  # noqa: T201 - a command's output
        return 1 if names else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in render().items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
