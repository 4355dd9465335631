"""Answer requests from the cache."""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response

from monitor.serve.api.problems import unknown_benchmark
from monitor.serve.cache import Origin
from monitor.serve.http_caching import DIGEST
from monitor.serve.log_position import AT_LEAST
from monitor.serve.report_cache import ReportCache
from monitor.view.build import Which

_OF_THE_ANSWER: Final = {AT_LEAST, DIGEST}  # parameters that choose an answer, and change nothing in it


class CachedAnswers:
    """Answers to requests about a benchmark, a suite or a list of them, by address."""

    def __init__(self, reports: ReportCache) -> None:
        self._reports = reports

    async def json(self, request: Request, name: str, render: Callable[[], bytes], pairs: Which = "all") -> Response:
        """Answer a request with JSON about a benchmark, or raise the 404; `render` makes it from the state, and reports `pairs`."""

        def origin() -> Origin:
            origin = self._reports.origin(name)
            if origin is None:
                raise unknown_benchmark(name)
            return origin

        return await self._answer(request, "", origin, render, [name], pairs)

    async def list_json(self, request: Request, names: list[str], render: Callable[[], bytes]) -> Response:
        """Answer a request with JSON about a list of benchmarks, those that its caller may read; `render` makes it from the state."""
        listed = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()
        return await self._answer(request, listed, self._reports.list_origin, render, names, "all")

    async def _answer(
        self,
        request: Request,
        listed: str,
        origin: Callable[[], Origin],
        render: Callable[[], bytes],
        names: list[str],
        pairs: Which,
    ) -> Response:
        # In the order of the request: of a parameter that comes twice, the last one counts.
        query = [each for each in parse_qsl(request.url.query, keep_blank_values=True) if each[0] not in _OF_THE_ANSWER]
        key = f"{request.url.path}?{urlencode(query)} {self._reports.revision} {listed}"

        def read(work: Callable[[], Any]) -> Awaitable[Any]:
            return self._reports.read(work, names, pairs)

        await self._reports.at_rest()
        kept = await self._reports.cache.answer(key, origin, render, read)
        self._reports.note_offsets(kept.offsets)
        return Response(kept.result, media_type="application/json")  # FastAPI would encode it on the event loop
