"""Whatever is asked, as the OpenAPI description allows or not: no fault of ours, nothing that is not described, and no score bent."""

import json
import os
import random

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from monitor.serve.api.writing import appending
from tests.commands import Counted, events, pairs_of
from tests.served import Served, folded

pytest_plugins = ["schemathesis.pytest.plugin"]

RECORDS = events(random.Random(1), {"a": 0.8, "b": 0.5, "c": 0.2}, 30)
SERVED = Served(folded(RECORDS, items=40))
EXAMPLES = int(os.environ.get("RANKWATCH_API_EXAMPLES", "5"))
"""Requests for each operation; the slow run takes more."""

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def ndjson(_, value):
    """Lines as they are; whatever else a case holds as JSON."""
    return (
        value
        if isinstance(value, bytes)
        else value.encode("utf-8", "surrogatepass")
        if isinstance(value, str)
        else json.dumps(value).encode()
    )


schema = schemathesis.openapi.from_dict(SERVED.web.openapi()).exclude(path="/api/v1/changes/stream")


@pytest.fixture(scope="module")
def served():
    with pytest.MonkeyPatch.context() as patch, SERVED as server:
        patch.setattr(appending, "FOLD_SECONDS", 0.02)  # what is posted is folded at once
        yield server
        benchmark = {b["benchmark"]: b for b in server.get("benchmarks?pairs=all").json["benchmarks"]}["bench"]
        assert pairs_of(benchmark) == Counted(RECORDS).pairs()
        assert (benchmark["items"], benchmark["conflicts"], benchmark["duplicates"]) == (30, 0, 0)


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_answers_are_those_described(served, case):
    case.call_and_validate(base_url=served.url, checks=CHECKS)
