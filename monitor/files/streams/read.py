"""Read whole files, with a thread that reads ahead."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import TypeVar

from monitor.files.streams.blocks import Block, BlockReader
from monitor.files.streams.encodings import OpenStream, open_stream
from monitor.files.streams.paths import origin
from monitor.files.streams.segments import decode
from schemas.records.decode import Checker
from schemas.records.packed import Segment

T = TypeVar("T")


def read_files(
    files: Sequence[Path], progress: Callable[[int, int], None] | None = None, opener: OpenStream = open_stream
) -> Iterator[Segment]:
    """Read files from beginning to end, one after the other."""
    total = sum(file.stat().st_size for file in files)
    checker = Checker()
    current, benchmark = None, None
    for path, block, note, done in prefetch(_blocks(files, opener)):
        if isinstance(block, str):
            yield Segment([], [], [], 0, 0, origin(path), incomplete=block)
            continue
        if path is not current:
            current, benchmark = path, None
        segments, benchmark, converted = decode(block, path, checker, benchmark)
        for clause in sorted(converted):
            note(clause)
        yield from segments
        if progress is not None:
            progress(done, total)


def _blocks(
    files: Sequence[Path], opener: OpenStream
) -> Iterator[tuple[Path, Block | str, Callable[[str], None], int]]:
    """Yield the blocks of each file, and after them what is missing of it, if it breaks off."""
    done = 0
    for path in files:
        with BlockReader(path, opener=opener) as reader:
            while (block := reader.next(final=True)) is not None:
                yield path, block, reader.stream.note, done + reader.stream.position
            if len(files) > 1 and reader.stream.position == 0 and not path.stat().st_size:
                reader.stream.note("the file is empty")
            done += reader.stream.position
            if reader.incomplete is not None:
                yield path, reader.incomplete, reader.stream.note, done


def prefetch(items: Iterator[T], depth: int = 8) -> Iterator[T]:
    """Run an iterator in a thread, at most `depth` items ahead of the caller."""
    # The depth covers a fold: while the caller folds, the thread gets the interpreter a few times at best.
    queue: Queue[tuple[T] | BaseException | None] = Queue(depth)
    stopped = Event()

    def work() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                queue.put((item,))
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            end = error
        queue.put(end)

    thread = Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while (got := queue.get()) is not None:
            if isinstance(got, BaseException):
                raise got
            yield got[0]
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait at a full queue
            try:
                queue.get(timeout=0.01)
            except Empty:
                continue
        thread.join()
