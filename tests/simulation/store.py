"""A Redis 7.0 in memory: the commands that rankwatch uses, its Lua, and an append-only file with the faults of that version.

tests/simulation/test_store.py compares replies, and the bytes of the file, with a real server.
"""

import hashlib
import re
import struct
from bisect import bisect_left, bisect_right

from lupa.lua51 import LuaRuntime

INFO = b"redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\naof_enabled:1\r\n"


class Refusal(Exception):  # noqa: N818 - a reply
    """An error reply."""


class Damaged(Exception):  # noqa: N818 - a state
    """The append-only file is not one: the server does not start."""


class Status(bytes):
    """A status reply."""


OK = Status(b"OK")


def encode(*words):
    """A command as it is sent, and written to the file."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def parse(data, at):
    """The command at a position, and where it ends; None if it is not complete."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    if data[at : at + 1] != b"*" or not data[at + 1 : end].isdigit():
        raise Damaged(at)
    words, at, count = [], end + 2, int(data[at + 1 : end])
    for _ in range(count):
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        if data[at : at + 1] != b"$" or not data[at + 1 : end].isdigit():
            raise Damaged(at)
        start = end + 2
        at = start + int(data[at + 1 : end]) + 2
        if at > len(data):
            return None
        if data[at - 2 : at] != b"\r\n":
            raise Damaged(at)
        words.append(bytes(data[start : at - 2]))
    return words, at


def reply_bytes(value):
    """A reply in RESP2."""
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, Status):
        return b"+%b\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, Refusal):
        return b"-%b\r\n" % value.args[0]
    return b"*%d\r\n" % len(value) + b"".join(map(reply_bytes, value))


class Stream:
    """Entries by id, and the last id that was given."""

    def __init__(self):
        self.ids, self.fields, self.last = [], [], (0, 0)


def stream_id(text):
    milliseconds, _, sequence = text.partition(b"-")
    return int(milliseconds), int(sequence or 0)


def _text(identifier):
    return b"%d-%d" % identifier


_TYPES = {bytearray: b"string", dict: b"hash", Stream: b"stream"}


class Database:
    """The keys, and the commands on them; `changed` is set by a command that writes."""

    def __init__(self):
        self.keys, self.changed = {}, False

    def run(self, words):
        """Run a command; return its reply."""
        command = getattr(self, "do_" + words[0].decode().lower(), None)
        if command is None:
            raise Refusal(b"ERR unknown command '%b'" % words[0])
        self.changed = False
        return command(*words[1:])

    def _get(self, key, kind):
        value = self.keys.get(key)
        if value is not None and type(value) is not kind:
            raise Refusal(b"WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def _of(self, key, kind):
        value = self._get(key, kind)
        if value is None:
            value = self.keys[key] = kind()
        return value

    def do_type(self, key):
        value = self.keys.get(key)
        return Status(b"none" if value is None else _TYPES[type(value)])

    def do_exists(self, *keys):
        return sum(key in self.keys for key in keys)

    def do_del(self, *keys):
        count = sum(self.keys.pop(key, None) is not None for key in keys)
        self.changed = count > 0
        return count

    def do_get(self, key):
        value = self._get(key, bytearray)
        return None if value is None else bytes(value)

    def do_mget(self, *keys):
        return [self.do_get(key) if type(self.keys.get(key)) is bytearray else None for key in keys]

    def do_set(self, key, value, *options):
        if b"NX" in options and key in self.keys:
            return None
        self.keys[key], self.changed = bytearray(value), True
        return OK

    def do_flushall(self):
        self.keys.clear()
        self.changed = True
        return OK

    def do_append(self, key, value):
        self._of(key, bytearray).extend(value)
        self.changed = True
        return len(self.keys[key])

    def do_setrange(self, key, offset, value):
        if not value:
            return len(self._get(key, bytearray) or b"")
        data, start = self._of(key, bytearray), int(offset)
        data.extend(bytes(max(0, start + len(value) - len(data))))
        data[start : start + len(value)] = value
        self.changed = True
        return len(data)

    def do_hset(self, key, *fields):
        table = self._of(key, dict)
        before = len(table)
        table.update(zip(fields[::2], fields[1::2], strict=True))
        self.changed = True
        return len(table) - before

    def do_hsetnx(self, key, field, value):
        table = self._of(key, dict)
        if field in table:
            return 0
        table[field], self.changed = value, True
        return 1

    def do_hget(self, key, field):
        return (self._get(key, dict) or {}).get(field)

    def do_hmget(self, key, *fields):
        table = self._get(key, dict) or {}
        return [table.get(field) for field in fields]

    def do_hgetall(self, key):
        return [word for pair in (self._get(key, dict) or {}).items() for word in pair]

    def do_hvals(self, key):
        return list((self._get(key, dict) or {}).values())

    def do_hdel(self, key, *fields):
        table = self._get(key, dict) or {}
        count = sum(table.pop(field, None) is not None for field in fields)
        self.changed = count > 0
        if not table:
            self.keys.pop(key, None)
        return count

    def do_xadd(self, key, identifier, *fields):
        new = stream_id(identifier)
        stream = self._get(key, Stream)
        if new <= (stream.last if stream is not None else (0, 0)):
            raise Refusal(
                b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
                if new > (0, 0)
                else b"ERR The ID specified in XADD must be greater than 0-0"
            )
        stream = self._of(key, Stream)
        stream.ids.append(new)
        stream.fields.append(list(fields))
        stream.last, self.changed = new, True
        return _text(new)

    def do_xlen(self, key):
        stream = self._get(key, Stream)
        return len(stream.ids) if stream is not None else 0

    def do_xread(self, *words):
        count = int(words[words.index(b"COUNT") + 1])
        key, after = words[-2:]
        stream = self._get(key, Stream)
        start = bisect_right(stream.ids, stream_id(after)) if stream is not None else 0
        if stream is None or start == len(stream.ids):
            return None
        entries = zip(stream.ids[start : start + count], stream.fields[start : start + count], strict=True)
        return [[key, [[_text(identifier), fields] for identifier, fields in entries]]]

    def do_xtrim(self, key, _minid, _equals, identifier):
        stream = self._get(key, Stream)
        cut = bisect_left(stream.ids, stream_id(identifier)) if stream is not None else 0
        if cut:
            del stream.ids[:cut], stream.fields[:cut]
            self.changed = True
        return cut

    def do_xinfo(self, _stream, key):
        stream = self._get(key, Stream)
        last = [_text(stream.ids[-1]), stream.fields[-1]] if stream.ids else None
        return [b"last-generated-id", _text(stream.last), b"last-entry", last]

    def do_xrange(self, key, *_):
        return self._end(key, 0)

    def do_xrevrange(self, key, *_):
        return self._end(key, -1)

    def _end(self, key, place):
        stream = self._get(key, Stream)
        return [] if stream is None or not stream.ids else [[_text(stream.ids[place]), stream.fields[place]]]


class Scripts:
    """Lua 5.1 with Redis's functions; compiled scripts are kept for all servers."""

    def __init__(self):
        self._lua = LuaRuntime(encoding=None, unpack_returned_tuples=True)
        self._table = self._lua.table_from
        self._redis = self._table(
            {
                b"call": self._call,
                b"error_reply": lambda text: self._table({b"err": text}),
                b"acl_check_cmd": lambda *_: True,
            }
        )
        self._struct = self._table({b"unpack": _unpack})
        self._compiled = {}

    def run(self, text, keys, arguments, call):
        """Run a script; `call` runs its commands."""
        function = self._compiled.get(text)
        if function is None:
            function = self._compiled[text] = self._lua.eval(b"function(KEYS, ARGV, redis, struct)\n" + text + b"\nend")
        self._run = call
        return self._reply(function(self._table(keys), self._table(arguments), self._redis, self._struct))

    def _call(self, *words):
        reply = self._run([word if isinstance(word, bytes) else b"%d" % word for word in words])
        if isinstance(reply, Status):
            return self._table({b"ok": bytes(reply)})
        return self._of_reply(reply)

    def _of_reply(self, reply):
        if isinstance(reply, list):
            return self._table([self._of_reply(value) for value in reply])
        return False if reply is None else reply

    def _reply(self, value):
        if value is None or isinstance(value, bytes | int):
            return value
        if value[b"err"] is not None:
            raise Refusal(value[b"err"])
        return [self._reply(each) for each in value.values()]


def _unpack(layout, data, at):
    layout = re.sub(rb"I4", b"I", layout).decode()
    return (*struct.unpack_from(layout, data, at - 1), at + struct.calcsize(layout))


SCRIPTS = Scripts()

_COVERED = frozenset(
    b"meta benchmarks spec rows models values scores family arrival conflicts peaks again latches terms".split()
)
"""Kinds of keys that digests cover, but for a few fields."""


class Server:
    """One server: its memory, its file, and the clients that are connected.

    Attributes
    ----------
    file : bytearray
        The append-only file; what a command wrote is in it before the reply is sent.
    on_script : callable
        Called after each script that wrote.
    """

    def __init__(self, on_script=lambda: None):
        self.database, self.file, self.on_script = Database(), bytearray(), on_script
        self.up, self.stalled = True, False
        self._buffers, self._queue, self._scripts = {}, [], {}
        self._selected = False
        self.starts = 0
        self.dangling = self.flipped = False
        """Whether the file was ever cut inside a transaction, so that its commands run later, with another one; or changed."""

    def data(self, connection, data):
        """Bytes from a client."""
        if not self.up:
            return
        buffer = self._buffers.setdefault(connection, bytearray())
        buffer += data
        if self.stalled:
            self._queue.append(connection)
            return
        self._serve(connection)

    def _serve(self, connection):
        buffer, at, replies = self._buffers.get(connection, b""), 0, []
        while at < len(buffer) and (parsed := parse(buffer, at)) is not None:
            words, at = parsed
            replies.append(reply_bytes(self.execute(words)))
        del buffer[:at]
        if replies:
            connection.reply(b"".join(replies))

    def closed(self, connection):
        """A connection has ended."""
        self._buffers.pop(connection, None)

    def stall(self):
        """Answer nobody until `resume`."""
        self.stalled = True

    def resume(self):
        """Answer everything that came meanwhile."""
        self.stalled, queue = False, self._queue
        self._queue = []
        for connection in dict.fromkeys(queue):
            if connection in self._buffers:
                self._serve(connection)

    def execute(self, words):
        """Run a command of a client; return its reply."""
        name = words[0].upper()
        try:
            if name in {b"EVALSHA", b"EVAL"}:
                return self._script(words)
            if name == b"SCRIPT":
                sha = hashlib.sha1(words[2]).hexdigest().encode()
                self._scripts[sha] = words[2]
                return sha
            if name in {b"CLIENT", b"PING", b"SELECT"}:
                return OK
            if name == b"INFO":
                return INFO
            reply = self.database.run(words)
        except Refusal as refusal:
            return refusal
        if self.database.changed:
            self._append([words])
        return reply

    def _script(self, words):
        text = self._scripts.get(words[1].lower())
        if text is None:
            raise Refusal(b"NOSCRIPT No matching script. Please use EVAL.")
        keys, effects = int(words[2]), []

        def call(inner):
            reply = self.database.run(inner)
            if self.database.changed:
                effects.append(inner)
            return reply

        reply = SCRIPTS.run(text, words[3 : 3 + keys], words[3 + keys :], call)
        self._append(effects)
        if effects:
            self.on_script()
        return reply

    def _append(self, commands):
        if len(commands) > 1:
            self.file += encode(b"MULTI")
        for words in commands:
            if not self._selected:
                self.file += encode(b"SELECT", b"0")
                self._selected = True
            self.file += encode(*words)
        if len(commands) > 1:
            self.file += encode(b"EXEC")

    def kill(self):
        """End it: the memory is gone, the file stays."""
        self.up = self.stalled = False
        self._queue.clear()

    def cut(self, length):
        """Lose the end of the file, but not the key of the origins, which is written first; `FLUSHALL` loses that."""
        key = self.file.rfind(b":origins}:key")
        after = self.file.find(b"\r\n*", key)
        kept = 0 if key < 0 else len(self.file) if after < 0 else after + 2
        del self.file[max(kept, len(self.file) - length) :]

    def flip(self, place, bit):
        """Change one bit of a recent value that a digest covers; return whether there is one."""
        values, at = [], 0
        while (parsed := parse(self.file, at)) is not None:
            words, at = parsed
            kind = words[1].split(b":")[2] if len(words) > 3 and words[1].count(b":") > 1 else b""
            fields = dict(zip(words[2::2], words[3::2], strict=False))
            if kind in _COVERED and words[0] != b"XADD" and not fields.keys() & {b"at", b"seq", b"log"} and words[-1]:
                values.append((at - 2 - len(words[-1]), at - 2))
        if not values:
            return False
        start, end = values[-1 - int(place * min(60, len(values)))]
        self.file[start + bit % (end - start)] ^= 1 << bit % 8
        self.flipped = True
        return True

    def start(self):
        """Read the file, as Redis 7.0 does, and serve."""
        self.database, self._scripts, self._selected, self._buffers = Database(), {}, False, {}
        self._load()
        self.starts += 1
        self.up = True

    def _load(self):
        at = valid = before = 0
        queue = None
        while at < len(self.file):
            parsed = parse(self.file, at)
            if parsed is None:  # torn: cut after the last whole command, even inside a transaction, which is dropped
                del self.file[valid:]
                self.dangling |= queue is not None
                return
            words, at = parsed
            name = words[0].upper()
            if name == b"MULTI":
                before = valid
            if queue is not None and name != b"EXEC":
                queue.append(words)
            elif name == b"MULTI":
                queue = []
            else:
                for each in (queue or []) if name == b"EXEC" else [words]:
                    self._apply(each)
                queue = None if name == b"EXEC" else queue
            valid = at
        if queue is not None:
            del self.file[before:]

    def _apply(self, words):
        if words[0].upper() in {b"MULTI", b"SELECT", b"EXEC"}:
            return
        try:
            self.database.run(words)
        except Refusal:
            return  # as in a server: the reply goes nowhere
