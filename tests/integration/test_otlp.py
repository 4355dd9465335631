"""OpenTelemetry into a real `watch`: what was acknowledged is there after a kill, and a wrong mapping stops the start."""

import json
import signal
import urllib.request
from pathlib import Path

from tests.commands import Watch, get, rankwatch, until

MAPPING = '[[map]]\nevaluation = "*"\nitem_id = "test.case.id"\nbenchmark = { value = "bot" }\n'
BODIES = Path(__file__).parents[1] / "unit/serve/otlp"


def export(url, signal_name):
    """Post what the exporter of the SDK posted."""
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    body = (BODIES / f"{signal_name}.pb.gz").read_bytes()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/{signal_name}", body, headers), timeout=60) as answer:
        return answer.status


def test_results_survive_a_kill_and_count_once(tmp_path):
    file = tmp_path / "otel.toml"
    file.write_text(MAPPING)
    options = {"RANKWATCH_OTEL_MAP": str(file)}
    with Watch(tmp_path / "data", "--items", "5", **options) as watch:
        assert export(watch.url, "logs") == 200
        watch.stop(signal.SIGKILL)
    with Watch(tmp_path / "data", "--items", "5", **options) as watch:
        assert export(watch.url, "traces") == 200

        def report():
            status, text = get(f"{watch.url}/api/v1/benchmarks/bot")
            (found,) = json.loads(text)["benchmarks"] if status == 200 else [None]
            return found if found is not None and found["events"] == 20 else None

        found = until(report, "both exports")
    assert (found["items"], found["duplicates"], found["order"]["policy"]) == (5, 10, "completion")
    assert [(each["model"], each["mean"]) for each in found["models"]] == [("a", 1.0), ("b", 0.0)]


def test_a_mapping_that_is_wrong_stops_the_start_with_what_to_do(tmp_path):
    file = tmp_path / "otel.toml"
    file.write_text('[[map]]\nevaluation = "*"\n')
    ended = rankwatch("watch", "--data-dir", tmp_path / "data", "--port", "0", code=1, RANKWATCH_OTEL_MAP=str(file))
    assert "item_id is missing" in ended.stderr
