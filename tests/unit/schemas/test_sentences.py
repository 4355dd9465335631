"""Sentences of verdict changes, and what messages show of a URL."""

import pytest

from schemas.records.text import mask_url
from schemas.results.changes import Evidence
from schemas.results.sentences import assumption, decided


@pytest.mark.parametrize(
    ("missing", "words"), [(1, "even if the 1 missing item went"), (1200, "all 1,200 missing items")]
)
def test_a_count_agrees_with_its_noun(missing, words):
    evidence = Evidence.model_construct(n=10, b=9, c=1, gap=0.8, missing=missing)
    assert words in decided("ash", "birch", "demo", "anytime", "completion", evidence, assumption("completion"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:1/path", "http://host:1/path"),
        ("redis://:s3cret@host", "redis://***@host"),
        ("https://user:p/s3cret@host/x", "https://***@host/x"),
        ("https://host/x?token=s3cret", "https://host/x?***"),
        ("https://user:s3cret?@host", "https://***@host"),
        ("user:s3cret@host", "***@host"),
        ("http://[::1?s3cret", "http://[::1?***"),
        ("http://host\x1b[31m#s3cret", "http://host\\x1b[31m#***"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url, shown):
    assert mask_url(url) == shown
