"""What a service manager is told over the socket that it names in NOTIFY_SOCKET (sd_notify(3)); nothing where it names none."""

import asyncio
import os
import socket
from typing import Final, NoReturn

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"

_DAY: Final = 86_400


def notify(state: str) -> None:
    """Send a state to the service manager; one that does not listen is not waited for."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return  # it watches us, not we it


def watchdog_seconds() -> float | None:
    """Return how long it waits for a sign of life before it kills this process, or None if it does not."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    meant = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if meant and microseconds.isdecimal() and int(microseconds) else None


async def keep_alive() -> NoReturn:
    """Give a sign of life twice as often as is asked for, for as long as the event loop turns; never ends."""
    seconds = watchdog_seconds()
    while True:
        notify(WATCHDOG)
        await asyncio.sleep(seconds / 2 if seconds else _DAY)
