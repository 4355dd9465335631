"""Run docker-compose.yml without Docker until Ctrl-C: `make stack`."""

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.stack.compose import ROOT
from tests.stack.stack import Stack, StackError

POLL_SECONDS = 0.5


def addresses(stack):
    """Return what a person needs to use the stack, a line each."""
    kafka = stack.port(stack.services["kafka"], 1, 29092)
    yield "page and API", stack.url("balancer", 8642)
    for name, port in (("prometheus", 9090), ("alertmanager", 9093)):
        yield name, stack.url(name, port)
    yield "kafka", f"kafka://127.0.0.1:{kafka}/rankwatch.events"
    yield "token", stack.volume("secrets") / "writer" / "rankwatch-token"
    yield "logs", stack.folder / "logs"
    for name, reason in stack.omitted.items():
        yield f"no {name}", reason
    for port, other in stack.moved.items():
        yield "note", f"another program uses port {port}, so this stack uses {other}"


def follow(stack):
    """Print the alerts that the receiver gets, and services that end, until Ctrl-C."""
    (receiver,) = stack.of("alert-receiver")
    with receiver.log.open(errors="replace") as log:
        log.seek(0, 2)
        while True:
            for line in [*stack.tend(), *log.read().splitlines()]:
                print(line, flush=True)
            time.sleep(POLL_SECONDS)


def main():
    """Start the stack, print its addresses, and stop it at Ctrl-C."""
    parser = argparse.ArgumentParser(prog="make stack", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".stack", help="for its data and logs (default: .stack)")
    parser.add_argument("--no-demo", action="store_true", help="start without demo data")
    parser.add_argument("--free-ports", action="store_true", help="take free ports, next to another stack")
    chosen = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    without = ("feed", "live") if chosen.no_demo else ()
    print("Starting Kafka, Valkey, workers, readers, Prometheus and Alertmanager (20 s) ...", flush=True)
    try:
        with Stack(chosen.folder, without=without, free_ports=chosen.free_ports) as stack:
            for name, value in addresses(stack):
                print(f"{name:<14}{value}")
            print("Ctrl-C stops everything and keeps the data. Alerts that arrive at the receiver:", flush=True)
            follow(stack)
    except StackError as error:
        sys.exit(f"make stack: {error}")
    except KeyboardInterrupt:
        print("Stopped.")


if __name__ == "__main__":
    main()
