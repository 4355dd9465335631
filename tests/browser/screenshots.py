"""Take pictures of the page, to look at: ``python -m tests.browser.screenshots FOLDER [MODELS...]``.

Boards of 10, 29 and 200 models (or the numbers given; 1000 takes minutes to fold), held and empty, a model, a pair and the items, each at
375, 1280 and 1920 pixels, light and dark; and the board after the monitor has stopped.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.pages import address, event_count, open_view, overflows, post
from tests.commands import PATIENCE, Watch, events, until, write

WIDTHS = (375, 1280, 1920)
ITEMS = 200


def boards(sizes):
    """Events of a benchmark for each number of models, and of one without a declared order."""
    rng = random.Random(5)
    for size in sizes:
        items = ITEMS if size < 1_000 else 26
        skills = {f"model-{k:04}": 0.9 - 0.8 * k / size for k in range(size)}
        records = events(rng, skills, items, benchmark=f"{size} models")
        named = [{**event, "cluster": f"topic {int(event['item_id'][5:]) % 7}"} for event in records]
        pairs = size * (size - 1) // 2
        yield named, {"items": items, "family": {"policy": "capacity", "size": pairs}}
    held = events(rng, {"alpha": 0.9, "bravo": 0.5, "charlie": 0.4}, 80, benchmark="held")
    yield held, {"items": 80, "order": {"policy": "none"}}


def take(folder, sizes):
    """Take every picture, and print those that are wider than their window."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def pictures(name, url, *where):
            for scheme in ("light", "dark"):
                for width in WIDTHS:
                    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                    tab.set_default_timeout(1_000 * PATIENCE)
                    open_view(tab, url, *where)
                    if overflows(tab):
                        print(f"{name} {width} {scheme}: wider than the window by {overflows(tab)} pixels")
                    tab.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
                    tab.close()

        with Watch(Path(base) / "data", write(Path(base) / "none.jsonl", [])) as watch:
            pictures("empty", watch.url)
            total = 0
            for records, spec in boards(sizes):
                post(watch.url, records, spec.pop("items"), **spec)
                total += len(records)
                until(lambda total=total: event_count(watch.url) == total, "all events", 10 * PATIENCE)
                pictures(records[0]["benchmark"].replace(" ", "-"), watch.url, records[0]["benchmark"])
            first = f"{sizes[0]} models"
            pictures("model", watch.url, first, "model", "model-0003")
            pictures("pair", watch.url, first, "pair", "model-0002", "model-0003")
            pictures("items", watch.url, first, "items")
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.goto(address(watch.url, first))
            tab.wait_for_selector("[data-state=live]")
            watch.stop()
            tab.wait_for_selector("[data-state=lost]")
            tab.screenshot(path=folder / "error-1280-light.png")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]] or [10, 29, 200])
