import contextlib
import errno
import os
import resource
import socket
from pathlib import Path

import pytest

from monitor.files.streams.paths import PathError, find_files, show


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    return path.resolve()


def test_a_folder_is_searched_for_results_in_order(tmp_path):
    wanted = [write(tmp_path / name) for name in ("a.jsonl", "b/c.ndjson", "b/d.jsonl.gz", "z.ndjson.gz")]
    for other in (".hidden.jsonl", ".git/a.jsonl", "notes.txt", "a.json", "b/x.csv"):
        write(tmp_path / other)
    assert find_files([tmp_path]) == wanted


def test_a_named_file_may_be_called_anything(tmp_path):
    file = write(tmp_path / "results.txt")
    assert find_files([file]) == [file]


def test_a_file_reached_in_several_ways_is_listed_once(tmp_path):
    file = write(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to(file)
    os.link(file, tmp_path / "c.jsonl")
    assert find_files([tmp_path / "b.jsonl", tmp_path, file]) == [file]


def test_links_in_a_folder_do_not_lead_in_circles(tmp_path):
    file = write(tmp_path / "in/a.jsonl")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    (tmp_path / "in/dangling.jsonl").symlink_to(tmp_path / "nowhere")
    assert find_files([tmp_path]) == [file]


def test_a_link_is_not_followed_out_of_the_folder_unless_asked(tmp_path):
    inside, outside = write(tmp_path / "in/a.jsonl"), write(tmp_path / "out/b.jsonl")
    (tmp_path / "in/c.jsonl").symlink_to(outside)
    (tmp_path / "in/d").symlink_to(tmp_path / "out")
    (tmp_path / "in/up").symlink_to(tmp_path)
    notes = []
    assert find_files([tmp_path / "in"], note=notes.append) == [inside]
    assert sorted(notes) == [
        f"{tmp_path}/in/{name} is skipped: it links to {target}, outside the folder; add --follow-symlinks to read it"
        for name, target in (("c.jsonl", outside), ("d", outside.parent), ("up", tmp_path))
    ]
    assert find_files([tmp_path / "in"], follow=True, note=notes.append) == [inside, outside]
    # A link that is named is followed, and what it leads to is the folder.
    assert find_files([tmp_path / "in/d"]) == [outside]
    assert len(notes) == 3


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(PathError, match=r"nothing\.jsonl does not exist; check the path"):
        find_files([tmp_path / "nothing.jsonl"])


def test_a_folder_without_results_says_what_was_looked_for(tmp_path):
    write(tmp_path / "a.csv")
    with pytest.raises(PathError, match=r"has no files of results; use names that end with \.jsonl"):
        find_files([tmp_path])


def test_a_special_file_is_refused_and_passed_over_in_a_folder(tmp_path):
    fifo = tmp_path / "pipe.jsonl"
    os.mkfifo(fifo)
    with pytest.raises(PathError, match="neither a file nor a folder"):
        find_files([fifo])
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(str(tmp_path / "s.jsonl"))
        with pytest.raises(PathError, match="neither a file nor a folder"):
            find_files([tmp_path / "s.jsonl"])
    file = write(tmp_path / "a.jsonl")
    assert find_files([tmp_path]) == [file]


@pytest.mark.parametrize("folder", [False, True])
def test_a_name_that_is_not_utf8_is_refused(tmp_path, folder):
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    try:
        file.write_text("{}\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(PathError, match=r"\\xff\.jsonl: the path is not valid UTF-8; rename"):
        find_files([tmp_path if folder else file])
    assert find_files([tmp_path], strict=False) == []


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    file = write(tmp_path / "a.jsonl")
    monkeypatch.setattr(os, "access", lambda *_: False)  # a superuser may read everything
    with pytest.raises(PathError, match="is not readable for this user; change its permissions"):
        find_files([file])


def test_looking_again_passes_over_what_is_gone(tmp_path):
    file = write(tmp_path / "a.jsonl")
    assert find_files([tmp_path / "gone", file], strict=False) == [file]


def test_a_path_is_shown_on_one_line():
    assert show("a\nb\x1b[31m.jsonl") == "a\\nb\\x1b[31m.jsonl"


@pytest.mark.parametrize("strict", [True, False])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path, strict):
    file = write(tmp_path / "below" / "a.jsonl")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        with contextlib.suppress(OSError):
            while True:
                stack.enter_context(Path(os.devnull).open())
        with pytest.raises(OSError, match="Too many open files"):
            find_files([tmp_path], strict=strict)
    assert find_files([tmp_path], strict=strict) == [file]


def test_a_folder_below_that_is_not_readable_is_named(tmp_path, monkeypatch):
    notes, file = [], write(tmp_path / "a.jsonl")
    closed = write(tmp_path / "closed" / "b.jsonl").parent

    def scandir(path, scan=os.scandir):  # root, who runs many tests, may list every folder
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert find_files([tmp_path], note=notes.append) == [file]
    assert notes == [f"{closed} is skipped: it is not readable for this user; change its permissions"]
