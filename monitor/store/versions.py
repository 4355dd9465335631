"""Refuse a state that another version wrote, or whose import is unfinished."""

from collections.abc import Mapping
from typing import Final

from monitor.store.errors import StateRefused
from monitor.store.layout import IMPORTING
from schemas.records.versions import STATE_VERSION, STATISTICS_VERSION

VERSIONS: Final = {"state_version": STATE_VERSION, "statistics_version": STATISTICS_VERSION}
"""The versions of this program."""


def check_versions(stored: Mapping[str, int | None], state: str) -> None:
    """Raise `StateRefused` unless `state` (the name of a stored state, for the message) has versions that this program can use."""
    for name, ours in VERSIONS.items():
        version = stored.get(name)
        if version != ours:
            raise StateRefused(
                f"{state} has {name} {'missing' if version is None else version}, this program has {ours}, and verdicts of two versions "
                "must not be mixed; run the version that wrote it, or fold the log again under another topic name or data directory"
            )


def check_meta(meta: Mapping[bytes, bytes], tag: str, address: str) -> None:
    """Check the ``:meta`` hash of a state before it is used; a state that was never written passes."""
    if meta.get(b"off") == str(IMPORTING).encode():
        raise StateRefused(
            f"an import into the state {tag} at {address} is unfinished; wait for it or, if it no longer runs, delete the "
            f"state (redis-cli --scan --pattern '{tag}:*' | xargs redis-cli DEL) and import again"
        )
    versions = {name: meta.get(name.encode(), b"") for name in VERSIONS}
    stored = {name: int(version) if version.isdigit() else None for name, version in versions.items()}
    if b"off" in meta or any(version is not None for version in stored.values()):
        check_versions(stored, f"the state {tag} at {address}")
