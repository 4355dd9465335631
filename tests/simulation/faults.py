"""The actions that are injected into a run, and how a seed chooses them."""

from typing import Any, NamedTuple

from tests.simulation.clock import PROCESS


class Action(NamedTuple):
    """One fault at one time; what it does without its target (a worker that is not up) is nothing."""

    time: float
    kind: str
    arguments: dict[str, Any]

    def __str__(self):
        words = ", ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.arguments.items()
        )
        return f"{self.time:8.3f}  {self.kind}({words})"


def choose(rng, seconds, workers, partitions, readers=0):
    """The actions of a run, in the order of their times."""
    kinds, weights = zip(*((kind, weight) for kind, (weight, _) in KINDS.items()), strict=True)
    actions = []
    for _ in range(rng.randrange(10, 100)):
        kind = rng.choices(kinds, weights)[0]
        arguments = KINDS[kind][1](rng, workers, partitions)
        actions.append(Action(round(rng.uniform(0, seconds), 3), kind, arguments))
    actions.extend(  # last, so that seeds keep their other actions
        Action(round(rng.uniform(0, seconds), 3), "kill_publishing", _seconds(0.05, 8)(rng))
        for _ in range(rng.randrange(3))
    )
    for _ in range(rng.randrange(6) if readers else 0):
        kind = rng.choice(("reader_killed", "reader_stopped", "reader_frozen"))
        actions.append(Action(round(rng.uniform(0, seconds), 3), kind, _seconds(0.05, 10)(rng)))
    return sorted(actions, key=lambda action: action.time)


def flushes(rng, seconds, workers):
    """Losses of everything that the server has, the key that signs origins included; one worker or all of them restart, a reader starts."""
    return [
        Action(
            round(rng.uniform(0, seconds), 3),
            "store_flushed",
            {
                "workers": rng.choice(([], [rng.randrange(workers)], list(range(workers)))),
                "reader": rng.random() < 0.5,
                "seconds": round(rng.uniform(0, 3), 3),
            },
        )
        for _ in range(rng.randrange(3))
    ]


def inject(world, action):
    """Do it; return whether it did something."""
    return globals()[f"_{action.kind}"](world, **action.arguments)


def _seconds(low, high):
    return lambda rng, *_: {"seconds": round(rng.uniform(low, high), 3)}


def _worker(low=0.0, high=0.0, **more):
    def arguments(rng, workers, _):
        made = {"worker": rng.randrange(workers)}
        return made | ({"seconds": round(rng.uniform(low, high), 3)} if high else {})

    return arguments


def _share(rng, *_):
    return {"share": round(rng.choice((0.0, 0.5, 0.95, 1.0, rng.random())), 3)}


def _length(rng, *_):
    return {"length": rng.choice((0, rng.randrange(1, 60), rng.randrange(1, 2_000), rng.randrange(1, 20_000)))} | {
        "seconds": round(rng.uniform(0.05, 3), 3)
    }


def _tear(rng, *_):
    length = rng.choice((rng.randrange(1, 300), rng.randrange(1, 3_000)))
    return {
        "length": length,
        "seconds": round(rng.uniform(0.05, 1), 3),
        "again": round(rng.choice((0.3, 1, 3)) * rng.random(), 3),
    }


def _flip(rng, *_):
    return {"place": rng.random(), "bit": rng.randrange(1 << 16), "seconds": round(rng.uniform(0.05, 1), 3)}


def _count(rng, *_):
    return {"count": rng.randrange(1, 4)}


def _resent(rng, _, partitions):
    return {"partition": rng.randrange(partitions), "count": rng.randrange(1, 8)}


def _kept(rng, _, partitions):
    return {"partition": rng.randrange(partitions), "count": rng.choice((0, 1, 5, 20))}


def _slowness(rng, *_):
    return {"factor": rng.choice((5, 20, 100)), "seconds": round(rng.uniform(1, 5), 3)}


def _kill(world, worker, seconds):
    return world.slots[worker].kill(seconds)


def _stop(world, worker, seconds):
    return world.slots[worker].stop(seconds)


def _freeze(world, worker, seconds):
    return world.slots[worker].freeze(seconds)


_pause = _freeze


def _reader_killed(world, seconds):
    return world.readers[0].kill(seconds)


def _reader_stopped(world, seconds):
    return world.readers[0].stop(seconds)


def _reader_frozen(world, seconds):
    return world.readers[0].freeze(seconds)


def _kill_publishing(world, seconds):
    """Kill the worker that publishes verdict changes next, before they arrive: at random this moment is too short to be met."""

    def kill():
        next(slot for slot in world.slots if slot.process is PROCESS.get()).kill(seconds)

    world.broker.kills.append((world.verdicts, kill))
    return True


def _clock(world, worker, seconds):
    world.slots[worker].process.skew += seconds
    return True


def _rebalance(world):
    world.group.begin()
    return True


def _cut(world, worker):
    return world.network.cut(process=world.slots[worker].process) > 0


def _cut_all(world):
    return world.network.cut() > 0


def _cut_request(world, share):
    world.network.cut_next("request", share)
    return True


def _cut_reply(world, share):
    world.network.cut_next("reply", share)
    return True


def _slow_network(world, factor, seconds):
    world.network.slow = factor
    world.later(seconds, setattr, world.network, "slow", 1.0)
    return True


def _store_killed(world, length, seconds):
    """Kill the server, lose the end of its file, start it again."""
    if not world.server.up:
        return False
    world.server.kill()
    world.network.cut(server=world.server)
    if length and not world.judge.replaced:  # an empty state may begin with the new topic
        world.server.cut(length)
    world.later(seconds, world.start_store)
    return True


def _store_torn(world, length, seconds, again):
    """Kill the server, lose the end of its file, start it, and soon kill and start it again: then commands of a torn transaction run."""
    done = _store_killed(world, length, 0.05)
    world.later(0.05 + again, _store_killed, world, 0, seconds)
    return done


def _store_flipped(world, place, bit, seconds):
    """Kill the server, change a bit of its file, start it again."""
    if world.judge.replaced or not world.server.up or not world.server.flip(place, bit):
        return False
    return _store_killed(world, 0, seconds)


def _store_wiped(world, seconds):
    """Kill the server and lose all of its file."""
    return _store_killed(world, 1 << 40, seconds)


def _store_flushed(world, workers, reader, seconds):
    """Empty the server under running workers. A partition without state could begin with another key, which nothing would show."""
    partitions = range(len(world.broker.topics[world.topic]))
    if world.judge.replaced or not world.server.up or not all(map(world.judge.stored_off, partitions)):
        return False
    world.server.execute([b"FLUSHALL"])
    world.judge.forget()
    for worker in workers:
        world.slots[worker].kill(seconds)
    if reader and world.readers:
        world.readers[0].kill(seconds)
    return True


def _store_stalled(world, seconds):
    if world.server.stalled or not world.server.up:
        return False
    world.server.stall()
    world.later(seconds, world.server.resume)
    return True


def _scripts_flushed(world):
    world.server._scripts.clear()
    return True


def _broker_down(world, seconds):
    if not world.broker.ready.is_set():
        return False
    world.broker.ready.clear()
    world.later(seconds, world.broker.ready.set)
    return True


def _slow_broker(world, factor, seconds):
    world.broker.slow = factor
    world.later(seconds, setattr, world.broker, "slow", 1.0)
    return True


def _ack_lost(world, count):
    world.broker.lost_acks += count
    return True


def _resend(world, partition, count):
    """A producer sends its last messages again."""
    log = world.broker.topics[world.topic][partition]
    own = [record for record in log.records if not record.headers][-count:]
    for record in own:
        world.broker.append(world.topic, partition, record.value)
    return bool(own)


def _retention(world, partition, count):
    """Records that are folded and stored are deleted, but for the last ones; a store that loses its writes may then need them."""
    log, off = world.broker.topics[world.topic][partition], world.judge.stored_off(partition)
    folded = [record.offset for record in log.records if record.offset < off]
    if len(folded) <= count or world.judge.replaced:
        return False
    log.expire(folded[-count] if count else off)
    return True


def _recreated(world):
    """The topic is deleted and created again, and gets the records in another order; a partition without state could begin with them."""
    logs = world.broker.topics[world.topic]
    partitions = range(len(logs))
    if world.judge.replaced or not world.server.up or not all(map(world.judge.stored_off, partitions)):
        return False
    world.judge.replaced = True
    world.broker.create(world.topic, len(partitions))
    for partition, log in enumerate(logs):
        for record in reversed(log.records):
            world.broker.append(world.topic, partition, record.value)
    return True


KINDS = {
    "kill": (3, _worker(0.05, 8)),
    "stop": (1, _worker(0.05, 4)),
    "freeze": (2, _worker(2, 15)),
    "pause": (3, _worker(0.01, 1)),
    "clock": (1, _worker(-3600, 3600)),
    "rebalance": (1, lambda *_: {}),
    "cut": (2, _worker()),
    "cut_all": (1, lambda *_: {}),
    "cut_request": (4, _share),
    "cut_reply": (4, _share),
    "slow_network": (1, _slowness),
    "store_killed": (3, _length),
    "store_torn": (3, _tear),
    "store_flipped": (1, _flip),
    "store_wiped": (1, _seconds(0.05, 3)),
    "store_stalled": (1, _seconds(0.05, 6)),
    "scripts_flushed": (1, lambda *_: {}),
    "broker_down": (1, _seconds(0.05, 6)),
    "slow_broker": (1, _slowness),
    "ack_lost": (2, _count),
    "resend": (2, _resent),
    "retention": (0.5, _kept),
    "recreated": (0.2, lambda *_: {}),
}
"""How often each kind is chosen, and its arguments."""
