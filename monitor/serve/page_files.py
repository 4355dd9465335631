"""Serve the files of the web page. They hold no data: their scripts request it from the API."""

from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from fastapi import APIRouter, Request, Response

from monitor.words.columns import GOAL, HEADS, PROCEDURES, RATED, STEPS
from monitor.words.page_templates import ANSWERS, LEADS, TEMPLATES

_FOLDER: Final = Path(__file__).with_name("page")
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    # Browsers revalidate each file on each load, so a page never mixes files of two versions.
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_WORDS: Final = msgspec.json.encode(
    {
        "heads": HEADS,
        "rated": RATED,
        "goal": GOAL,
        "templates": TEMPLATES,
        "answers": ANSWERS,
        "leads": LEADS,
        "steps": {key: {"word": word, "about": about} for key, (word, about) in STEPS.items()},
        "procedures": [{"key": key, **each._asdict()} for key, each in PROCEDURES.items()],
    }
)


class Asset(NamedTuple):
    """A file of the page."""

    body: bytes
    media_type: str
    etag: str


@cache
def page_paths() -> dict[str, Path]:
    """Return the files of the page by URL path. They are public: they hold no data."""
    files = [file for file in sorted(_FOLDER.rglob("*")) if file.suffix in _MEDIA_TYPES]
    return {"/" if f.name == "index.html" else f"/page/{f.relative_to(_FOLDER).as_posix()}": f for f in files}


@cache
def assets(low_coverage: float) -> dict[str, Asset]:
    """Read the files of the page once; `low_coverage` is the share of the items below which the page marks a model."""
    read = {}
    for path, file in page_paths().items():
        body = file.read_bytes().replace(b'data-low-coverage=""', b'data-low-coverage="%g"' % low_coverage)
        body = body.replace(b"WORDS = {}", b"WORDS = " + _WORDS)
        read[path] = Asset(body, _MEDIA_TYPES[file.suffix], f'"{sha256(body).hexdigest()[:32]}"')
    return read


def page_routes(low_coverage: float) -> APIRouter:
    """Make one route for each file of the page, so that no path can leave the package."""
    routes = APIRouter(include_in_schema=False)
    for path, asset in assets(low_coverage).items():
        routes.add_api_route(path, _serve(asset), methods=["GET", "HEAD"])
    return routes


def _serve(asset: Asset) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        headers = _HEADERS | {"ETag": asset.etag}
        tags = (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(","))
        if asset.etag in tags:
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers=headers, media_type=asset.media_type)

    return serve
