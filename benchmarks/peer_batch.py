"""Run one package over all pairs of a file: ``PYTHON benchmarks/peer_batch.py NAME FILE.jsonl.gz``.

Run by the Python of an environment in which the packages are installed. Each function reads the file, compares all pairs of models as its
package documents, and returns how many pairs it calls different.
"""

import gzip
import json
import shutil
import sys
import tempfile
from itertools import combinations
from typing import Any


def errorbars(file: str) -> int:
    from errorbars.cli import _columns_from, build_parser
    from errorbars.io import load_jsonl
    from errorbars.leaderboard import build_leaderboard

    with tempfile.NamedTemporaryFile(suffix=".jsonl") as plain:
        with gzip.open(file) as packed:
            shutil.copyfileobj(packed, plain)
        plain.flush()
        names = ["leaderboard", plain.name, "--question-col", "item_id", "--cluster-col", "none"]
        data = load_jsonl(plain.name, _columns_from(build_parser().parse_args(names)))
    return sum(pair.p_holm < 0.05 for pair in build_leaderboard(data).pairwise)


def rows(file: str) -> list[dict[str, Any]]:
    with gzip.open(file) as packed:
        return [json.loads(line) for line in packed]


def by_model(file: str) -> dict[str, dict[str, float]]:
    models = {}
    for event in rows(file):
        models.setdefault(event["model"], {})[event["item_id"]] = event["score"]
    return models


def evalstats(file: str) -> None:
    import evalstats as es
    import pandas as pd

    frame = pd.DataFrame(rows(file))
    # It needs every model on every item: other items are dropped.
    scored = frame.groupby("item_id")["model"].nunique()
    frame = frame[frame["item_id"].isin(scored[scored == frame["model"].nunique()].index)]
    loaded = es.load_from(frame[["model", "item_id", "score"]], col_map={"item_id": "item"}, metric_cols="score")
    es.compare_models(loaded)


def evalconfidence(file: str) -> int:
    from evalconfidence import ItemResult, compare

    models = {
        model: [ItemResult(item, model, float(score)) for item, score in scores.items()]
        for model, scores in by_model(file).items()
    }
    return sum(compare(models[a], models[b], paired=True).significant for a, b in combinations(models, 2))


def evalci(file: str) -> int:
    import pandas as pd
    from evalci import multi_compare

    frame = pd.DataFrame(rows(file))
    return int(multi_compare(frame, n_resamples=100, random_state=1)["significant"].sum())


def discordant(file: str) -> list[tuple[int, int]]:
    """Count, for each pair, the items that only one of the two has right; numpy does the work that a package leaves to its caller."""
    import numpy as np

    models, items = {}, {}
    cells = [
        (models.setdefault(e["model"], len(models)), items.setdefault(e["item_id"], len(items)), e["score"])
        for e in rows(file)
    ]
    right, there = np.zeros((2, len(models), len(items)))
    model, item, score = (np.array(column) for column in zip(*cells, strict=True))
    there[model, item], right[model, item] = 1, score
    wins = (right @ (there - right).T).astype(int).tolist()
    return [(wins[i][j], wins[j][i]) for i, j in combinations(range(len(models)), 2)]


def paired_eval(file: str) -> int:
    from paired_eval import holm_adjust, mcnemar_exact

    return sum(p < 0.05 for p in holm_adjust([mcnemar_exact(b, c) for b, c in discordant(file)]))


def statsmodels(file: str) -> int:
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    p = [mcnemar([[0, b], [c, 0]], exact=True).pvalue for b, c in discordant(file)]
    return int(multipletests(p, method="holm")[0].sum())


def bare(file: str) -> None:
    import msgspec
    import numpy as np

    class Event(msgspec.Struct, gc=False):
        item_id: str
        model: str
        score: float

    with gzip.open(file) as packed:
        events = msgspec.json.Decoder(Event).decode_lines(packed.read())
    items, models = {}, {}
    row = np.array([items.setdefault(event.item_id, len(items)) for event in events])
    column = np.array([models.setdefault(event.model, len(models)) for event in events])
    right, there = np.zeros((2, len(items), len(models)), np.float32)
    there[row, column] = 1
    right[row, column] = [event.score for event in events]
    wins = right.T @ (there - right)
    assert wins.sum() > 0


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
