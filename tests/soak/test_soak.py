"""The soak, for 20 s; with RANKWATCH_SLOW=1 for two minutes."""

import os

from tests.soak.__main__ import judge, soak

MINUTES = 2 if os.environ.get("RANKWATCH_SLOW") == "1" else 1 / 3


def test_nothing_grows_that_may_not(tmp_path):
    assert list(judge(soak(tmp_path / "data", MINUTES))) == []
