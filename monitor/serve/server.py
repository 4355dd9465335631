"""HTTP/1.1 for the outside: a request's head has to come in time, however slowly its bytes are dripped."""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0
"""How long a connection may take to say what it wants."""


class ImpatientProtocol(H11Protocol):
    """The server's protocol, which closes a connection whose request head does not come in time.

    The server's own time-out covers connections between requests only.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server's own
        """Begin to count."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Count on while a head is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._end()
        elif self._deadline is None:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
