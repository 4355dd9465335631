"""Odd shapes of result files, as people write them: which proposals of `map` are right at the first try."""

import json

import pytest

from monitor.files.maps.propose import propose
from monitor.files.streams.event_lines import prompt_id
from monitor.files.streams.regular import Refusal
from tests.commands import rankwatch
from tests.unit.files.native_logs import Read

SCORES = {"gpt-4.1": [1, 0, 1, 1], "gpt-4.5": [0, 0, 1, 0], "llama-3.1-8b": [1, 1, 0, 1]}
LONG = [(m, f"q{k}", s) for m, scores in SCORES.items() for k, s in enumerate(scores)]
TWO = [(m, q, s) for m, q, s in LONG if m != "llama-3.1-8b"]
ONE = [(q, s) for m, q, s in LONG if m == "gpt-4.1"]
ALL = {(q, m, float(s)) for m, q, s in LONG}
MINE = {(q, "gpt-4.1", float(s)) for q, s in ONE}


def rows(**fields):
    """A record for each result, its fields by format strings or callables."""
    return [{name: make(m, q, s) for name, make in fields.items()} for m, q, s in LONG]


def csv(header, *lines):
    return "\n".join([header, *lines]) + "\n"


def kwargs(k):
    return {"name": "book", "kwargs": {"bags": k, "insurance": k % 2 == 0, "paid": True}}


SHAPES = {
    # records with an item and a score at the top level, with other numbers below
    "tool arguments below": [
        {"test": q, "reward": s, "info": {"actions": [kwargs(1), kwargs(2)], "cost": 0.1}} for q, s in ONE
    ],
    "token counts below": [
        {"qid": q, "system": m, "passed": bool(s), "usage": {"prompt": 0, "completion": 1}} for m, q, s in LONG
    ],
    "messages below": [
        {"case": q, "grade": s, "messages": [{"role": "user", "id": "1", "score": 0}, {"role": "bot", "id": "2", "score": 1}]}
        for q, s in ONE
    ],
    "sub-scores below": [{"task": q, "agent": m, "score": s, "rubric": {"tone": 1, "length": 0}} for m, q, s in LONG],
    "steps below": [{"task_id": q, "agent": m, "success": bool(s), "steps": [{"n": 1}, {"n": 2}]} for m, q, s in LONG],
    "checks below": [
        {"instance": q, "llm": m, "resolved": bool(s), "tests": {"t1": True, "t2": False, "t3": True}} for m, q, s in LONG
    ],
    # where the model is
    "model in a nested object": [{"run": {"model": {"name": m}}, "sample": {"id": q}, "eval": {"score": s}} for m, q, s in LONG],
    "model above lists": [{"config": {"model": m}, "samples": [{"id": q, "score": s} for n, q, s in LONG if n == m]} for m in SCORES],
    "model as key of lists": {m: [{"id": f"q{k}", "correct": s} for k, s in enumerate(v)] for m, v in SCORES.items()},
    "model as key of objects": {"results": {m: {f"q{k}": {"acc": s} for k, s in enumerate(v)} for m, v in SCORES.items()}},
    "model as key, scores alone": {m: {f"q{k}": s for k, s in enumerate(v)} for m, v in SCORES.items()},
    "model as key in items": {q: {m: s for m, qq, s in LONG if qq == q} for q in ("q0", "q1", "q2", "q3")},
    "model in a list of pairs": {"runs": [{"system": m, "scores": {f"q{k}": s for k, s in enumerate(v)}} for m, v in SCORES.items()]},
    "no model, the file": [{"id": q, "score": s} for q, s in ONE],
    "no model, by item": {q: {"score": s, "time": 3} for q, s in ONE},
    "no model, wrapped": {"date": "2026-01-01", "results": [{"question": q, "is_correct": bool(s)} for q, s in ONE]},
    "no model, totals next to it": {"accuracy": 0.75, "n": 4, "details": [{"idx": q, "correct": s} for q, s in ONE]},
    # how scores are written
    "percent signs": rows(item=lambda m, q, s: q, model=lambda m, q, s: m, score=lambda m, q, s: f"{100 * s}%"),
    "words": rows(case=lambda m, q, s: q, bot=lambda m, q, s: m, verdict=lambda m, q, s: "correct" if s else "incorrect"),
    "pass and fail": rows(name=lambda m, q, s: q, engine=lambda m, q, s: m, outcome=lambda m, q, s: "PASS" if s else "FAIL"),
    "of ten": rows(id=lambda m, q, s: q, model=lambda m, q, s: m, rating=lambda m, q, s: 10 * s),
    "of a hundred": rows(id=lambda m, q, s: q, model=lambda m, q, s: m, points=lambda m, q, s: 100 * s),
    "text numbers": rows(id=lambda m, q, s: q, model=lambda m, q, s: m, score=lambda m, q, s: f"{s}.0"),
    "what is wrong": rows(id=lambda m, q, s: q, model=lambda m, q, s: m, failed=lambda m, q, s: not s),
    "a score in a list of one name": [
        {"id": q, "model": m, "metrics": {"exact_match": s, "latency_ms": 120, "tokens": 800}} for m, q, s in LONG
    ],
    # where items are
    "items by number": [{"question_no": q, "contestant": m, "ok": bool(s)} for m, q, s in LONG],
    "items nested": [{"doc": {"uid": q, "text": "?"}, "model": m, "score": s} for m, q, s in LONG],
    "long prompts as items": [{"prompt": f"{q} " + "word " * 60, "model": m, "score": s} for m, q, s in LONG],
    "items as keys": {"evals": {q: {"model": "gpt-4.1", "score": s} for q, s in ONE}},
    "items as keys of lists": {
        "outputs": {q: [{"system": m, "score": s} for m, qq, s in LONG if qq == q] for q in ("q0", "q1", "q2", "q3")}
    },
    "sections": {
        "sections": [
            {"name": name, "questions": [{"id": q, "model": m, "score": s} for m, q, s in LONG if (q < "q2") == (name == "a")]}
            for name in "ab"
        ]
    },
    # tables
    "a table": csv("llm,question,grade", *(f"{m},{q},{s}" for m, q, s in LONG)),
    "a table by semicolons": csv("Model;Item;Score", *(f"{m};{q};{s}" for m, q, s in LONG)),
    "a wide table": csv("question," + ",".join(SCORES), *(f"q{k}," + ",".join(str(v[k]) for v in SCORES.values()) for k in range(4))),
    "a wide table with text": csv(
        "question,topic," + ",".join(SCORES), *(f"q{k},law," + ",".join(str(v[k]) for v in SCORES.values()) for k in range(4))
    ),
    "models as rows": csv("model,q0,q1,q2,q3", *(f"{m}," + ",".join(map(str, v)) for m, v in SCORES.items())),
    "an index column": csv(",qid,model,correct", *(f"{k},{q},{m},{s}" for k, (m, q, s) in enumerate(LONG))),
    "a table with costs": csv("id,model,score,cost,seconds", *(f"{q},{m},{s},0.5,12" for m, q, s in LONG)),
    "columns and rows": {"header": ["model", "qid", "score"], "rows": [[m, q, s] for m, q, s in LONG]},
    "an envelope": {"meta": {"n": 12}, "payload": {"data": {"items": [{"q": q, "m": m, "acc": s} for m, q, s in LONG]}}},
    "repeats": [{"id": q, "model": m, "trial": t, "score": s} for m, q, s in LONG for t in (0, 1)],
    "judges above": {"judge": {"model": "claude"}, "answers": [{"id": q, "candidate": m, "score": s} for m, q, s in LONG]},
    "two wrappers": [{"result": {"item": {"id": q}, "by": {"model": m}, "score": {"value": s}}} for m, q, s in LONG],
    # what misleads
    "totals by category": {
        "overall": 0.75,
        "by_category": {"law": {"score": 0.5, "n": 2}, "art": {"score": 1.0, "n": 2}},
        "items": [{"id": q, "model": m, "score": s} for m, q, s in LONG],
    },
    "a leaderboard next to it": {
        "leaderboard": [{"rank": k, "model": m, "score": sum(v) / 4} for k, (m, v) in enumerate(SCORES.items())],
        "results": [{"id": q, "model": m, "score": s} for m, q, s in LONG],
    },
    "a flat record of each model": [{"model": m, **{f"q{k}": s for k, s in enumerate(v)}} for m, v in SCORES.items()],
    "positions in lists": {m: [{"ok": bool(s), "n": k} for k, s in enumerate(v)] for m, v in SCORES.items()},
    "two metrics": [{"id": q, "model": m, "f1": s, "em": s} for m, q, s in LONG],
    "a list of one score": [{"id": q, "model": m, "scores": [s]} for m, q, s in LONG],
    "named evaluations": [{"id": q, "model": m, "evaluations": [{"name": "exact", "value": s}]} for m, q, s in LONG],
    "a provider": [{"vars": {"id": q}, "provider": {"id": m}, "gradingResult": {"pass": bool(s), "score": s}} for m, q, s in LONG],
    "times of each row": [
        {"ts": 1767225600 + k, "id": q, "model": m, "duration_ms": 3 * k, "score": s} for k, (m, q, s) in enumerate(LONG)
    ],
    "a threshold and weights": [
        {"id": q, "model": m, "threshold": 0.5, "weight": 1, "score": s, "max_score": 1} for m, q, s in LONG
    ],
    "an answer key": [{"id": q, "model": m, "gold": "A", "answer": "A" if s else "B", "correct": bool(s)} for m, q, s in LONG],
    "camel case": [{"testCaseId": q, "modelName": m, "isCorrect": bool(s), "tokenCount": 12} for m, q, s in LONG],
}  # fmt: skip


def wanted(shape):
    if "long prompts" in shape:
        return {(prompt_id(f"{q} " + "word " * 60), m, s) for q, m, s in ALL}
    if shape == "positions in lists":
        return {(q[1:], m, s) for q, m, s in ALL}
    content = json.dumps(SHAPES[shape]) if not isinstance(SHAPES[shape], str) else SHAPES[shape]
    return ALL if "llama-3.1-8b" in content else MINE


def read_right(folder, shape):
    content = SHAPES[shape]
    path = folder / f"gpt-4.1.{'csv' if isinstance(content, str) else 'json'}"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    try:
        (folder / "rankwatch.toml").write_text(propose(path).text)
    except Refusal:
        return False
    read = Read(path)
    return not read.rejects and {
        (e.item_id, e.model, None if e.score is None else float(e.score)) for e in read.events
    } == wanted(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_right_at_the_first_try(tmp_path, shape):
    folder = tmp_path / "runs"
    folder.mkdir()
    assert read_right(folder, shape)


def test_more_models_than_items_are_refused_with_the_flag(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(csv("item_id,model,score", *(f"{m},q{k},1" for m in ("new", "old") for k in range(20))))
    with pytest.raises(Refusal, match=r"20 models \(q0, q1.*on 2 items .*swap item_id and model") as refused:
        propose(path)
    assert "--columns item_id=...,model=..." in str(refused.value)
    (tmp_path / "small.csv").write_text("item_id,model,score\nq,a,1\nq,b,0\n")
    assert 'model = "model"' in propose(tmp_path / "small.csv").text, "two models on the first item"


def test_totals_are_no_items_on_every_path(tmp_path):
    path = tmp_path / "x.json"
    for content in (
        {"gpt-4.1": 0.8, "claude-4": 0.7},
        [{"model": "a", "mmlu": 0.5, "gsm8k": 0.7}, {"model": "b", "mmlu": 0.4, "gsm8k": 0.6}],
    ):
        path.write_text(json.dumps(content))
        assert "a total is no score of an item" in "\n".join(propose(path).guesses)
    path.write_text(json.dumps([{"model": "a", "accuracy": 0.5}, {"model": "b", "accuracy": 0.6}]))
    with pytest.raises(Refusal, match="no list or object in the file has records with an item and a score"):
        propose(path)


def test_a_folder_is_refused_with_a_file_of_it(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    assert "give one file of results, as in rankwatch map" in rankwatch("map", tmp_path, code=2).stderr
