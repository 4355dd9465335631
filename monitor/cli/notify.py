"""`rankwatch notify`: try the targets of notifications."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from pydantic import ValidationError

from monitor.cli.shared.errors import FAULT, USAGE, file_error, note, stop
from monitor.cli.shared.settings import read_settings
from monitor.notify.notification import Wording
from monitor.notify.targets import PUBLISHERS, targets
from monitor.outbound import NotAcceptedError
from schemas.results.changes import read_change

if TYPE_CHECKING:
    from monitor.notify.notification import Notification
    from monitor.notify.targets import Target


def notify(
    feed: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FEED]", help="file of verdict changes, such as verdicts.jsonl; without it, an example"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print what would be sent, and send nothing")] = False,
) -> None:
    """Send a trial notification to every target that is set, or print it.

    The targets are the settings notify_slack_url, notify_discord_url, notify_teams_url, notify_email_url, notify_webhook_url and
    notify_alertmanager_url. With a feed, --dry-run prints the notifications for its changes. Exits with 1 if a target does not accept the
    trial.

    Example: RANKWATCH_NOTIFY_SLACK_URL=https://hooks.slack.com/services/... rankwatch notify --dry-run
    """
    if feed is not None and not dry_run:
        stop("a feed is printed, never sent; add --dry-run", USAGE)
    settings = read_settings()
    wording = Wording(lambda: settings.public_url, settings.runbooks_url)
    try:
        receivers = targets(settings)
    except ValueError as error:
        stop(str(error), USAGE)
    notifications = [wording.trial()] if feed is None else _of_feed(feed, wording)
    if dry_run:
        _print(notifications, receivers)
        return
    if not receivers:
        names = ", ".join(f"RANKWATCH_{name.upper().replace('-', '_')}_URL" for name in PUBLISHERS)
        stop(f"no target is set; set one of {names}", USAGE)
    accepted = [_send(target, notifications[0]) for target in receivers]
    if not all(accepted):
        raise SystemExit(FAULT)


def _of_feed(feed: Path, wording: "Wording") -> "list[Notification]":
    changes = []
    try:
        with feed.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    changes.append(read_change(msgspec.json.decode(line)))
                except (ValidationError, msgspec.MsgspecError):
                    stop(f"{feed}:{number}: this is not a verdict change; give the feed of `rankwatch watch`")
    except OSError as error:
        stop(file_error(error))
    changes.sort(key=lambda change: change.benchmark)
    return [
        notification
        for _, some in groupby(changes, lambda change: change.benchmark)
        for notification in wording.of_benchmark("feed", list(some), None)
    ]


def _print(notifications: "list[Notification]", found: "list[Target]") -> None:
    for notification in notifications:
        print(f"{notification.alert} ({notification.severity}): {notification.title}")
        for line in notification.text.splitlines():
            print(f"    {line}")
    for target in found if notifications else ():
        print(f"\n{target.name} would get:\n{target.preview(notifications[0])}")
    if not notifications:
        note("the feed has no change that somebody is notified of")
    if not found:
        note("no target is set; these are the texts alone")


def _send(target: "Target", notification: "Notification") -> bool:
    try:
        target.deliver(notification)
    except NotAcceptedError as error:
        print(f"{target.name}: not accepted: {error}")
        return False
    print(f"{target.name}: accepted")
    return True
