"""What latches on recorded streams is what it was when the digests were recorded."""

import json

import pytest

from tests.golden.verdict_digests import RECORDED, data_folder, digest, streams

RECORDS = json.loads(RECORDED.read_text())
FOLDER = data_folder()


@pytest.mark.parametrize("name", [name for name in RECORDS if FOLDER or not name.startswith("MMLU-Pro")])
def test_nothing_latches_differently(name):
    assert digest(dict(streams(FOLDER))[name]()) == RECORDS[name]
