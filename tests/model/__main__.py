"""Check the model of the commit protocol, and that it fails where a rule of the protocol is taken away: `python -m tests.model`."""

import re
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.maven import UnavailableError, cache, fetch

HERE = Path(__file__).parent
VERSION = re.search(r"<version>([\d.]+)</version>\s*</dependency>", (HERE / "pom.xml").read_text("utf-8")).group(1)
INVARIANTS = ("Sound", "Once", "Kept", "Real", "Honest")
SIZES = {"Workers": "{w1, w2}", "None": "None", "N": 4, "Faults": 2, "MaxChunk": 2, "Latching": "{3}"}
RULES = ("Places", "Digests", "Ahead", "Guard", "MustExist", "Recognise", "Announce", "MarkLast")


@dataclass(frozen=True)
class Variant:
    """A protocol, and what is expected of it: nothing fails, or the named property does."""

    name: str
    without: tuple[str, ...] = ()
    fails: str | None = None
    torn: bool = True
    live: bool = False
    sizes: dict[str, int] = field(default_factory=dict)


VARIANTS = (
    Variant("the protocol, on a server that cuts inside a transaction", sizes={"Faults": 3}),
    Variant("the protocol, on a server that cuts whole transactions", torn=False),
    Variant("the protocol, every record folded and every change published", live=True, sizes={"Faults": 1}),
    Variant("explicit places without digests, one record a commit", ("Digests", "Ahead"), sizes={"MaxChunk": 1}),
    Variant(
        "APPEND without digests, one record a commit", ("Places", "Digests", "Ahead"), "Sound", sizes={"MaxChunk": 1}
    ),
    Variant("APPEND without digests", ("Places", "Digests", "Ahead"), "Sound"),
    Variant("no digests", ("Digests",), "Sound"),
    Variant("a load accepts a benchmark that is ahead of its partition", ("Ahead",), "Sound"),
    Variant("no compare-and-set", ("Guard",), "Sound"),
    Variant("a missing offset counts as the expected one", ("MustExist",), "Sound"),
    Variant("a refused write counts as landed without a look at who wrote", ("Recognise",), "Honest"),
    Variant("a stored latch needs no entry in the outbox", ("Announce",), "Kept"),
    Variant("a change is marked before it is published", ("MarkLast",), "Kept"),
)


def configuration(variant):
    """Return what TLC reads."""
    constants = SIZES | variant.sizes | {"TornServer": str(variant.torn).upper()}
    constants |= {rule: str(rule not in variant.without).upper() for rule in RULES}
    lines = [f"CONSTANT {name} = {value}" for name, value in constants.items()]
    # Workers are alike; TLC cannot use that where it checks what happens in the end.
    lines += (
        ["SPECIFICATION Fair", "PROPERTY Finished"] if variant.live else ["SPECIFICATION Spec", "SYMMETRY Symmetry"]
    )
    return "\n".join([*lines, f"INVARIANTS {' '.join(INVARIANTS)}", "CHECK_DEADLOCK FALSE", ""])


def check(variant, jars):
    """Run TLC over a variant; return the property that failed (None: none did), the distinct states, and its output."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "Commit.tla", folder)
        Path(folder, "Commit.cfg").write_text(configuration(variant), "utf-8")
        java = ["java", "-XX:+UseSerialGC", "-Xmx2g", "-cp", f"{jars}/*"]
        command = [*java, "tlc2.TLC", "-workers", "1", "-nowarning", "Commit.tla"]
        output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    states = re.findall(r"([\d,]+) distinct states found", output)
    if "No error has been found" in output:
        failed = None
    elif found := re.search(r"Invariant (\w+) is violated", output):
        failed = found.group(1)
    else:
        failed = "Finished" if "Temporal properties were violated" in output else "error"
    return failed, states[-1] if states else "0", output


def processor_time():
    """Return the seconds that the ended processes of this one took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    """Check every variant, and print its states and the processor time it took; return the exit code."""
    jars = cache(f"tlc-{VERSION}")
    try:
        fetch(HERE / "pom.xml", jars, "TLC")
    except UnavailableError as error:
        print(f"model: skipped: {error}")
        return 0
    wrong = 0
    for variant in VARIANTS:
        begun = processor_time()
        failed, states, output = check(variant, jars)
        outcome = "holds" if failed is None else f"{failed} fails"
        right = failed == variant.fails
        seconds = processor_time() - begun
        print(
            f"{'ok   ' if right else 'WRONG'} {variant.name}: {outcome}, {states} states, {seconds:.0f} s", flush=True
        )
        if not right:
            wrong += 1
            print(output)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
