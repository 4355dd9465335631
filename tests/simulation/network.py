"""Connections between simulated processes and servers: bytes with delays, that are cut where a fault says."""

import asyncio
import contextvars

from tests.simulation.clock import PROCESS


class Network:
    """Connects clients to servers by address; a server has `data(connection, bytes)` and `closed(connection)`."""

    def __init__(self, rng):
        self._rng, self.servers, self.connections, self.slow = rng, {}, [], 1.0
        self.cuts = []
        """Cuts that wait for the next request: see `cut_next`."""

    def delay(self):
        """How long the next bytes take."""
        return self._rng.uniform(0.0002, 0.004) * self.slow

    async def connect(self, protocol, host, port):
        """Connect the running process."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self.delay())
        server = self.servers.get(host)
        if server is None or not server.up:
            raise ConnectionRefusedError(111, "refused")
        connection = Connection(self, loop, protocol, server, PROCESS.get())
        self.connections.append(connection)
        protocol.connection_made(connection)
        return connection

    def cut_next(self, where, share):
        """Cut the connection of the next request to the store.

        `where` is "request": only a share of it arrives; or "reply": it runs, and a share of its reply arrives.
        """
        self.cuts.append((where, share))

    def cut(self, process=None, server=None):
        """Cut the connections of a process, or to a server; return how many there were."""
        chosen = [c for c in self.connections if process in {None, c.process} and server in {None, c.server}]
        for connection in chosen:
            connection.cut()
        return len(chosen)

    def forget(self, process):
        """A process was killed: what it has sent arrives, and then its connections end."""
        for connection in [c for c in self.connections if c.process is process]:
            connection.close()


class Connection(asyncio.Transport):
    """One connection, as the client's transport."""

    def __init__(self, network, loop, protocol, server, process):
        super().__init__()
        self.network, self.server, self.process = network, server, process
        self._loop, self._protocol = loop, protocol
        self._context = None if process is None else process.context
        self._up, self._down = 0.0, 0.0
        self.open, self._closing, self._cut_reply = True, False, None

    def write(self, data):
        """Send to the server."""
        if self._closing or not self.open:
            return
        data = bytes(data)
        if self.network.cuts and b"EVALSHA" in data:
            where, share = self.network.cuts.pop(0)
            if where == "request":
                data = data[: int(len(data) * share)]
                self._upwards(self._arrive, data)
                self._upwards(self.cut)
                return
            self._cut_reply = share
        self._upwards(self._arrive, data)

    def writelines(self, data):
        """Send several parts."""
        self.write(b"".join(data))

    def _upwards(self, callback, *args):
        self._up = max(self._up, self._loop.time() + self.network.delay())
        self._loop.call_at(self._up, callback, *args, context=contextvars.Context())

    def _arrive(self, data):
        if self.open:
            self.server.data(self, data)

    def reply(self, data):
        """Send to the client; called by the server."""
        if self._cut_reply is not None:
            data, self._cut_reply = data[: int(len(data) * self._cut_reply)], None
            self._downwards(self._receive, data)
            self.cut()
            return
        self._downwards(self._receive, data)

    def _downwards(self, callback, *args):
        self._down = max(self._down, self._loop.time() + self.network.delay())
        self._loop.call_at(self._down, callback, *args, context=self._context)

    def _receive(self, data):
        if not self._closing and data:
            self._protocol.data_received(data)

    def cut(self):
        """End it for both sides, with what is under way to the server lost."""
        if self.open:
            self._end()
            self._downwards(self._lost, ConnectionResetError(104, "reset"))

    def close(self):
        """Close it from the client's side, after what was sent."""
        if not self._closing:
            self._closing = True
            self._upwards(self._end)
            self._loop.call_soon(self._lost, None, context=self._context)

    abort = close

    def _end(self):
        if self.open:
            self.open = False
            self.network.connections.remove(self)
            self.server.closed(self)

    def _lost(self, error):
        if self._protocol is not None:
            protocol, self._protocol, self._closing = self._protocol, None, True
            protocol.connection_lost(error)

    def is_closing(self):
        """Whether it is closed or being closed."""
        return self._closing

    def get_write_buffer_size(self):
        """Everything is sent at once."""
        return 0

    def pause_reading(self):
        """Messages are small."""

    def resume_reading(self):
        """Messages are small."""

    def can_write_eof(self):
        """No."""
        return False
