"""How the files of the page are served; what they do is tested in a browser."""

import re
from pathlib import Path

import pytest

from monitor.serve.page_files import assets
from tests.served import Served


@pytest.fixture(scope="module")
def served():
    """The HTTP surface without a token."""
    with Served() as served:
        yield served


def test_every_file_comes_with_its_type_a_strong_tag_and_a_policy(served):
    for path, asset in assets(0.9).items():
        answer = served.request("GET", path)
        assert answer.status == 200
        assert answer.text.encode() == asset.body
        assert answer.headers["content-type"] == asset.media_type
        assert answer.headers["etag"] == asset.etag
        assert not asset.etag.startswith("W/")
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
            in policy
        )
        assert "unsafe" not in policy
        assert served.request("HEAD", path).headers["etag"] == asset.etag


def test_what_is_known_is_not_sent_again(served):
    tag = served.request("GET", "/").headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        answer = served.request("GET", "/", If_None_Match=known)
        assert (answer.status, answer.text) == (304, "")
        assert answer.headers["etag"] == tag
    assert served.request("GET", "/", If_None_Match='"other"').status == 200


def test_the_shell_needs_no_token_and_the_data_does():
    with Served(token="s3cret") as served:
        for path in assets(0.9):
            assert served.request("GET", path).status == 200
        for path in ("/api/v1/benchmarks", "/api/v1/summaries", "/metrics", "/page/", "/page/nothing.js"):
            assert served.request("GET", path).status == 401


@pytest.mark.parametrize(
    "path", ["/page/../web.py", "/page/%2e%2e/web.py", "/page/..%2fweb.py", "/page/views/", "/index.html", "//"]
)
def test_nothing_else_is_served(served, path):
    assert served.request("GET", path).status == 404


def test_the_page_asks_nobody_else_and_names_only_files_that_exist():
    files = assets(0.9)
    for path, asset in files.items():
        text = asset.body.decode()
        urls = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert urls <= {"http://www.w3.org/2000/svg"}, path
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        for name in re.findall(r'(?:href|src)="(/page/[^"]+)"', text):
            assert name in files
        for name in re.findall(r'^import .* from "([^"]+)";$', text, re.MULTILINE):
            assert "/" + str((Path(path.lstrip("/")).parent / name).resolve().relative_to(Path.cwd())) in files


def test_the_page_marks_models_by_the_setting():
    for share, shown in ((0.9, "0.9"), (1.0, "1"), (0.755, "0.755")):
        with Served(low_coverage=share) as served:
            assert f'<html lang="en" data-low-coverage="{shown}">' in served.request("GET", "/").text
