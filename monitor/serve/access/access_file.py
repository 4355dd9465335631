"""Tokens and groups in a file: what each may do and until when, with a hash in place of a secret.

A secret has 256 random bits, so one SHA-256 is enough: a slow hash protects secrets that can be guessed, and nobody guesses this one.
"""

import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

from monitor.durable import lock_file, replace_file
from monitor.serve.access.caller import RESERVED_NAMES, caller_name_fault
from monitor.serve.access.scopes import Grants

PREFIX: Final = "rankwatch_"  # with which every secret begins, so that scanners find one that was published

_RANDOM_BYTES: Final = 32
_VERSION: Final = 1
_FIELDS: Final = frozenset({"name", "scopes", "sha256", "created", "expires"})
_HEX: Final = frozenset("0123456789abcdef")
_MAX_BYTES: Final = 4_000_000
_LOCK_SECONDS: Final = 10.0
_MOUNTED: Final = "..data/"  # kubernetes mounts a secret as links into this folder, which it replaces at once


class AccessFileError(ValueError):
    """The file cannot be used; the message names it, the reason and what to do."""


@dataclass(frozen=True)
class Token:
    """A token without its secret; after a rotation several tokens may have the same name."""

    name: str
    grants: Grants
    sha256: str
    created: datetime
    expires: datetime | None

    def expired(self, now: datetime) -> bool:
        """Return whether it has expired."""
        return self.expires is not None and now >= self.expires

    def ending(self, time: datetime) -> "Token":
        """Return it with this expiry, if that is earlier."""
        return self if self.expires is not None and self.expires <= time else replace(self, expires=time)

    def row(self) -> dict[str, Any]:
        """Return it as the file has it."""
        return {
            "name": self.name,
            "scopes": list(self.grants.scopes),
            "sha256": self.sha256,
            "created": self.created.isoformat(),
            "expires": None if self.expires is None else self.expires.isoformat(),
        }


def new_token(name: str, scopes: Sequence[str], now: datetime, expires: datetime | None) -> tuple[str, Token]:
    """Make a secret and its token."""
    secret = PREFIX + token_urlsafe(_RANDOM_BYTES)
    _check_name(name)
    grants = Grants.of(scopes)
    if not grants:
        raise ValueError("the token has no scope")
    return secret, Token(name, grants, hash_of(secret.encode()), now, expires)


def hash_of(secret: bytes) -> str:
    """Return the hash of a secret."""
    return sha256(secret).hexdigest()


def parse_time(text: str) -> datetime:
    """Parse a time that has its offset from UTC."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return parsed


class AccessFile:
    """The tokens of a file, which is read again when it has changed."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path, self._now = path, now
        self._signature: object = None
        self._tokens: Mapping[str, Token] = {}
        self._groups: Mapping[str, Grants] = {}
        self._error: AccessFileError | None = None

    def tokens(self) -> list[Token]:
        """Return every token, also the expired ones."""
        self._refresh()
        return list(self._tokens.values())

    def groups(self) -> dict[str, Grants]:
        """Return what the members of each group may do."""
        self._refresh()
        return dict(self._groups)

    def find(self, secret: bytes) -> Token | None:
        """Return the token of a secret, unless it is unknown or has expired."""
        # The look-up reveals nothing by its time: an attacker cannot choose a hash, and the last comparison takes constant time.
        self._refresh()
        digest = hash_of(secret)
        token = self._tokens.get(digest)
        if token is None or not compare_digest(token.sha256, digest) or token.expired(self._now()):
            return None
        return token

    @contextmanager
    def edit(self) -> Iterator[list[Token]]:
        """Give the tokens as a list to change, and replace the file with it; one process at a time."""
        with self._edit() as (tokens, _):
            yield tokens

    @contextmanager
    def edit_groups(self) -> Iterator[dict[str, Grants]]:
        """Give the groups to change, as `edit` does with the tokens."""
        with self._edit() as (_, groups):
            yield groups

    @contextmanager
    def _edit(self) -> Iterator[tuple[list[Token], dict[str, Grants]]]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.is_symlink():
            raise AccessFileError(f"{self.path} is a link; change the file or the secret that it leads to")
        lock = self._lock()
        try:
            known = self.path.exists()
            tokens, groups = (self.tokens(), self.groups()) if known else ([], {})
            yield tokens, groups
            document: dict[str, Any] = {"version": _VERSION, "tokens": [token.row() for token in tokens]}
            if groups:
                document["groups"] = {name: list(grants.scopes) for name, grants in groups.items()}
            text = json.dumps(document, indent=1)
            replace_file(self.path, text.encode() + b"\n")
        finally:
            os.close(lock)

    def _lock(self) -> int:
        """Lock the edit of the file: the lock is on a file of its own, for the tokens are replaced."""
        path, end = self.path.with_name(f".{self.path.name}.lock"), time.monotonic() + _LOCK_SECONDS
        while (lock := lock_file(path)) is None:
            if time.monotonic() > end:
                raise AccessFileError(f"{self.path} is being changed by another process; try again")
            time.sleep(0.05)
        return lock

    def _refresh(self) -> None:
        """Read the file if it has changed; raise the error of the last reading otherwise, if there was one."""
        signature = self._current_signature()
        if signature is None or signature != self._signature:
            self._signature, self._tokens, self._groups, self._error = signature, {}, {}, None
            try:
                tokens, groups = _read(self.path)
                self._tokens, self._groups = {token.sha256: token for token in tokens}, groups
            except AccessFileError as error:
                self._error = error
        if self._error is not None:
            raise self._error

    def _current_signature(self) -> object:
        """Return what changes whenever the file is replaced, linked or made writable; None if it cannot be known."""
        try:
            link, file = self.path.lstat(), self.path.stat()
        except OSError:
            return None
        return link.st_ino, link.st_mode, file.st_ino, file.st_mode, file.st_uid, file.st_mtime_ns, file.st_ctime_ns


def _read(path: Path) -> tuple[list[Token], dict[str, Grants]]:
    try:
        text = _checked_bytes(path)
    except FileNotFoundError as error:
        raise AccessFileError(f"{path} does not exist; make it with `rankwatch token create`") from error
    except OSError as error:
        raise AccessFileError(
            f"{path} cannot be read ({error.strerror}); correct the path or its permissions"
        ) from error
    try:
        return _parse(text)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise AccessFileError(
            f"{path} is not a file of tokens ({error}); restore it, or make another one with `rankwatch token create`"
        ) from error


def _checked_bytes(path: Path) -> bytes:
    """Read a file that only its owner could have written: a link or a mode that lets others in is refused."""
    mounted = path.is_symlink() and str(path.readlink()).startswith(_MOUNTED)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if mounted else os.O_NOFOLLOW))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        others = stat.S_IWGRP | stat.S_IWOTH if mounted else stat.S_IRWXG | stat.S_IRWXO
        if not stat.S_ISREG(status.st_mode):
            raise AccessFileError(f"{path} is not a file; name the file of the tokens")
        if status.st_uid not in {0, os.geteuid()}:
            raise AccessFileError(f"{path} belongs to another user; make it a file of the user who runs rankwatch")
        if status.st_mode & others:
            raise AccessFileError(
                f"{path} is open to other users (mode {status.st_mode & 0o777:04o}); run `chmod 600` on it"
            )
        contents = file.read(_MAX_BYTES + 1)
    if len(contents) > _MAX_BYTES:
        raise AccessFileError(f"{path} is larger than {_MAX_BYTES:,} bytes; revoke tokens that are not used")
    return contents


def _parse(text: bytes) -> tuple[list[Token], dict[str, Grants]]:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError(f"it has no version {_VERSION}")
    groups = document.get("groups", {})
    if not isinstance(groups, dict) or not all(isinstance(scopes, list) for scopes in groups.values()):
        raise ValueError("the groups are not lists of scopes by name")
    return [_token(row) for row in document["tokens"]], {name: Grants.of(scopes) for name, scopes in groups.items()}


def _token(row: Mapping[str, Any]) -> Token:
    if set(row) != _FIELDS:
        raise ValueError("a token has other fields than " + ", ".join(sorted(_FIELDS)))
    _check_name(row["name"])
    digest, expires = row["sha256"], row["expires"]
    if not isinstance(digest, str) or len(digest) != 64 or not _HEX.issuperset(digest):
        raise ValueError(f"{row['name']} has no hash of 64 hexadecimal digits")
    if not isinstance(row["scopes"], list):
        raise ValueError(f"the scopes of {row['name']} are not a list")  # noqa: TRY004 - a fault of the file
    return Token(
        row["name"],
        Grants.of(row["scopes"]),
        digest,
        parse_time(row["created"]),
        None if expires is None else parse_time(expires),
    )


def _check_name(name: str) -> None:
    fault = caller_name_fault(name)
    if fault is None and name in RESERVED_NAMES:
        fault = f"the name {name!r} has a meaning of its own; use another one"
    if fault is not None:
        raise ValueError(fault)
