"""Notify a service manager over the socket in NOTIFY_SOCKET (sd_notify(3)); do nothing without one."""

import asyncio
import os
import socket
from typing import Final, NoReturn

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"

_DAY: Final = 86_400


def notify(state: str) -> None:
    """Send a state to the service manager, without waiting for one that does not listen."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return  # the monitor works without a service manager


def watchdog_seconds() -> float | None:
    """Return the service manager's watchdog timeout for this process, or None without one."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    for_this_process = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if for_this_process and microseconds.isdecimal() and int(microseconds) else None


async def keep_alive() -> NoReturn:
    """Send two watchdog signals per timeout while the event loop runs; never ends."""
    seconds = watchdog_seconds()
    while True:
        notify(WATCHDOG)
        await asyncio.sleep(seconds / 2 if seconds else _DAY)
