"""Where the views of the page are, and the names that try to break out of them."""

import json
import urllib.request
from urllib.parse import quote

from tests.commands import get

EVIL = "<b>bench</b> a/b?x=1#y %2F"
HOSTILE = [
    '<img src=x onerror="window.pwned=1">',
    '"><script>window.pwned=1</script>',
    "javascript:window.pwned=1",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "..",
    "a/b?c=d#e&f%2F",
    "long-" + "x" * 180,
    "${constructor}{{7*7}}",
]
VIEWS = ("", "pairs", "matrix", "items", "categories", "time", "changes", "data")


def event_count(url):
    """Events that the monitor has taken."""
    return sum(b["events"] for b in json.loads(get(f"{url}/api/v1/summaries")[1]))


def post(url, records, items, **spec):
    """Post events of a benchmark that is declared to have so many items."""
    declared = {"declare": records[0]["benchmark"], "items": items, "order": {"policy": "completion"}, **spec}
    post_lines(url, [declared, *records])


def post_lines(url, lines):
    """Post records."""
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def address(url, benchmark=None, *parts, choices=""):
    """The address of a view, and of what is chosen in it."""
    if benchmark is None:
        return f"{url}/#/"
    return f"{url}/#/b/" + "/".join(quote(part, safe="") for part in (benchmark, *parts) if part) + choices


def open_view(page, url, *where, choices=""):
    """Go to a view and wait until it is there."""
    page.goto(address(url, *where, choices=choices))
    page.wait_for_selector("main:not([aria-busy]) h1")


def overflows(page):
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
