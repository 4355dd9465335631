"""A way to a server that can be slow, fall silent, or be cut: before a command arrives, or after it did and before its reply comes back."""

import contextlib
import socket
import threading
import time


class Proxy:
    """Forwards connections to a port of this machine; a context manager.

    Attributes
    ----------
    cut_replies : bytes or None
        Once a client sends this, its connection ends when the server answers: the command has run, unknown to the client. Then None again.
    cuts : int
        How often that happened.
    block, delay : int, float
        Bytes that are taken at a time, and seconds that they are under way.
    """

    def __init__(self, port):
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_replies, self.cuts = None, 0
        self.block, self.delay = 1 << 20, 0.0
        self._flowing = threading.Event()
        self._flowing.set()
        self._open = set()

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # A listener that is only closed goes on accepting until the call under way returns.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self.resume()

    def hold(self):
        """Let nothing through any more, connections open: either side hears nothing from the other."""
        self._flowing.clear()

    def resume(self):
        """Let through what was held, and what comes."""
        self._flowing.set()

    def cut(self):
        """Cut every connection; what is under way is lost."""
        for each in list(self._open):
            self._close(each)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[ours], daemon=True).start()

    def _serve(self, ours):
        try:
            theirs = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            ours.close()
            return
        self._open |= {ours, theirs}
        silent = threading.Event()
        threading.Thread(target=self._back, args=[theirs, ours, silent], daemon=True).start()
        with contextlib.suppress(OSError):
            while data := ours.recv(self.block):
                if self.cut_replies is not None and self.cut_replies in data:
                    self.cut_replies = None
                    self.cuts += 1
                    silent.set()
                self._carry(data, theirs)
        self._close(ours)
        self._close(theirs)

    def _back(self, theirs, ours, silent):
        with contextlib.suppress(OSError):
            while (data := theirs.recv(self.block)) and not silent.is_set():
                self._carry(data, ours)
        self._close(ours)
        self._close(theirs)

    def _carry(self, data, to):
        time.sleep(self.delay)
        self._flowing.wait()
        to.sendall(data)

    def _close(self, connection):
        self._open.discard(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
