import errno
import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.files.dead_letter_file import DeadLetterFile
from schemas.records.chunks import DeadLetter


def letter(offset, index=0, raw="raw"):
    return DeadLetter(offset, index, "a.jsonl", 3, "score", "1.2", "too large", "bench", raw)


def stored(path):
    return [DeadLetter(**json.loads(line)) for line in path.read_bytes().splitlines()]


def test_letters_are_kept_for_their_owner_alone(tmp_path):
    path = tmp_path / "dead.jsonl"
    with DeadLetterFile(path) as file:
        assert file.last is None
        assert file.write([]) == 0
        assert file.write([letter(10), letter(10, 1, raw="\ud800\n\x00")]) == 2
        assert file.last == (10, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stored(path) == [letter(10), letter(10, 1, raw="\ud800\n\x00")]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=12).map(sorted),
    st.integers(0, 5),
    st.integers(0, 4_000),
)
def test_a_replay_after_a_crash_doubles_and_loses_nothing(tmp_path_factory, places, again, torn):
    path = tmp_path_factory.mktemp("dead") / "dead.jsonl"
    letters = [letter(*place, raw=str(k)) for k, place in enumerate(places)]
    with DeadLetterFile(path) as file:
        file.write(letters)
    os.truncate(path, min(torn, path.stat().st_size))  # killed while it wrote
    whole = path.read_bytes().count(b"\n")
    with DeadLetterFile(path) as file:
        assert stored(path) == letters[:whole]
        assert file.last == (places[whole - 1] if whole else None)
        # The state has moved no further than the letters on the disk, so it replays from some record at or before them.
        first = min(again, places[whole][0]) if whole < len(places) else again
        file.write([one for one in letters if one.offset >= first])
    assert stored(path) == letters


def test_the_last_letter_is_found_at_the_end_of_a_long_file(tmp_path):
    path = tmp_path / "dead.jsonl"
    letters = [letter(7, 1, raw="x" * 2_000) for _ in range(100)]
    with DeadLetterFile(path) as file:
        file.write([letter(5), *letters])
    with DeadLetterFile(path) as file:
        assert file.write([letter(5), *letters, letter(8)]) == 1
    assert stored(path) == [letter(5), *letters, letter(8)]


@pytest.mark.parametrize("content", [b"hello\n", b'{"log": "x"}\n', b"[]\n"])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "dead.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a file of dead letters; move it away"):
        DeadLetterFile(path)


def test_what_could_not_be_synced_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "dead.jsonl"
    with DeadLetterFile(path) as file:
        file.write([letter(1)])
        with monkeypatch.context() as patch:

            def refuse(_):
                raise OSError(errno.ENOSPC, "no space")

            patch.setattr(os, "fsync", refuse)
            with pytest.raises(OSError, match="no space"):
                file.write([letter(2)])
        assert stored(path) == [letter(1)]
        assert file.write([letter(2)]) == 1
    assert stored(path) == [letter(1), letter(2)]
