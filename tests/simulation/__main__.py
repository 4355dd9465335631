"""Run simulations until the time is over or one fails; print the rate, and a failure with the fewest actions that reproduce it."""

import argparse
import gc
import sys
import time
from collections import Counter

from tests.simulation.shrink import shrink
from tests.simulation.world import World

NIGHT = 8 * 3600


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="processor time to run for; default: 60")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each run has the next one")
    parser.add_argument(
        "--replay", metavar="SEED[:K,K,...]", help="run one seed, with some of its actions only, and print its trace"
    )
    parser.add_argument("--whole", action="store_true", help="print a failure without looking for the fewest actions")
    parser.add_argument(
        "--judged", action="store_true", help="look on after a crash of the program, which judges nothing"
    )
    options = parser.parse_args()
    return (
        replay(options.replay)
        if options.replay
        else explore(options.seed, options.seconds, whole=options.whole, judged=options.judged)
    )


def explore(seed, seconds, *, whole=False, judged=False):
    """Run seed after seed until one fails, or, if `judged`, until one is judged wrong; return the exit code."""
    gc.collect()
    gc.freeze()
    start, first, injected, checks, refused, virtual, crashed = time.process_time(), seed, Counter(), 0, 0, 0.0, 0
    while time.process_time() - start < seconds:
        result = World(seed).run()
        injected.update(result.injected)
        checks, refused, virtual = checks + result.checks, refused + result.refused, virtual + result.seconds
        if result.failure is not None and (result.judged or not judged):
            break
        crashed += result.failure is not None
        seed += 1
    gc.unfreeze()
    took = time.process_time() - start
    total = sum(injected.values())
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in injected.most_common())
    print(f"{seed - first:,} runs from seed {first}, {virtual / 3600:,.1f} simulated hours, {checks:,} states compared")
    print(
        f"{total:,} faults in {took:.1f} s, {total / took:.1f} a second, {total / took * NIGHT:,.0f} in 8 hours: {kinds}"
    )
    print(f"{refused:,} workers ended with an error and were started again, {crashed:,} runs crashed")
    if result.failure is None:
        return 0
    print(f"\nseed {seed} {'fails' if result.judged else 'crashes'}: {result.failure}\n", flush=True)
    if not whole:
        report(seed, result)
    return 1


def report(seed, result):
    """Print the fewest actions that fail."""
    every = list(enumerate(result.actions))
    kept = shrink(every, lambda some: World(seed, [action for _, action in some]).run().failure is not None)
    print(f"{len(kept)} of {len(every)} actions are enough:")
    for _, action in kept:
        print(f"  {action}")
    print(f"\npython -m tests.simulation --replay {seed}:{','.join(str(place) for place, _ in kept)}")


def replay(text):
    """Run some actions of a seed, and print what happens; return the exit code."""
    seed, _, places = text.partition(":")
    world = World(int(seed))
    if ":" in text:
        world.actions = [world.actions[int(place)] for place in places.split(",") if place]
    result = world.run()
    print("\n".join(world.trace))
    print(f"\n{result.failure or 'no failure'}")
    return int(result.failure is not None)


if __name__ == "__main__":
    sys.exit(main())
