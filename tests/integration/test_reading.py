"""What is read of files, and in which order: PATHs one after the other, files that break off, files that are read again."""

import json

from tests.commands import Watch, get, rankwatch, report, until, watch_once, write


def scores(values, model="a", benchmark="bench", **more):
    """One event an item."""
    return [
        {"benchmark": benchmark, "item_id": f"i{k}", "model": model, "score": value, **more}
        for k, value in enumerate(values)
    ]


def mean_of(result, model="a"):
    """The mean of a model in a report of one benchmark."""
    (benchmark,) = (json.loads(result) if isinstance(result, str) else result)["benchmarks"]
    return next(each["mean"] for each in benchmark["models"] if each["model"] == model)


def test_paths_are_read_in_the_order_given_and_a_folder_by_name(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    last, first = write(tmp_path / "z.jsonl", scores([1] * 4)), write(tmp_path / "a.jsonl", scores([0] * 4))
    write(folder / "2.jsonl", scores([1] * 4))
    write(folder / "1.jsonl", scores([0.5] * 4))
    for paths, mean in (((last, first), 1), ((first, last), 0), ((folder, last), 0.5), ((last, folder), 1)):
        assert mean_of(report(*paths)[0]) == mean
        assert mean_of(watch_once(tmp_path / f"data {paths[0].name} {paths[1].name}", *paths)) == mean
        named = [f"a={path}" for path in paths]
        assert mean_of(report(*named)[0]) == mean
    with Watch(tmp_path / "data") as watch:
        rankwatch("send", last, first, "--to", watch.url, "--data-dir", tmp_path / "sent")
        until(lambda: json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"], "the scores")
        assert mean_of(get(f"{watch.url}/api/v1/benchmarks")[1]) == 1
