"""List the routes that read, with their parameters, from the application itself."""

from typing import Any

from fastapi import FastAPI

from monitor.serve import application

_READS = (
    application.read_routes,
    application.view_routes,
    application.drift_routes,
    application.run_routes,
    application.next_routes,
    application.admission_routes,
    application.change_routes,
)
_NOTHING: Any = None  # a route is described without the state that it reads


def reading() -> str:
    """Return a table of every route that reads: its parameters, with their values or default, and what it returns."""
    web = FastAPI()
    for routes in _READS:
        web.include_router(routes(*(_NOTHING for _ in range(routes.__code__.co_argcount))))
    rows = (
        f"| `{path.removeprefix('/api/v1/')}{_parameters(about.get('parameters', ()))}` | {_returns(about)} |"
        for path, ways in web.openapi()["paths"].items()
        for about in ways.values()
    )
    return "\n".join(("| GET /api/v1/ | returns |", "|---|---|", *rows))


def _parameters(parameters: Any) -> str:
    """Write the query of a route; a path names its own parameters, and a header is none."""
    asked = [f"{each['name']}={_values(each['schema'])}" for each in parameters if each["in"] == "query"]
    return "?" + "&".join(asked) if asked else ""


def _values(schema: dict[str, Any]) -> str:
    """Write the values that a parameter may have, the default first, or its default."""
    default = schema.get("default")
    named = [value for one in schema.get("anyOf", [schema]) for value in one.get("enum", ())]
    if named:
        return "\\|".join(sorted(named, key=lambda value: value != default))
    return "" if default in (None, False, 0) else f"{default:g}" if isinstance(default, float) else str(default)


def _returns(about: dict[str, Any]) -> str:
    return " ".join(about["description"].split()).replace("|", "\\|")
