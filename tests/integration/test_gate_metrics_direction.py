"""A gate on two columns of one table: more of one is better, and less of the other."""

import csv
import json

from tests.commands import rankwatch


def test_each_metric_has_its_own_direction(tmp_path):
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["benchmark", "model", "item_id", "right", "cost"])
        for k in range(300):
            rows.writerow(["qa", "old", k, int(k % 3 > 0), 0.2])
            rows.writerow(["qa", "new", k, int(k % 3 > 0), 0.9])
    columns = ("--columns", "score=right", "--columns")
    call = ("gate", tmp_path / "runs.csv", "--pair", "new", "old", "--margin", 0.05, *columns)
    found = json.loads(rankwatch(*call, "score=cost:lower", "--format", "json", code=4).stdout)
    assert [(each["metric"], each["verdict"]) for each in found["comparisons"]] == [
        ("right", "pass"),
        ("cost:lower", "fail"),
    ]
    assert round(found["comparisons"][1]["gap"], 9) == -0.7
    rankwatch(*call, "score=cost")  # where more of it is better
