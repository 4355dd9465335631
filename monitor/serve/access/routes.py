"""The route that reports to callers who they are."""

from fastapi import APIRouter

from monitor.serve.access.caller import current_caller
from monitor.serve.access.rules import AccessRules
from schemas.results.api import CallerReport


def caller_routes(rules: AccessRules) -> APIRouter:
    """Make the route."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/caller")
    async def caller() -> CallerReport:
        """Report whose token the request carries, what it may do, and until when."""
        found = current_caller()
        return CallerReport(
            name=found.name,
            scopes=list(found.grants.scopes),
            expires=found.expires,
            signed_in=found.signed_in,
            tokens=rules.restricted,
        )

    return routes
