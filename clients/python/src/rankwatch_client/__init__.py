"""Send the scores of a running evaluation to a rankwatch monitor, without blocking the evaluation.

>>> from rankwatch_client import Client
>>> with Client("http://127.0.0.1:8642", benchmark="mmlu", model="mine") as client:  # doctest: +SKIP
...     client.score("item 1", 1)
"""

from rankwatch_client.client import Client as Client
from rankwatch_client.client import EarlyStop as EarlyStop
from rankwatch_client.client import Stats as Stats
from rankwatch_client.notebook import Report as Report
from rankwatch_client.notebook import report as report
from rankwatch_client.races import RaceOptions as RaceOptions
from rankwatch_client.races import RaceResult as RaceResult
from rankwatch_client.races import async_race as async_race
from rankwatch_client.races import race as race
from rankwatch_client.races import race_blocks as race_blocks
