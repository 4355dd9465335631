"""The commands that README and documentation show, and where the tests run each of them."""

import re

from tests.unit.test_documented_commands import GENERATED, PAGES, ROOT

BLOCK = re.compile(r"^ *```(?:console|sh|bash)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"(?:^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*|\| |while )rankwatch ((?:[^|\n\\]|\\\n)*)", re.MULTILINE)

FILES = {"report", "gate", "plan", "export", "order", "map", "next", "drift"}
"""Commands that end on their own, and need no server unless they name one."""

ELSEWHERE = {
    **dict.fromkeys(
        (
            "admit my-model --board results/ --scores my-model.jsonl --goal model:my-model,width=3 --next 50",
            "admit my-model --server http://127.0.0.1:8642 --benchmark my-bench --goal model:my-model,width=3 --next 50",
            "admit my-model --board results/ --scores my-model.jsonl --goal model:my-model,width=3",
            "verify my-model.admit.json",
        ),
        "tests/integration/test_admit_command.py: admits a model, whose scores grow between the calls",
    ),
    'drift change gpt-x --benchmark support-qa --reason "new prompt"': "tests/unit/serve/test_drift_routes.py: needs a sentinel with a run",
    "plan --goal best --model a=0.8 --model b=0.7 --model c=0.5 --rho 0.4 --items 400 --boards 50 --price 0.002": (
        "tests/unit/test_import_graph.py: compares its output with the page"
    ),
    "doctor --bundle support.zip --log rankwatch.log": "tests/unit/service/test_bundle.py: looks at the running process of the machine",
    "run --accept-gap --broker kafka://localhost:9092 --redis-url redis://localhost:6379": (
        "tests/fault/test_recover.py: needs a gap in the log"
    ),
    "run --broker kafka://localhost:9092 --redis-url redis://localhost:6379/1": "tests/fault/test_upgrade.py: runs the guide",
    "serve --broker kafka://localhost:9092 --redis-url redis://localhost:6379/1 --port 8644": "tests/fault/test_upgrade.py: runs the guide",
    "state compare redis://localhost:6379/0 --redis-url redis://localhost:6379/1 --keep-times": (
        "tests/fault/test_upgrade.py: runs the guide"
    ),
    "state salvage --data-dir rankwatch-data": "tests/fault/test_log_damage.py: needs a damaged log",
    "state prepare redis://localhost:6379/0 --redis-url redis://localhost:6379/1": "tests/fault/test_upgrade.py: runs the guide",
}
"""Commands that are not run as they are shown: the test that runs such a command, and why."""


def shown():
    """Each command in a block, with its page."""
    for page in PAGES:
        if page.name not in GENERATED:
            for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
                for match in SHOWN.finditer(block[1]):
                    text = re.split(r" >>? |;", match[1].replace("\\\n", " "))[0]
                    yield str(page.relative_to(ROOT)), text.partition("  #")[0].strip()


COMMANDS = sorted(set(shown()))
TEXTS = {text for _, text in COMMANDS}
HERE = TEXTS - ELSEWHERE.keys()
TOKENS = {text for text in HERE if text.startswith("token")}
ON_A_STATE = {text for text in HERE if text.startswith(("state", "quarantine"))}
ON_A_SERVER = {text for text in HERE if re.search(r"--server|https?://|^watch --|^notify", text)}
OF_THE_SERVICE = {text for text in HERE if text.split()[0] in {"run", "serve", "doctor", "send"}} - ON_A_SERVER
ON_FILES = {text for text in HERE if text.split()[0] in FILES or text.startswith("watch results/")} - ON_A_SERVER
