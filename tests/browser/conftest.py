"""A real browser, and real monitors for it to look at."""

import random
import shutil

import pytest

from tests.browser.pages import EVIL, HOSTILE, event_count, post
from tests.commands import Watch, events, until, write


@pytest.fixture(scope="module")
def chromium():
    """Chromium, for one file of tests: while it lives its event loop runs in this thread, and no other test can run one of its own."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on PATH: the tests of the web page need one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A fresh tab, which may not have met an error by the end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.set_default_timeout(15_000)
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if _is_fault(message) else None)
    yield tab
    context.close()
    assert errors == []


def _is_fault(message):
    # A request that fails is what some tests are about, and the browser says so by itself.
    return message.type in {"error", "warning"} and "Failed to load resource" not in message.text


@pytest.fixture(scope="session")
def monitor(tmp_path_factory):
    """A monitor that has read an ordinary benchmark, one of hostile names, 200 models, and repeats with an ended run."""
    base = tmp_path_factory.mktemp("page")
    rng = random.Random(7)
    ordinary = events(rng, {"alpha": 0.95, "bravo": 0.5, "charlie": 0.48, "delta": 0.1}, 150, benchmark="ordinary")
    ordinary = [
        {**e, "cluster": f"category {int(e['item_id'][5:]) % 7}"}
        for e in ordinary
        if e["model"] != "charlie" or int(e["item_id"][5:]) % 3
    ]
    hostile = events(rng, {name: 0.1 + 0.08 * k for k, name in enumerate(HOSTILE)}, 120, benchmark=EVIL)
    # Only the ends of the large one are decided: latches are made event by event, and its page is what is tested.
    large = [
        {"benchmark": "large", "item_id": f"item {item}", "model": f"model-{k:03}", "score": int(27 * k >= 200 * item)}
        for item in range(1, 27)
        for k in range(200)
    ]
    repeated = [
        {
            "benchmark": "repeated",
            "item_id": f"item {item}",
            "model": name,
            "score": int(rng.random() < 0.5),
            "repeat": k,
        }
        for item in range(30)
        for name, most in (("alpha", 1), ("bravo-0325" if item % 2 else "bravo", 3), ("charlie", 2))
        for k in range(1 + item % most)
    ]
    ends = [{"ended": "repeated", "model": model} for model in ("alpha", "bravo")]
    with Watch(base / "data", write(base / "none.jsonl", [])) as watch:
        post(watch.url, ordinary, 150)
        post(watch.url, hostile, 120)
        post(watch.url, large, 26, family={"policy": "capacity", "size": 199 * 100})
        post(watch.url, [*repeated, *ends], 40, repeats="all", aliases={"bravo-0325": "bravo"})
        moving = [{**event, "benchmark": "moving"} for event in ordinary]
        for k in range(0, len(moving), 90):
            post(watch.url, moving[k : k + 90], 150)
        until(lambda: event_count(watch.url) == len([*ordinary, *hostile, *large, *repeated, *moving]), "all events")
        yield watch.url
