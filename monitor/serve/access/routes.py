"""The route that reports to callers who they are."""

from collections.abc import Sequence

from fastapi import APIRouter

from monitor.serve.access.caller import current_caller
from monitor.serve.access.rules import AccessRules
from schemas.results.api import CallerReport


def caller_routes(rules: AccessRules, watched: Sequence[str], topic: str | None) -> APIRouter:
    """Make the route. Where scores come from is shown to callers who may do everything: a path shows what the machine has."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/caller")
    async def caller() -> CallerReport:
        """Report whose token the request carries, what it may do, and until when."""
        caller = current_caller()
        return CallerReport(
            name=caller.name,
            scopes=list(caller.grants.scopes),
            expires=caller.expires,
            signed_in=caller.signed_in,
            tokens=rules.restricted,
            watched=list(watched) if caller.grants.admin else [],
            topic=topic if caller.grants.admin else None,
        )

    return routes
