"""Each target against a real server: what arrives, signed and verified by the example receiver, and mail over SMTP."""

import importlib.util
import json
import socketserver
import threading
from email import message_from_string
from pathlib import Path

import pytest

from monitor.notify.notification import Wording
from monitor.notify.targets import make_target
from monitor.outbound import Allowed, NotAcceptedError
from monitor.publish.webhook import SIGNATURE, signature

TRIAL = Wording(lambda: "https://rank.example.org", "https://docs.example.org").trial()
HERE = Allowed("127.0.0.1")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("webhook_receiver", ROOT / "examples/webhook_receiver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def receiver(example):
    taken = []
    server = example.make_server(("127.0.0.1", 0), "s3cret", taken.append)
    server.RequestHandlerClass.log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/inbox", taken
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_signed_notification_is_taken_once_however_often_it_is_sent(receiver):
    url, taken = receiver
    target = make_target("webhook", url, HERE, "s3cret")
    target.deliver(TRIAL)
    target.deliver(TRIAL)
    assert [(entry["id"], entry["title"]) for entry in taken] == [(TRIAL.id, TRIAL.title)]
    assert taken[0]["body"] == TRIAL.text


def test_a_post_with_another_secret_or_none_is_refused(receiver):
    url, taken = receiver
    for secret in ("other", None):
        with pytest.raises(NotAcceptedError, match="status 401"):
            make_target("webhook", url, HERE, secret).deliver(TRIAL)
    assert taken == []


def test_a_recorded_request_cannot_be_replayed(example):
    now = [1_000_000.0]
    verifier = example.Verifier("s3cret", lambda: now[0])
    header = signature("s3cret", b"{}", 1_000_000)
    assert verifier.fault(header, b"{ }") == "wrong signature"
    assert verifier.fault(header.replace("t=1000000", "t=1000001"), b"{}") == "wrong signature"
    assert verifier.fault(None, b"{}") == "no signature"
    assert verifier.fault("t=1,v1=\udcff", b"{}") == "wrong signature"
    assert verifier.fault(header, b"{}") is None
    for later in (0, 200, 300):
        now[0] = 1_000_000.0 + later
        assert verifier.fault(header, b"{}") == "seen before"
    now[0] += 1
    assert verifier.fault(header, b"{}") == "too old"
    assert SIGNATURE == "Rankwatch-Signature"


class _Mail(socketserver.StreamRequestHandler):
    """As much of a mail server as a client needs."""

    def handle(self):
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (text := self.rfile.readline()) != b".\r\n":
                    lines.append(text.decode())
                self.server.mails.append("".join(lines))
            self.server.commands.append(line)
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def mail_server():
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mail)
    server.mails, server.commands = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_mail_goes_to_every_recipient_with_the_id_of_the_notification(mail_server):
    port = mail_server.server_address[1]
    url = f"smtp://127.0.0.1:{port}/?from=rank@example.org&to=a@example.org&to=b@example.org"
    make_target("email", url, HERE).deliver(TRIAL)
    (text,) = mail_server.mails
    mail = message_from_string(text)
    assert (mail["To"], mail["Message-ID"]) == ("a@example.org, b@example.org", f"<{TRIAL.id}@rankwatch>")
    assert TRIAL.lines[1][:40] in mail.get_payload(decode=True).decode()


def test_a_password_is_never_sent_without_tls(mail_server):
    port = mail_server.server_address[1]
    url = f"smtp://me:hidden@127.0.0.1:{port}/?from=a@example.org&to=b@example.org"
    with pytest.raises(NotAcceptedError, match="mail server: SMTPNotSupportedError") as refused:
        make_target("email", url, HERE).deliver(TRIAL)
    assert "hidden" not in str(refused.value)
    assert not any(line.startswith((b"AUTH", b"DATA")) for line in mail_server.commands)


def test_mail_to_a_private_address_is_refused_unless_it_is_allowed(mail_server):
    url = f"smtp://127.0.0.1:{mail_server.server_address[1]}/?from=a@example.org&to=b@example.org"
    with pytest.raises(NotAcceptedError, match="RANKWATCH_PRIVATE_ADDRESSES"):
        make_target("email", url, Allowed()).deliver(TRIAL)
    assert mail_server.commands == []


@pytest.mark.parametrize("url", ["smtps://hidden", "https://hidden/?from=a&to=b", "smtp://h:x/?from=a&to=hidden"])
def test_an_incomplete_mail_address_is_refused_without_repeating_it(url):
    with pytest.raises(ValueError, match=r"^notify_email_url is not") as refused:
        make_target("email", url, HERE)
    assert "hidden" not in str(refused.value)


def test_the_bodies_have_the_form_that_each_service_takes():
    def body(kind):
        return json.loads(make_target(kind, "https://h/", HERE).preview(TRIAL))

    assert body("slack")["blocks"][0]["text"]["type"] == "mrkdwn"
    assert body("discord")["content"].startswith("**Trial: 1 new decision")
    assert body("teams")["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    (alert,) = body("alertmanager")
    assert alert["labels"]["notification"] == TRIAL.id
    assert alert["startsAt"] < alert["endsAt"]
