"""The generated parts of the documentation match the code."""

from graphlib import CycleError

import pytest

from docs.generate import import_graph
from docs.generate.__main__ import PARTS
from docs.generate.pages import DOCS, with_part


@pytest.mark.parametrize(("page", "name", "render"), PARTS, ids=[name for _, name, _ in PARTS])
def test_a_page_matches_the_code(page, name, render):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == with_part(text, name, render()), "run `python -m docs.generate`"


def test_a_room_is_one_level_above_the_rooms_that_it_imports():
    imports = {
        "monitor.a": {"monitor.b.inner", "stats"},
        "monitor.b": set(),
        "monitor.b.inner": {"monitor.b", "stats"},
        "stats": set(),
    }
    assert import_graph.room_levels(imports) == {"stats": 0, "monitor.b": 1, "monitor.a": 2}


def test_a_cycle_between_rooms_is_an_error():
    with pytest.raises(CycleError):
        import_graph.room_levels({"monitor.a": {"monitor.b"}, "monitor.b": {"monitor.a"}})


def test_a_page_without_markers_is_an_error():
    with pytest.raises(ValueError, match="no markers"):
        with_part("text", "commands", "body")
