"""A service whose broker does not answer when it starts."""

import socket

import pytest

from tests.commands import rankwatch


@pytest.mark.fault("kafka", "a broker that never answers, at the start", "exit 1 with its address")
def test_a_broker_that_never_answers_is_named_and_ends_the_start():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = f"127.0.0.1:{silent.getsockname()[1]}"
        flags = ("--broker", f"kafka://{broker}", "--redis-url", "redis://:s3cret@127.0.0.1:1")
        ended = rankwatch("run", *flags, code=1, RANKWATCH_START_SECONDS="1")
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("rankwatch: ")
    assert broker in last
    assert "s3cret" not in ended.stderr + ended.stdout
