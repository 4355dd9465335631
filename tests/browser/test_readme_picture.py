"""The picture at the top of the README shows the page as it is."""

import struct

import pytest

from tests.browser.pages import open_view
from tests.browser.readme_picture import FOLDER, HEIGHT, SCHEMES, TEXT, WIDTH, demo_partition, picture, text_of
from tests.served import Served

pytestmark = pytest.mark.browser


def test_the_readme_shows_a_picture_in_each_theme():
    readme = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    first_screen = readme[: readme.index("## ")]
    for scheme in SCHEMES:
        assert f"docs/pictures/board-{scheme}.png" in first_screen
        head = picture(scheme).read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:]) == (WIDTH, HEIGHT)


def test_the_page_still_shows_what_the_picture_shows(page):
    partition, benchmark = demo_partition()
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    with Served(partition) as served:
        open_view(page, served.url, benchmark)
        page.wait_for_selector("[data-state=live]")
        assert text_of(page) == TEXT.read_text(encoding="utf-8"), "run python -m tests.browser.readme_picture"
        page.goto("about:blank")
