"""The targets of the settings."""

from typing import Final, get_args

from pydantic import SecretStr

from monitor.notify.targets import Kind, Target, make_target
from monitor.outbound import Allowed
from monitor.settings import Settings

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
