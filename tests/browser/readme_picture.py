"""Make the picture of the page at the top of the README: ``python -m tests.browser.readme_picture``.

It shows the board of the replay of `rankwatch demo`. The text of the page at that moment is kept next to the pictures, so that a test can
compare it with the page of now.
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from monitor.engine.chunk_fold import Partition
from monitor.paper.demo.simulate import demo_stream
from schemas.records.chunks import Chunk
from tests.browser.pages import open_view
from tests.served import Served

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
TEXT = FOLDER / "board.txt"
SCHEMES = ("light", "dark")
WIDTH, HEIGHT = 1240, 728
_RECORDS = 2_000


def picture(scheme):
    """The file of the picture in a theme."""
    return FOLDER / f"board-{scheme}.png"


def demo_partition():
    """The state at the end of the demo, and the name of its benchmark."""
    stream, partition = demo_stream(null=False, seed=0), Partition()
    records = [stream.declaration, *stream.events]
    for k in range(0, len(records), _RECORDS):
        part, offsets, end = records[k : k + _RECORDS], [], partition.off
        for record in part:
            offsets.append(end)
            end += len(record) + 1
        partition.fold(Chunk(0, partition.off, end, offsets, part))
    return partition, stream.benchmark


def text_of(tab):
    """What the page shows, without spaces that depend on its width."""
    return "\n".join(line.strip() for line in tab.locator("main").inner_text().splitlines() if line.strip()) + "\n"


def take():
    """Take the pictures, and keep the text."""
    FOLDER.mkdir(exist_ok=True)
    partition, benchmark = demo_partition()
    with Served(partition) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in SCHEMES:
            tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            open_view(tab, served.url, benchmark)
            tab.wait_for_selector("[data-state=live]")
            tab.screenshot(path=picture(scheme))
            TEXT.write_text(text_of(tab), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    take()
