"""Refuse what would take a caller beyond its quotas: boards of its scopes, models and items of a board."""

from collections.abc import Iterable, Iterator

from monitor.serve.access.caller import Caller, current_caller
from monitor.serve.api.problems import QuotaExceeded
from monitor.serve.api.writing.intake import Submission
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from schemas.records.declaration import Declaration
from schemas.records.events import BattleFields, models_of
from schemas.records.text import shorten


async def require_quotas(reports: ReportCache, submission: Submission) -> None:
    """Raise the 403 if a request would begin more than the caller's quotas allow."""
    # What is folded counts, with what the request adds: requests that are under way at the same time may exceed a quota together.
    caller = current_caller()
    quotas = caller.grants.quotas
    if quotas.keys() <= {"events"}:
        return
    await reports.at_rest()
    models, items = _names(submission)
    if "boards" in quotas:
        begun = {name for partition in reports.partitions for name in partition.names()}
        _check_boards(caller, begun, {*models, *(each.declare for each in submission.declarations)})
    if "items" in quotas:
        for declaration in submission.declarations:
            _check_declared(caller, declaration)
    for name in models:
        partition = next((each for each in reports.partitions if each.is_ours(name)), None)
        benchmark = None if partition is None else partition.board(name)
        known, seen = (0, 0) if benchmark is None else (len(benchmark.latest_epoch), benchmark.items)
        _check(caller, "models", name, known, sum(1 for _ in _new_models(benchmark, models[name])))
        _check(
            caller,
            "items",
            name,
            seen,
            len(items[name]) if partition is None else partition.new_items(name, items[name]),
        )


def _names(submission: Submission) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the models and the items of the events, by benchmark; a battle has no item."""
    models: dict[str, set[str]] = {}
    items: dict[str, set[str]] = {}
    for event in submission.events:
        models.setdefault(event.benchmark, set()).update(models_of(event))
        of = items.setdefault(event.benchmark, set())
        if not isinstance(event, BattleFields):
            of.add(event.item_id)
    return models, items


def _new_models(benchmark: BoardView | None, models: Iterable[str]) -> Iterator[str]:
    aliases = {} if benchmark is None else benchmark.spec.aliases
    known = {} if benchmark is None else benchmark.latest_epoch
    yield from {aliases.get(model, model) for model in models} - known.keys()


def _check_boards(caller: Caller, begun: set[str], names: set[str]) -> None:
    new = names - begun
    own = sum(caller.grants.may("write", name) or caller.grants.may("declare", name) for name in begun)
    most = caller.grants.quotas["boards"]
    if new and own + len(new) > most:
        raise QuotaExceeded(
            403,
            "boards",
            f"{caller.name} has a quota of {most:,} boards (quota:boards={most}), its scopes have {own:,}, and the request begins "
            f"{len(new):,}, such as {shorten(min(new))}. Delete boards that are not needed, or ask for another quota.",
        )


def _check_declared(caller: Caller, declaration: Declaration) -> None:
    spec, most = declaration.spec(), caller.grants.quotas["items"]
    if (spec.items or 0) > most:
        raise QuotaExceeded(
            403,
            "items",
            f"{caller.name} has a quota of {most:,} items a board (quota:items={most}), and the declaration of "
            f"{shorten(declaration.declare)} has {spec.items:,}. Declare fewer, or ask for another quota.",
        )


def _check(caller: Caller, quota: str, name: str, known: int, new: int) -> None:
    most = caller.grants.quotas.get(quota)
    if most is not None and new and known + new > most:
        raise QuotaExceeded(
            403,
            quota,
            f"{caller.name} has a quota of {most:,} {quota} a board (quota:{quota}={most}), {shorten(name)} has {known:,}, and the request "
            f"adds {new:,}. Nothing of the request is kept. Send what the board has already, or ask for another quota.",
        )
