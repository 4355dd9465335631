"""Where notifications go: chat services, e-mail, Alertmanager, or any web address that takes signed JSON."""

import json
import re
import smtplib
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import SecretStr

from monitor.notify.notification import Notification
from monitor.outbound import Allowed, NotAcceptedError, Smtp, check_url, post
from monitor.publish.webhook import SIGNATURE, signature
from monitor.settings import Settings

Kind = Literal["alertmanager", "slack", "discord", "teams", "email", "webhook"]

ANSWER_SECONDS: Final = 10.0
FIRING_SECONDS: Final = 900
"""How long Alertmanager shows a notification as firing: it is an event, and nothing resolves it."""

ID_HEADER: Final = "Rankwatch-Id"
_SLACK_LENGTH: Final = 3_000
_DISCORD_LENGTH: Final = 1_900
_SUBJECT_LENGTH: Final = 200
_MARKUP: Final = re.compile(r"([\\`*_~|\[\]()<>#@])")


class Target(Protocol):
    """Takes notifications.

    Attributes
    ----------
    name : str
        Of its relay and its metrics.
    """

    name: str

    def preview(self, notification: Notification) -> str:
        """Return what would be sent, without the address."""

    def deliver(self, notification: Notification) -> None:
        """Send a notification; raise `NotAcceptedError` if it was not accepted."""


class WebTarget:
    """Posts notifications as JSON."""

    def __init__(
        self, kind: Kind, url: str, body: Callable[[Notification], Any], allowed: Allowed, secret: str | None = None
    ) -> None:
        check_url(url, f"notify_{kind}_url")
        self.name = f"notify-{kind}"
        self._url, self._body, self._allowed, self._secret = url, body, allowed, secret

    def preview(self, notification: Notification) -> str:
        """Return the JSON."""
        return json.dumps(self._body(notification), indent=2, ensure_ascii=False)

    def deliver(self, notification: Notification) -> None:
        """Post it."""
        body = json.dumps(self._body(notification)).encode()
        headers = {"Content-Type": "application/json", ID_HEADER: notification.id}
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body, int(time.time()))
        post(self._url, body, headers, self._allowed, ANSWER_SECONDS)


class _Mailbox(NamedTuple):
    host: str
    port: int
    tls: bool
    user: str | None
    password: str | None
    sender: str
    recipients: str


class EmailTarget:
    """Sends notifications through a mail server: over TLS with ``smtps://``; with ``smtp://`` after STARTTLS, which a login needs."""

    name = "notify-email"

    def __init__(self, url: str, allowed: Allowed) -> None:
        self._to, self._allowed = _mailbox(url), allowed

    def message(self, notification: Notification) -> EmailMessage:
        """Return the message; its id is that of the notification, so that a second copy can be recognised."""
        message = EmailMessage()
        message["Subject"] = f"[rankwatch] {notification.title}"[:_SUBJECT_LENGTH]
        message["From"], message["To"] = self._to.sender, self._to.recipients
        message["Message-ID"] = f"<{notification.id}@rankwatch>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(f"{notification.title}\n\n{notification.text}\n")
        return message

    def preview(self, notification: Notification) -> str:
        """Return the message."""
        return self.message(notification).as_string()

    def deliver(self, notification: Notification) -> None:
        """Send it."""
        to = self._to
        try:
            with Smtp(to.host, to.port, self._allowed, ANSWER_SECONDS, tls=to.tls) as server:
                server.ehlo()
                if not to.tls and (to.user is not None or server.has_extn("starttls")):
                    server.starttls(
                        context=ssl.create_default_context()
                    )  # a password never goes over an open connection
                if to.user is not None:
                    server.login(to.user, to.password or "")
                server.send_message(self.message(notification))
        except (OSError, smtplib.SMTPException) as error:
            raise NotAcceptedError(f"the mail server: {type(error).__name__}") from None


def make_target(kind: Kind, url: str, allowed: Allowed, secret: str | None = None) -> Target:
    """Make the target of a setting; raise ValueError, without the address, if that is not valid."""
    if kind == "email":
        return EmailTarget(url, allowed)
    if kind == "alertmanager":
        url = url.rstrip("/")
        url = url if url.endswith("/api/v2/alerts") else f"{url}/api/v2/alerts"
    return WebTarget(kind, url, _BODIES[kind], allowed, secret if kind == "webhook" else None)


def _alertmanager(notification: Notification) -> list[dict[str, Any]]:
    now = time.time()
    start, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in (now, now + FIRING_SECONDS))
    labels = {"alertname": notification.alert, "severity": notification.severity, "notification": notification.id}
    if notification.benchmark is not None:
        labels["benchmark"] = notification.benchmark
    annotations = {
        "summary": notification.title,
        "description": "\n".join(notification.lines),
        "runbook_url": notification.runbook,
    }
    alert: dict[str, Any] = {"labels": labels, "annotations": annotations, "startsAt": start, "endsAt": end}
    if notification.link is not None:
        annotations["board"] = alert["generatorURL"] = notification.link
    return [alert]


def _slack(notification: Notification) -> dict[str, Any]:
    # Only these three characters have a meaning that text from outside must not get (https://docs.slack.dev).
    title, text = (
        part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for part in (notification.title, notification.text)
    )
    whole = f"*{title}*\n{text}"[:_SLACK_LENGTH]
    return {"text": title, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": whole, "verbatim": True}}]}


def _discord(notification: Notification) -> dict[str, Any]:
    lines = "\n".join(map(_escaped, notification.lines))
    content = f"**{_escaped(notification.title)}**\n{lines}"[:_DISCORD_LENGTH]
    for address in (notification.link, notification.runbook):
        if address is not None and len(content) + len(address) < _DISCORD_LENGTH:
            content += f"\n<{address}>"
    return {"content": content, "allowed_mentions": {"parse": []}}


def _teams(notification: Notification) -> dict[str, Any]:
    actions = [("What to do", notification.runbook)]
    if notification.link is not None:
        actions.insert(0, ("Board", notification.link))
    blocks = [{"type": "TextBlock", "text": _escaped(notification.title), "weight": "Bolder", "wrap": True}]
    blocks += [{"type": "TextBlock", "text": _escaped(line), "wrap": True} for line in notification.lines]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": [{"type": "Action.OpenUrl", "title": title, "url": url} for title, url in actions],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _webhook(notification: Notification) -> dict[str, Any]:
    return {**notification._asdict(), "body": notification.text}


_BODIES: Final[dict[Kind, Callable[[Notification], Any]]] = {
    "alertmanager": _alertmanager,
    "slack": _slack,
    "discord": _discord,
    "teams": _teams,
    "webhook": _webhook,
}


def _escaped(text: str) -> str:
    r"""Escape Markdown.

    Examples
    --------
    >>> _escaped("@everyone [x](y)")
    '\\@everyone \\[x\\]\\(y\\)'
    """
    return _MARKUP.sub(r"\\\1", text)


def _mailbox(url: str) -> _Mailbox:
    form = "use smtps://user:password@host/?from=a@example.org&to=b@example.org, or smtp:// for STARTTLS"
    try:
        parts, query = urlsplit(url), parse_qs(urlsplit(url).query)
        port, ((sender,), recipients) = parts.port, (query["from"], query["to"])
    except (ValueError, KeyError):
        raise ValueError(f"notify_email_url is not complete; {form}") from None
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or any(c in "\r\n" for c in unquote(url)):
        raise ValueError(f"notify_email_url is not the address of a mail server; {form}")
    tls = parts.scheme == "smtps"
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    return _Mailbox(parts.hostname, port or (465 if tls else 587), tls, user, password, sender, ", ".join(recipients))


PUBLISHERS: Final = tuple(f"notify-{kind}" for kind in get_args(Kind))  # the names of the publishers of notifications

ALERTMANAGER: Final = "notify-alertmanager"  # the publisher that gets no states: Prometheus has rules for them


def targets(settings: Settings) -> list[Target]:
    """Return the targets that are set."""
    allowed = Allowed(settings.private_addresses)
    secret = settings.webhook_secret.get_secret_value() if settings.webhook_secret else None
    receivers = []
    for kind in get_args(Kind):
        url: SecretStr | None = getattr(settings, f"notify_{kind}_url")
        if url is not None:
            receivers.append(make_target(kind, url.get_secret_value(), allowed, secret))
    return receivers
