"""The OpenAPI description: what FastAPI finds out, with problems as the answers to errors and schemas of what is taken in."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from monitor.serve.api.problems import MEDIA_TYPE
from schemas.api import Problem
from schemas.events import Declaration, Event, Spec

_TAKEN_IN: Final[tuple[type[BaseModel], ...]] = (Event, Declaration, Spec)


def add_description(web: FastAPI) -> None:
    """Have an application described."""

    def openapi() -> dict[str, Any]:
        if web.openapi_schema is None:
            web.openapi_schema = _described(web)
        return web.openapi_schema

    web.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend the description


def reference(model: type[BaseModel]) -> dict[str, str]:
    """Return a reference to the schema of what is taken in."""
    return {"$ref": f"#/components/schemas/{model.__name__}-Input"}


_EVERYWHERE: Final = {
    "400": "the request cannot be read, or its Host is not one of this server's",
    "401": "a bearer token is required",
    "404": "there is nothing of that name",
    "422": "a parameter or a record is wrong",
}


def _described(web: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=web.title, version=web.version, description=web.description, routes=web.routes)
    definitions = schema.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        definitions.pop(name, None)
    _define(definitions, Problem, "")
    for model in _TAKEN_IN:
        _define(definitions, model, "-Input")
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in schema["paths"].values():
        for operation in path.values():
            answers = operation["responses"]
            answers.pop("422", None)
            for status, text in _EVERYWHERE.items():
                answers.setdefault(status, {"description": text})
            for status, answer in answers.items():
                if int(status) >= 400:
                    answer["content"] = content
    return schema


def _define(definitions: dict[str, Any], model: type[BaseModel], suffix: str) -> None:
    schema = model.model_json_schema(ref_template=f"#/components/schemas/{{model}}{suffix}")
    parts = schema.pop("$defs", {}) | {model.__name__: schema}
    definitions |= {name + suffix: part for name, part in parts.items()}
