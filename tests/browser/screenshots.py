"""Take pictures of page and terminal, to look at: ``python -m tests.browser.screenshots FOLDER [MODELS...]``.

The page: boards of 10, 29, 200 and 1,000 models (or the numbers given), held, battles and empty, an unknown benchmark, and each view of the
first, at 375, 1280 and 1920 pixels, light and dark; the first board in print, and after the monitor has stopped. The terminal: the
report of each of these boards at 80, 120 and 200 columns, the live screen of the demo, an empty file and an error. With the folder
RANKWATCH_DATA the terminal shows the 29 models of MMLU-Pro too. Each picture shows a page that has caught up. Pages that are wider than
their window, and the time of a picture, are printed; `commit` in the folder names the version. It takes about 8 minutes.
"""

import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from monitor.render.terminal.live import LiveView
from monitor.render.terminal.plain import LiveStatus
from monitor.view.build import report_views
from monitor.view.partition_view import board_views
from monitor.view.ranking.standings import tie_bands
from schemas.results.report import Report
from tests.browser.pages import VIEWS, address, event_count, open_view, overflows, post_lines
from tests.browser.readme_picture import demo_partition
from tests.commands import PATIENCE, Watch, events, until, write
from tests.unit.engine.test_battles import stream

WIDTHS = (375, 1280, 1920)
COLUMNS = (80, 120, 200)
ITEMS = 200
TALL = 9_000
"""Pixels of a page above which its picture shows the window alone."""


def boards(sizes):
    """The declaration and the records of a benchmark for each number of models, of battles, and of one without a declared order."""
    rng = random.Random(5)
    for size in sizes:
        items = ITEMS if size < 1_000 else 26
        skills = {f"model-{k:04}": 0.9 - 0.8 * k / size for k in range(size)}
        records = events(rng, skills, items, benchmark=f"{size} models")
        named = [{**event, "cluster": f"topic {int(event['item_id'][5:]) % 7}"} for event in records]
        pairs = size * (size - 1) // 2
        family = {"policy": "capacity", "size": pairs}
        yield {"declare": f"{size} models", "items": items, "order": {"policy": "completion"}, "family": family}, named
    battles = [{**battle, "benchmark": "battles"} for battle in stream(1, 900, models=5, prompts=2_000_000)]
    yield {"declare": "battles", "order": {"policy": "trusted"}}, battles
    held = events(rng, {"alpha": 0.9, "bravo": 0.5, "charlie": 0.4}, 80, benchmark="held")
    yield {"declare": "held", "items": 80, "order": {"policy": "none"}}, held


def terminal(browser, folder, name, file):
    """Take pictures of the report of a file, in colour."""
    others = {variable: value for variable, value in os.environ.items() if not variable.startswith("RANKWATCH_")}
    for columns in COLUMNS:
        done = subprocess.run(
            [sys.executable, "-m", "monitor", "report", file.name],
            cwd=file.parent,
            env={**others, "COLUMNS": str(columns), "FORCE_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        console = Console(record=True, width=columns, file=io.StringIO())
        console.print(Text.from_ansi(done.stdout))
        tab = browser.new_page(viewport={"width": 9 * columns + 60, "height": 400})
        tab.set_content(console.export_html())
        tab.screenshot(path=folder / f"terminal-{name}-{columns}.png", full_page=True)
        tab.close()


def live(browser, folder):
    """Take pictures of the live screen of the demo, 24 lines high."""
    (view,) = report_views(board_views([demo_partition()[0]]), pairs="adjacent", assert_complete=False)
    screen = LiveView(Console(file=io.StringIO(), force_terminal=True))
    ties = {view.report.benchmark: tie_bands(view.table, 0.9)}
    screen.update(Report(benchmarks=[view.report]), LiveStatus(events=view.report.events, caught_up=True), ties=ties)
    for columns in COLUMNS:
        console = Console(record=True, width=columns, height=24, force_terminal=True, file=io.StringIO())
        console.print(screen)
        tab = browser.new_page(viewport={"width": 9 * columns + 60, "height": 400})
        tab.set_content(console.export_html())
        tab.screenshot(path=folder / f"terminal-live-{columns}.png", full_page=True)
        tab.close()


def take(folder, sizes):
    """Take every picture, and print those that are wider than their window."""
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True, check=True)
    (folder / "commit").write_text(commit.stdout, encoding="utf-8")
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def pictures(name, url, *where, choices="", state="live"):
            for scheme in ("light", "dark"):
                for width in WIDTHS:
                    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                    tab.set_default_timeout(1_000 * PATIENCE)
                    open_view(tab, url, *where, choices=choices)
                    tab.wait_for_selector(f"[data-state={state}]")
                    if overflows(tab):
                        print(f"{name} {width} {scheme}: wider than the window by {overflows(tab)} pixels")
                    tall = tab.evaluate("document.documentElement.scrollHeight") > TALL or tab.locator("tr.gap").count()
                    tab.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=not tall)
                    tab.close()

        with Watch(Path(base) / "data", write(Path(base) / "none.jsonl", [])) as watch:
            pictures("empty", watch.url)
            pictures("unknown", watch.url, "no such benchmark")
            none = Path(base) / "none.jsonl"
            terminal(browser, folder, "empty", none)
            none.write_text('{"benchmark": "b", "item_id": "1", "model": "m", "score": 1.2}\n', encoding="utf-8")
            terminal(browser, folder, "error", none)
            total = 0
            for declaration, records in boards(sizes):
                post_lines(watch.url, [declaration, *records])
                total += len(records)
                until(lambda total=total: event_count(watch.url) == total, "all events", 10 * PATIENCE)
                name = declaration["declare"].replace(" ", "-")
                start = monotonic()
                pictures(name, watch.url, declaration["declare"])
                print(f"{name}: {(monotonic() - start) / 6:.1f} s a picture")
                file = write(Path(base) / f"{name}.jsonl", [declaration, *records])
                if declaration["order"]["policy"] == "none":  # a report takes a complete file for the whole benchmark
                    file.write_bytes(file.read_bytes() + b"{")
                terminal(browser, folder, name, file)
            if data := os.environ.get("RANKWATCH_DATA"):
                terminal(browser, folder, "mmlu-pro", Path(data) / "mmlu_pro" / "events.jsonl.gz")
            live(browser, folder)
            first = f"{sizes[0]} models"
            pictures("model", watch.url, first, "model", "model-0003")
            pictures("pair", watch.url, first, "pair", "model-0002", "model-0003")
            for view in filter(None, VIEWS):
                pictures(view, watch.url, first, view)
            pictures("two", watch.url, first, "items", choices="?a=model-0002&b=model-0003")
            pictures("home", watch.url)
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.goto(address(watch.url, first))
            tab.wait_for_selector("[data-state=live]")
            tab.pdf(path=folder / "print.pdf")
            watch.stop()
            tab.wait_for_selector("[data-state=lost]")
            tab.screenshot(path=folder / "error-1280-light.png")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]] or [10, 29, 200, 1_000])
