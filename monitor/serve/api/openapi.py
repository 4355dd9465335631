"""Complete FastAPI's OpenAPI description with problems and with the schemas of request bodies."""

from typing import Any, Final

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from monitor.background import in_background
from monitor.serve.api.problems import MEDIA_TYPE
from schemas.records.declaration import Declaration, Spec
from schemas.records.events import Ended, Event
from schemas.results.answer import answer_schemas, every_answer

_REQUEST_MODELS: Final[tuple[type[BaseModel], ...]] = (Event, Declaration, Ended, Spec)
_COMMON_ERRORS: Final = {
    "400": "The request is malformed, or its Host header does not name this server.",
    "401": "A bearer token is required.",
    "404": "No benchmark, model or route has this name.",
    "422": "A parameter or a record is wrong.",
}


def add_openapi(web: FastAPI) -> None:
    """Serve a description of an application, made on the first request."""

    def openapi() -> dict[str, Any]:
        if web.openapi_schema is None:
            web.openapi_schema = _openapi(web)
        return web.openapi_schema

    web.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend the description

    @web.get("/api/v1/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return JSONResponse(web.openapi_schema or await in_background(openapi))


def request_schema(model: type[BaseModel]) -> dict[str, str]:
    """Return a reference to the schema of a model in request bodies."""
    return {"$ref": f"#/components/schemas/{model.__name__}-Input"}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a request body that is one JSON object."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _openapi(web: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=web.title, version=web.version, description=web.description, routes=web.routes)
    definitions = schema.setdefault("components", {}).setdefault("schemas", {})
    definitions |= answer_schemas(every_answer(), "#/components/schemas/{name}")
    for name in ("HTTPValidationError", "ValidationError"):
        definitions.pop(name, None)
    for model in _REQUEST_MODELS:
        _define(definitions, model, "-Input")
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in schema["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            for status, text in _COMMON_ERRORS.items():
                responses.setdefault(status, {"description": text})
            for status, response in responses.items():
                if int(status) >= 400:
                    response["content"] = problem
    return schema


def _define(definitions: dict[str, Any], model: type[BaseModel], suffix: str) -> None:
    schema = model.model_json_schema(ref_template=f"#/components/schemas/{{model}}{suffix}")
    parts = schema.pop("$defs", {}) | {model.__name__: schema}
    definitions |= {name + suffix: part for name, part in parts.items()}
