"""How names are written into the state: whatever writes them fast writes what `json` would."""

import json

from hypothesis import given
from hypothesis import strategies as st

from monitor.store.layout import pack_lines
from schemas.records.scores import RowKey

plain = st.characters(max_codepoint=0x7F)
names = st.text(plain) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.builds(RowKey, names, st.integers(0, 2**31), st.none() | names)))
def test_names_are_written_as_ascii_json_whatever_is_in_them(rows):
    expected = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    assert pack_lines(rows) == expected.encode("ascii")
