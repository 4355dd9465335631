"""The boards of another rankwatch, over HTTP."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from monitor.send.http import call, checked_url
from schemas.records.operations import BoardChange, Undone
from schemas.records.text import utc_text

_NEXT: Final = "Rankwatch-Next-Cursor"


class ServedBoards:
    """The boards that a server shows."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url, self._token = checked_url(url), token

    def rows(self) -> list[dict[str, Any]]:
        """Return a summary of each board; raise `DeliveryError` if the server does not give them."""
        boards: list[dict[str, Any]] = []
        cursor: str | None = "0"
        while cursor is not None:
            page = json.loads(self._get(f"boards?cursor={cursor}", "the boards cannot be listed")[0])
            boards += page["boards"]
            cursor = page["next_cursor"]
        return boards

    def show(self, benchmark: str) -> dict[str, Any]:
        """Return one board with its declaration."""
        text, _ = self._get(f"boards/{quote(benchmark, safe='')}", "the board cannot be shown")
        board: dict[str, Any] = json.loads(text)
        return board

    def change(self, change: BoardChange) -> bool:
        """Change a board; return whether the change is in force already."""
        return bool(self._change(change)["in_force"])

    def undo(self, change: BoardChange) -> Undone:
        """Begin a board again without the events that a change withdraws; the server may still be copying on return."""
        answer = self._change(change)
        return Undone(answer["withdrawn"], answer["kept"], answer["in_force"])

    def _change(self, change: BoardChange) -> dict[str, Any]:
        body = {name: value for name, value in msgspec.structs.asdict(change).items() if name != "kept"}
        if change.since is not None:
            body["since"] = utc_text(change.since)
        text, _ = call(self.url, self._token, "POST", "boards", body, what=f"cannot {change.board} the board")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def scores(self, benchmark: str) -> Iterator[bytes]:
        """Yield the scores of a board as JSON lines, in parts."""
        path, cursor = f"boards/{quote(benchmark, safe='')}/scores", ""
        while True:
            text, headers = self._get(path + cursor, "the board cannot be exported")
            yield text
            if headers.get(_NEXT) is None:
                return
            cursor = f"?cursor={headers[_NEXT]}"

    def _get(self, path: str, what: str) -> Any:  # noqa: ANN401 - the bytes and the headers
        return call(self.url, self._token, "GET", path, what=what)
