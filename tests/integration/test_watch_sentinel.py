"""A sentinel that `watch` follows: what its terminal shows at the end, and what becomes of a change that is announced."""

import re

from tests.commands import Watch, rankwatch, write
from tests.unit.engine.test_sentinel import declaration, made


def test_the_end_shows_the_runs_and_an_unknown_model_is_no_change(tmp_path):
    runs = [each for run in made(30, drop_at=18, seed=1) for each in run]
    results = write(tmp_path / "runs.jsonl", [declaration(), *runs])
    with Watch(tmp_path / "data", results) as watch:
        watch.line(f"{len(runs):,} events")
        announce = ("drift", "change", "--server", watch.url)
        for names in (("z", "--benchmark", "bench"), ("m", "--benchmark", "none")):
            refused = rankwatch(*announce, *names, code=1)
            assert names[0 if names[0] == "z" else 2] in refused.stderr
            assert not refused.stdout
        assert "new history" in rankwatch(*announce, "m", "--benchmark", "bench").stdout
        assert watch.stop() == 0
    printed = "".join(watch.lines)
    assert "drift.worse: bench: m has got worse" in printed
    assert "… m: too little history. 0 runs" in printed
    assert re.search(r"earlier +2026-08-\d\d \(lower\)", printed)
    assert "rank" not in printed.partition("… m")[2]
