"""What messages show of a URL."""

import pytest

from schemas.records.text import mask_url


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
