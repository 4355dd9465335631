"""When notifications are sent: together, few in a minute, each until it is accepted, and nothing of an import."""

import asyncio

import pytest

from monitor.notify.notification import Wording
from monitor.notify.notifier import NotificationPublisher, Notifier
from monitor.outbound import NotAcceptedError
from monitor.retries import RetryPolicy
from tests.store_model import verdict
from tests.unit.notify.test_notification import change


class Target:
    name = "notify-slack"

    def __init__(self, refusals=0):
        self.sent, self.refusals = [], refusals

    def preview(self, notification):
        return notification.title

    def deliver(self, notification):
        if self.refusals:
            self.refusals -= 1
            raise NotAcceptedError("answered with status 500")
        self.sent.append(notification)


async def unknown(benchmark, pairs):
    return None


def notifier(target, *, window=3600.0, failures=None, **more):
    quick = RetryPolicy(timeout=None, first_wait=0.001, longest_wait=0.002)
    count = (failures if failures is not None else []).append
    wording = Wording(lambda: None, "docs")
    return Notifier(target, wording, unknown, lambda: count(1), wait=0.01, window=window, retries=quick, **more)


async def test_partitions_that_change_together_are_worded_together():
    target = Target()
    made = notifier(target)
    sends = [made.send(f"log/{p}", [change(1, "a", "b", 0.1, benchmark=f"b{p}")]) for p in range(12)]
    await asyncio.gather(*sends)
    (digest,) = target.sent
    assert digest.title.startswith("12 notifications on 12 benchmarks")


async def test_no_more_than_the_limit_are_sent_in_the_window():
    target = Target()
    made = notifier(target, per_minute=3)
    for number in range(3):
        await made.send("log/0", [change(number, "a", "b", 0.1)])
    waiting = asyncio.create_task(made.send("log/0", [change(9, "a", "b", 0.1)]))
    await asyncio.sleep(0.1)  # ten times the wait
    assert len(target.sent) == 3
    assert not waiting.done()
    waiting.cancel()
    await made.close()
    made.change(wait=0.0, per_minute=4)
    await made.send("log/0", [change(10, "a", "b", 0.1)])
    assert len(target.sent) == 4


async def test_the_next_ones_come_after_the_window():
    target = Target()
    made = notifier(target, per_minute=1, window=0.05)
    for number in range(3):
        await made.send("log/0", [change(number, "a", "b", 0.1)])
    assert len(target.sent) == 3


async def test_a_refused_notification_is_sent_until_it_is_accepted():
    target, failures = Target(refusals=3), []
    await notifier(target, failures=failures).send("log/0", [change(1, "a", "b", 0.1)])
    assert len(target.sent) == 1
    assert len(failures) == 3


async def test_a_partition_that_moves_takes_what_waits_with_it():
    target = Target()
    made = notifier(target)
    moved = asyncio.create_task(made.send("log/0", [change(1, "a", "b", 0.1)]))
    await asyncio.sleep(0)
    moved.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moved
    await made.send("log/1", [change(2, "c", "d", 0.1)])
    (sent,) = target.sent
    assert "c beats d" in sent.title


async def test_what_was_imported_is_counted_and_not_sent():
    target, omitted = Target(), []

    async def imported(offset):
        return offset < 10

    publisher = NotificationPublisher(notifier(target), "log/0", imported, omitted.append)
    await publisher.publish([change(5, "a", "b", 0.1), verdict("6-0")])
    assert (target.sent, omitted) == ([], [2])
    await publisher.publish([change(5, "a", "b", 0.1), change(10, "c", "d", 0.1)])
    assert ["c beats d" in each.title for each in target.sent] == [True]
