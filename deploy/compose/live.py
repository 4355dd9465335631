"""Send a benchmark that is still being evaluated, item by item: demo data for docker-compose.yml and `make stack`.

The scores are drawn at random with a fixed seed, so a restart sends the same ones, which count once. Standard library only.
"""

import argparse
import json
import random
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

BENCHMARK = "live"
ITEMS = 400
SKILLS = {"oak": 0.82, "elm": 0.62, "fir": 0.6, "yew": 0.35}
DECLARATION = {"declare": BENCHMARK, "items": ITEMS, "order": "trusted"}
"""The items come in random order, so verdicts need not wait for the last one."""


def scores() -> Iterator[list[dict[str, object]]]:
    """Return the events of each item in turn."""
    rng = random.Random(24)
    for item in range(ITEMS):
        difficulty = rng.gauss(0, 0.1)
        yield [
            {
                "benchmark": BENCHMARK,
                "item_id": f"q{item}",
                "model": model,
                "score": int(rng.random() < skill + difficulty),
            }
            for model, skill in SKILLS.items()
        ]


def post(server: str, token: str, records: list[dict[str, object]]) -> None:
    """Post records until they are durable; wait while the server is away or busy."""
    request = urllib.request.Request(  # noqa: S310 - the operator names the server
        f"{server}/api/v1/events",
        data="".join(json.dumps(record) + "\n" for record in records).encode(),
        headers={"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {token}"},
    )
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30):  # noqa: S310
                return
        except urllib.error.HTTPError as error:
            if error.code not in {429, 502, 503, 504}:
                sys.exit(f"{server} refused the events: HTTP {error.code} {error.read(500).decode(errors='replace')}")
        except OSError as error:
            print(f"{server} does not answer ({error}); trying again", flush=True)
        time.sleep(1)


def main() -> None:
    """Send one item after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", required=True, metavar="URL", help="address of a rankwatch server")
    parser.add_argument("--token-file", required=True, type=Path, metavar="FILE", help="file with the token")
    parser.add_argument("--items-per-second", type=float, default=2, metavar="N", help="speed (default: 2)")
    chosen = parser.parse_args()
    token = chosen.token_file.read_text().strip()
    post(chosen.to, token, [DECLARATION])
    print(f"Sending {ITEMS} items of the benchmark {BENCHMARK}, {chosen.items_per_second:g} a second", flush=True)
    for records in scores():
        post(chosen.to, token, records)
        time.sleep(1 / chosen.items_per_second)
    print(f"Sent all {ITEMS} items", flush=True)


if __name__ == "__main__":
    main()
