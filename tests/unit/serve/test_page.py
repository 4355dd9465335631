"""How the files of the page are served; what they do is tested in a browser."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from monitor.serve.board import Board
from monitor.serve.page import assets
from monitor.serve.web import make_web


def client(token=None):
    web = make_web(Board(list), CollectorRegistry(), lambda: None, token=token, loopback=True)
    return TestClient(web, base_url="http://127.0.0.1")


def test_every_file_comes_with_its_type_a_strong_tag_and_a_policy():
    served = client()
    for path, asset in assets().items():
        answer = served.get(path)
        assert answer.status_code == 200
        assert answer.content == asset.body
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
        assert served.head(path).headers["etag"] == asset.etag


def test_what_is_known_is_not_sent_again():
    served = client()
    tag = served.get("/").headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        answer = served.get("/", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
    assert served.get("/", headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_shell_needs_no_token_and_the_data_does():
    served = client(token="s3cret")
    for path in assets():
        assert served.get(path).status_code == 200
    for path in ("/api/v1/benchmarks", "/api/v1/summaries", "/metrics", "/page/", "/page/nothing.js"):
        assert served.get(path).status_code == 401


@pytest.mark.parametrize(
    "path", ["/page/../web.py", "/page/%2e%2e/web.py", "/page/..%2fweb.py", "/page/views/", "/index.html", "//"]
)
def test_nothing_else_is_served(path):
    assert client().get(path).status_code == 404


def test_the_page_asks_nobody_else_and_names_only_files_that_exist():
    found = assets()
    for path, asset in found.items():
        text = asset.body.decode()
        urls = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert urls <= {"http://www.w3.org/2000/svg"}, path
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        for name in re.findall(r'(?:href|src)="(/page/[^"]+)"', text):
            assert name in found
        for name in re.findall(r'^import .* from "([^"]+)";$', text, re.MULTILINE):
            assert "/" + str((Path(path.lstrip("/")).parent / name).resolve().relative_to(Path.cwd())) in found
