"""The webhook against a real web server that fails, redirects and hangs up."""

import asyncio
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from monitor.outbound import Allowed
from monitor.publish.verdict_topic import cloud_event
from monitor.publish.webhook import Webhook
from monitor.retries import RetryPolicy
from tests.store_model import verdict


@pytest.fixture
def server():
    """A server that answers with the statuses in `answers` first, and with 200 then; 0 hangs up."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.posts.append((self.path, dict(self.headers), body))
            status = self.server.answers.pop(0) if self.server.answers else 200
            if status:
                self.send_response(status)
                if self.server.retry_after:
                    self.send_header("Retry-After", self.server.retry_after)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_):
            pass

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.posts, receiver.answers, receiver.retry_after = [], [], None
    receiver.url = f"http://127.0.0.1:{receiver.server_port}/hook?key=hidden"
    thread = threading.Thread(target=receiver.serve_forever)
    thread.start()
    yield receiver
    receiver.shutdown()
    receiver.server_close()
    thread.join()


def webhook(url, *, form="json", secret=None, longest_wait=0.003):
    failures = []

    made = Webhook(
        url,
        form,
        secret,
        "evals/3",
        lambda: failures.append(1),
        Allowed("127.0.0.1"),
        retries=RetryPolicy(timeout=None, first_wait=0.001, longest_wait=longest_wait),
    )
    return made, failures


CHANGES = [verdict("10-1"), verdict("10-2", procedure="anytime_family"), verdict("20-1")]


async def test_changes_are_posted_in_order_with_ids_that_are_unique_over_partitions(server):
    made, failures = webhook(server.url)
    await made.publish(CHANGES)
    ((path, headers, body),) = server.posts
    assert path == "/hook?key=hidden"
    assert headers["Content-Type"] == "application/json"
    assert "Rankwatch-Signature" not in headers
    sent = json.loads(body)["changes"]
    assert [c["id"] for c in sent] == ["evals/3/10-1", "evals/3/10-2", "evals/3/20-1"]
    assert sent[0] == json.loads(CHANGES[0].as_json()) | {"id": "evals/3/10-1"}
    assert failures == []


async def test_a_rejected_batch_is_posted_again_until_it_is_accepted(server, capsys):
    server.answers += [500, 302, 404, 0, 429]
    made, failures = webhook(server.url)
    await made.publish(CHANGES)
    assert [path for path, *_ in server.posts] == ["/hook?key=hidden"] * 6  # a redirect is not followed
    assert len({body for *_, body in server.posts}) == 1
    assert len(failures) == 5
    logged = "".join(capsys.readouterr())
    assert "status 500" in logged
    assert "hidden" not in logged


@pytest.mark.parametrize(("asked", "least"), [("3600", 0.1), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)])
async def test_the_wait_is_the_one_that_the_answer_names_up_to_the_longest(server, asked, least):
    server.answers, server.retry_after = [429], asked
    made, failures = webhook(server.url, longest_wait=0.1)
    started = time.monotonic()
    async with asyncio.timeout(60):
        await made.publish(CHANGES)
    assert time.monotonic() - started >= least
    assert (len(server.posts), failures) == (2, [1])


async def test_an_address_that_does_not_answer_is_tried_until_it_does(server):
    port = server.server_port
    made, failures = webhook(f"http://127.0.0.1:{port}/late")
    failed = asyncio.Event()
    made._count_failure = lambda: failures.append(1) or (failed.set() if len(failures) == 3 else None)
    server.shutdown()
    server.socket.close()

    publishing = asyncio.create_task(made.publish(CHANGES))
    await failed.wait()
    assert not publishing.done()
    publishing.cancel()


async def test_changes_that_are_offered_again_are_posted_once(server):
    made, _ = webhook(server.url)

    await made.publish(CHANGES[:2])
    await made.publish(CHANGES)
    posted = [c["id"] for *_, body in server.posts for c in json.loads(body)["changes"]]
    assert posted == ["evals/3/10-1", "evals/3/10-2", "evals/3/20-1"]


async def test_what_is_posted_is_signed(server):
    made, _ = webhook(server.url, secret="s3cret")
    await made.publish(CHANGES)
    ((_, headers, body),) = server.posts
    at, digest = (part.split("=")[1] for part in headers["Rankwatch-Signature"].split(","))
    assert hmac.new(b"s3cret", f"{at}.".encode() + body, hashlib.sha256).hexdigest() == digest


@pytest.mark.parametrize(("form", "posts"), [("cloudevents", 3), ("cloudevents-batch", 1)])
async def test_cloud_events_have_the_attributes_of_the_topic(server, form, posts):
    made, failures = webhook(server.url, form=form, secret="s")
    server.answers = [503]
    await made.publish(CHANGES)
    assert failures == [1]
    accepted = server.posts[1:]
    assert len(accepted) == posts
    kind = "application/cloudevents+json" if form == "cloudevents" else "application/cloudevents-batch+json"
    assert {headers["Content-Type"] for _, headers, _ in accepted} == {kind}
    assert all("Rankwatch-Signature" in headers for _, headers, _ in accepted)
    bodies = [json.loads(body) for *_, body in accepted]
    events = bodies if form == "cloudevents" else bodies[0]
    for event, change in zip(events, CHANGES, strict=True):
        topic = {
            name.removeprefix("ce_"): value.decode()
            for name, value in cloud_event(change, "evals", 3)
            if name[:3] == "ce_"
        }
        assert topic.items() <= event.items()
        assert event["subject"] == change.benchmark
        assert (event["datacontenttype"], event["data"]) == ("application/json", json.loads(change.as_json()))


async def test_cloud_events_in_binary_mode_are_the_change_and_headers(server):
    made, _ = webhook(server.url, form="cloudevents-binary", secret="s")
    change = CHANGES[0].replace(benchmark='Größe "50 %" 模型')
    server.answers = [503]
    await made.publish([change, CHANGES[1]])
    (_, tried, first), (_, accepted, again), (_, last, _) = server.posts
    assert first == again == change.as_json()
    attributes = {name: value for name, value in accepted.items() if name.startswith("ce-")}
    assert attributes == {name: value for name, value in tried.items() if name.startswith("ce-")}
    topic = {
        name.replace("_", "-"): value.decode() for name, value in cloud_event(change, "evals", 3) if name[:3] == "ce_"
    }
    # The example of the specification: Euro sign, percent, quotation mark and space are encoded, and nothing else.
    assert attributes == {**topic, "ce-subject": "Gr%C3%B6%C3%9Fe%20%2250%20%25%22%20%E6%A8%A1%E5%9E%8B"}
    assert accepted["Content-Type"] == "application/json"
    assert "Rankwatch-Signature" in accepted
    assert last["ce-id"] == "evals/3/10-2"


def test_an_address_that_is_none_is_refused_without_repeating_it():
    for url in ("hidden", "file:///hidden", "http://"):
        with pytest.raises(ValueError, match="webhook_url") as refused:
            webhook(url)
        assert "hidden" not in str(refused.value)
