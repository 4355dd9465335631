"""`rankwatch token`: who may read, write and declare over HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from monitor.cli.shared.commands import Group, add_command
from monitor.cli.shared.errors import FAULT, USAGE, file_error, note, stop
from monitor.cli.shared.options import TableFormat, TableFormatOption, option
from monitor.cli.shared.settings import read_settings
from monitor.render.terminal.layout import output_console
from monitor.serve.access.access_file import AccessFile, AccessFileError, new_token
from monitor.serve.access.scopes import Grants

if TYPE_CHECKING:
    from monitor.serve.access.access_file import Token


_NEVER: Final = "never"
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="who uses the token, such as ci", show_default=False)]
ScopeOption = Annotated[
    list[str] | None,
    option(
        "--scope",
        "read, read:GLOB, write:GLOB, declare:GLOB, manage:GLOB, quota:NAME=NUMBER or admin; repeat for several; GLOB is the name of a "
        "benchmark, * for any characters; NAME is boards, models, items or events",
        metavar="SCOPE",
    ),
]
ExpiresOption = Annotated[
    str | None, option("--expires", "30d, 12h, a date, a time of RFC 3339, or never", metavar="WHEN")
]


@dataclass(frozen=True)
class AccessOptions:
    """Which file."""

    file: Annotated[
        Path | None, option("--file", "file of the tokens  \\[default: the setting access_file]", metavar="FILE")
    ] = None


def create(
    name: NameArgument, options: AccessOptions, scope: ScopeOption = None, expires: ExpiresOption = None
) -> None:
    """Create a token and print it: this is the only time that it is shown, the file has its hash.

    Servers that use the file accept the token at once. Without --expires it is valid until it is revoked.

    Example: rankwatch token create ci --scope 'write:mmlu*' --scope quota:boards=20 --expires 90d
    """
    now = datetime.now(UTC)
    if not scope:
        stop(
            "the token may do nothing; give --scope read, read:GLOB, write:GLOB, declare:GLOB, manage:GLOB or admin",
            USAGE,
        )
    ending = _time(expires, now)
    try:
        secret, token = new_token(name, scope, now, ending)
    except ValueError as error:
        stop(str(error), USAGE)
    with _edit(options) as tokens:
        if any(each.name == name for each in tokens):
            stop(f"{name} has a token; replace it with `rankwatch token rotate {name}`, or revoke it first", FAULT)
        tokens.append(token)
    _show(secret, token)


def show(options: AccessOptions, form: TableFormatOption = TableFormat.table) -> None:
    """List the tokens: names, scopes and expiry, never a secret or its hash.

    Example: rankwatch token list --file access.json
    """
    now = datetime.now(UTC)
    with _reported(_file(options)) as file:
        tokens, groups = file.tokens(), file.groups()
    if form is TableFormat.json:
        rows = [each.row() | {"state": _state(each, now)} for each in tokens]
        shown = [{k: v for k, v in row.items() if k != "sha256"} for row in rows]
        members = [{"name": name, "scopes": list(grants.scopes)} for name, grants in groups.items()]
        print(json.dumps({"tokens": shown, "groups": members}, indent=2))
        return
    if not tokens and not groups:
        print("no tokens")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "scopes", "created", "expires", "state"):
        table.add_column(heading, overflow="fold")
    for each in tokens:
        scopes = escape(", ".join(each.grants.scopes))
        table.add_row(each.name, scopes, _minute(each.created), _minute(each.expires), _state(each, now))
    for name, grants in groups.items():
        table.add_row(f"group {escape(name)}", escape(", ".join(grants.scopes)), "", "", "")
    output_console().print(table)


def rotate(
    name: NameArgument,
    options: AccessOptions,
    expires: ExpiresOption = None,
    overlap: Annotated[
        str | None,
        option("--overlap", "how long the old token stays valid, such as 1h  \\[default: not at all]", metavar="TIME"),
    ] = None,
) -> None:
    """Replace a token by a new one with the same scopes, and print it. Without --expires it is valid for as long as the old one was.

    Example: rankwatch token rotate ci --overlap 1h --expires 90d
    """
    now = datetime.now(UTC)
    until = now if overlap is None else now + _duration("--overlap", overlap)
    ending = _time(expires, now)
    with _edit(options) as tokens:
        old = _named(tokens, name)
        last = old[-1]
        if expires is None and last.expires is not None:
            ending = now + (last.expires - last.created)
        secret, token = new_token(name, last.grants.scopes, now, ending)
        kept = [each.ending(until) for each in old]
        tokens[:] = [each for each in tokens if each.name != name]
        tokens += [*(each for each in kept if not each.expired(now)), token]
    _show(secret, token)


def revoke(name: NameArgument, options: AccessOptions) -> None:
    """Revoke every token of a name: servers refuse its next request, and end its streams within 15 s.

    Example: rankwatch token revoke ci
    """
    with _edit(options) as tokens:
        _named(tokens, name)
        tokens[:] = [each for each in tokens if each.name != name]
    note(f"{name} is revoked")


def group(
    name: Annotated[
        str,
        typer.Argument(metavar="GROUP", help="a group of the proxy, or * for each of its users", show_default=False),
    ],
    options: AccessOptions,
    scope: ScopeOption = None,
) -> None:
    """Set what the members of a group may do, whom a trusted proxy signs in; without --scope, nothing.

    Example: rankwatch token group evaluation --scope read --scope 'write:mmlu*'
    """
    if not name.strip() or "," in name or not name.isprintable():
        stop(f"{name!r} is no name of a group; a header lists groups, separated by commas", USAGE)
    try:
        grants = Grants.of(scope or [])
    except ValueError as error:
        stop(str(error), USAGE)
    with _reported(_file(options)) as file, file.edit_groups() as groups:
        if grants:
            groups[name] = grants
        else:
            groups.pop(name, None)
    note(f"members of {name} may do: {', '.join(grants.scopes) or 'nothing'}")


def _named(tokens: "list[Token]", name: str) -> "list[Token]":
    named = [each for each in tokens if each.name == name]
    if not named:
        stop(f"there is no token of the name {name!r}; `rankwatch token list` lists the names", FAULT)
    return named


def _show(secret: str, token: "Token") -> None:
    ending = "does not expire" if token.expires is None else f"expires {_minute(token.expires)}"
    note(f"the token of {token.name} ({', '.join(token.grants.scopes)}; {ending}) is not shown again:")
    print(secret)


def _state(token: "Token", now: datetime) -> str:
    return "expired" if token.expired(now) else "valid"


def _minute(time: datetime | None) -> str:
    return _NEVER if time is None else time.isoformat(timespec="minutes")


def _file(options: AccessOptions) -> "AccessFile":
    path = options.file or read_settings().access_file
    if path is None:
        stop("no file of tokens is set; give --file FILE (or RANKWATCH_ACCESS_FILE)", USAGE)
    return AccessFile(path)


@contextmanager
def _reported(file: "AccessFile") -> "Iterator[AccessFile]":
    try:
        yield file
    except AccessFileError as error:
        stop(str(error), FAULT)
    except OSError as error:
        stop(file_error(error, file.path), FAULT)


@contextmanager
def _edit(options: AccessOptions) -> "Iterator[list[Token]]":
    with _reported(_file(options)) as file, file.edit() as tokens:
        yield tokens


def _time(text: str | None, now: datetime) -> datetime | None:
    """Return when a token expires; None for never."""
    if text is None or text == _NEVER:
        return None
    if text[-1:] in _UNITS:
        return now + _duration("--expires", text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        stop(f"--expires {text!r}: use a time such as 30d, 12h or 2027-01-31, or never", USAGE)
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if time <= now:
        stop(f"--expires {text} is past; give a later time", USAGE)
    return time


def _duration(flag: str, text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdecimal()) or not 0 < int(number) < 1_000_000:
        stop(f"{flag} {text!r}: use a time such as 30m, 12h or 30d", USAGE)
    return timedelta(**{_UNITS[unit]: int(number)})


token = typer.Typer(cls=Group, no_args_is_help=True)
add_command(token, create, "create")
add_command(token, show, "list")
add_command(token, rotate, "rotate")
add_command(token, revoke, "revoke")
add_command(token, group, "group")
