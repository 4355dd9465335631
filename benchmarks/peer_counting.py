"""Count wins and losses of all pairs with one package: `python peer_counting.py PROGRAM FILE FOLDER`; see `counting`.

Keeps in the folder the number of pairs, and a digest of the lines `a b wins losses` by name, a before b. The first score of an item and
model wins.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

CHUNK = 6_000
"""Events between two states: as many as `rankwatch run` stores at once."""

DIGEST = "digest"

Counted = Iterable[tuple[str, str, int, int]]
"""Names of two models in order, wins of the first, losses of the first."""


def digest(pairs: Counted) -> str:
    """Return what two programs that count the same agree on."""
    lines = sorted(f"{a}\t{b}\t{wins}\t{losses}" for a, b, wins, losses in pairs)
    return json.dumps([len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()])


def keep_digest(folder: Path, pairs: Counted) -> None:
    """Write the digest into a folder."""
    (folder / DIGEST).write_text(digest(pairs), encoding="utf-8")


def chunks(file: Path) -> Iterator[list[bytes]]:
    """Yield the lines of the file as they would come from a log."""
    with file.open("rb") as lines:
        while chunk := list(islice(lines, CHUNK)):
            yield chunk


def sync(*paths: Path) -> None:
    """Wait until files, and the names of files in directories, are on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


# --- once, at the end ---------------------------------------------------------------------------------------------------------------


def duckdb_once(file: Path, _: Path) -> Counted:
    """Join the table with itself."""
    import duckdb

    database = duckdb.connect()
    database.execute(
        "CREATE TABLE scores AS SELECT item_id AS item, model, score FROM ("
        " SELECT item_id, model, score, row_number() OVER (PARTITION BY item_id, model ORDER BY place) AS nth FROM ("
        "  SELECT *, row_number() OVER () AS place FROM read_json(?, format = 'newline_delimited',"
        "   columns = {item_id: 'VARCHAR', model: 'VARCHAR', score: 'UTINYINT'}))) WHERE nth = 1",
        [str(file)],
    )
    return database.execute(
        "SELECT a.model, b.model, count(*) FILTER (a.score > b.score), count(*) FILTER (a.score < b.score)"
        " FROM scores a JOIN scores b ON a.item = b.item AND a.model < b.model GROUP BY ALL"
    ).fetchall()


def polars_once(file: Path, _: Path) -> Counted:
    """Join the frame with itself, by the streaming engine."""
    import polars as pl

    schema = {"item_id": pl.String, "model": pl.String, "score": pl.Int64}
    scores = (
        pl.scan_ndjson(file, schema=schema)
        .unique(["item_id", "model"], keep="first")
        .collect(engine="streaming")
        .with_columns(pl.col("model").cast(pl.Enum(_models(file))), pl.col("item_id").cast(pl.Categorical))
        .lazy()
    )
    return pairs_of_frames(scores, scores).collect(engine="streaming").cast({"a": pl.String, "b": pl.String}).rows()


def _models(file: Path) -> list[str]:
    """Return the models by name: pairs are in that order."""
    import polars as pl

    models = pl.scan_ndjson(file, schema={"model": pl.String}).unique().collect(engine="streaming")
    return sorted(models["model"].to_list())


def pairs_of_frames(left: Any, right: Any) -> Any:  # noqa: ANN401 - lazy frames of another package
    """Count the pairs of a model of the left frame and a later one of the right frame."""
    import polars as pl

    return (
        left.join(right, on="item_id", suffix="_b")
        .filter(pl.col("model") < pl.col("model_b"))
        .group_by(a="model", b="model_b")
        .agg(
            wins=(pl.col("score") > pl.col("score_b")).sum().cast(pl.Int64),
            losses=(pl.col("score") < pl.col("score_b")).sum().cast(pl.Int64),
        )
    )


# --- current and on the disk after each chunk ---------------------------------------------------------------------------------------


def duckdb_stream(file: Path, folder: Path) -> Counted:
    """Keep scores and counts as tables of a database file; a transaction for each chunk."""
    import duckdb

    database = duckdb.connect(str(folder / "counts.duckdb"))
    database.execute("CREATE TABLE scores (item VARCHAR, model VARCHAR, score UTINYINT)")
    database.execute("CREATE TABLE pairs (a VARCHAR, b VARCHAR, wins BIGINT, losses BIGINT, PRIMARY KEY (a, b))")
    for chunk in chunks(file):
        database.execute("BEGIN")
        database.execute(
            "CREATE OR REPLACE TEMP TABLE fresh AS SELECT item, model, score FROM ("
            " SELECT event.item_id AS item, event.model AS model, event.score AS score,"
            "  row_number() OVER (PARTITION BY event.item_id, event.model ORDER BY place) AS nth FROM ("
            '  SELECT from_json(line, \'{"item_id": "VARCHAR", "model": "VARCHAR", "score": "UTINYINT"}\') AS event, place'
            "  FROM (SELECT unnest($1) AS line, generate_subscripts($1, 1) AS place))) AS numbered"
            " WHERE nth = 1 AND NOT EXISTS (FROM scores s WHERE s.item = numbered.item AND s.model = numbered.model)",
            [[line.decode() for line in chunk]],
        )
        database.execute(
            "INSERT INTO pairs SELECT least(n.model, s.model), greatest(n.model, s.model),"
            " count(*) FILTER ((n.score > s.score) = (n.model < s.model) AND n.score <> s.score),"
            " count(*) FILTER ((n.score > s.score) <> (n.model < s.model) AND n.score <> s.score)"
            " FROM fresh n JOIN (SELECT *, false AS new FROM scores UNION ALL SELECT *, true AS new FROM fresh) s"
            " ON n.item = s.item AND n.model <> s.model AND (NOT s.new OR n.model < s.model) GROUP BY ALL"
            " ON CONFLICT DO UPDATE SET wins = wins + excluded.wins, losses = losses + excluded.losses"
        )
        database.execute("INSERT INTO scores FROM fresh")
        database.execute("COMMIT")
    return database.execute("FROM pairs").fetchall()


def polars_stream(file: Path, folder: Path) -> Counted:
    """Keep scores and counts as frames; a Parquet file of the new scores, and one of all counts, for each chunk."""
    import io

    import polars as pl

    schema = {"item_id": pl.String, "model": pl.String, "score": pl.Int64}
    scores = pl.DataFrame(schema=schema)
    counts = pl.DataFrame(schema={"a": pl.String, "b": pl.String, "wins": pl.Int64, "losses": pl.Int64})
    for k, chunk in enumerate(chunks(file)):
        fresh = (
            pl.read_ndjson(io.BytesIO(b"".join(chunk)), schema=schema)
            .unique(["item_id", "model"], keep="first")
            .join(scores, on=["item_id", "model"], how="anti")
        )
        met = scores.join(fresh.select("item_id").unique(), on="item_id", how="semi").lazy()
        new = fresh.lazy()
        more = pl.concat([pairs_of_frames(new, new), pairs_of_frames(new, met), pairs_of_frames(met, new)])
        summed = pl.concat([counts.lazy(), more]).group_by("a", "b").agg(pl.col("wins", "losses").sum())
        counts = summed.collect(engine="streaming")
        scores = pl.concat([scores, fresh])
        written = folder / f"scores-{k:06}.parquet", folder / "counts.new"
        fresh.write_parquet(written[0])
        counts.write_parquet(written[1])
        sync(*written)
        written[1].replace(folder / "counts.parquet")
        sync(folder)
    return counts.rows()


def bytewax_stream(file: Path, folder: Path) -> Counted:
    """Keep the scores of an item, and the counts of a pair, as state by key; a snapshot of what changed for each chunk."""
    import bytewax.operators as op
    from bytewax.connectors.files import FileSource
    from bytewax.dataflow import Dataflow
    from bytewax.operators import StatefulBatchLogic
    from bytewax.recovery import RecoveryConfig, init_db_dir
    from bytewax.testing import TestingSink, cluster_main

    class Pairs(StatefulBatchLogic):
        """The counts of a pair, handed on at the end."""

        def __init__(self, counts: tuple[int, int] | None) -> None:
            self.wins, self.losses = counts or (0, 0)

        def on_batch(self, values: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], bool]:
            for first, second in values:
                self.wins += first > second
                self.losses += first < second
            return [], False

        def on_eof(self) -> tuple[list[tuple[int, int]], bool]:
            return [(self.wins, self.losses)], False

        def snapshot(self) -> tuple[int, int]:
            return self.wins, self.losses

    def meet(scores: dict[str, int] | None, event: tuple[str, int]) -> tuple[dict[str, int], list[tuple[str, Any]]]:
        model, score = event
        scores = scores or {}
        if model in scores:
            return scores, []
        met = [
            (f"{model}\t{other}", (score, its)) if model < other else (f"{other}\t{model}", (its, score))
            for other, its in scores.items()
        ]
        return scores | {model: score}, met

    def read(line: str) -> tuple[str, tuple[str, int]]:
        event = json.loads(line)
        return event["item_id"], (event["model"], event["score"])

    init_db_dir(folder, 1)
    found: list[tuple[str, tuple[int, int]]] = []
    flow = Dataflow("counting")
    lines = op.input("lines", flow, FileSource(file, batch_size=CHUNK))
    events = op.map("events", lines, read)
    met = op.flat_map("met", op.stateful_map("items", events, meet), lambda keyed: keyed[1])
    op.output("counts", op.stateful_batch("pairs", met, Pairs), TestingSink(found))
    cluster_main(flow, [], 0, epoch_interval=_no_time(), recovery_config=RecoveryConfig(folder))
    return [(*name.split("\t"), wins, losses) for name, (wins, losses) in found]


def _no_time() -> Any:  # noqa: ANN401 - a duration
    from datetime import timedelta

    return timedelta(0)


def pathway_stream(file: Path, folder: Path) -> Counted:
    """Keep the join of the table with itself as a view; a commit and a persisted input for each chunk."""
    import pathway as pw

    class Score(pw.Schema):
        item: str = pw.column_definition(primary_key=True)
        model: str = pw.column_definition(primary_key=True)
        score: int

    class Lines(pw.io.python.ConnectorSubject):
        """The events, the first of a key."""

        def run(self) -> None:
            known = set()
            for chunk in chunks(file):
                for event in map(json.loads, chunk):
                    key = event["item_id"], event["model"]
                    if key not in known:
                        known.add(key)
                        self.next(item=event["item_id"], model=event["model"], score=event["score"])
                self.commit()

    found: dict[tuple[str, str], tuple[int, int]] = {}

    def keep(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ANN401, ARG001, FBT001 - pathway's
        if is_addition:
            found[row["a"], row["b"]] = row["wins"], row["losses"]

    scores = pw.io.python.read(Lines(), schema=Score, autocommit_duration_ms=None, name="events")
    left, right = scores.copy(), scores.copy()
    met = left.join(right, left.item == right.item).select(
        a=left.model, b=right.model, won=left.score > right.score, lost=left.score < right.score
    )
    ordered = met.filter(met.a < met.b)
    counts = ordered.groupby(ordered.a, ordered.b).reduce(
        ordered.a,
        ordered.b,
        wins=pw.reducers.sum(pw.cast(int, ordered.won)),
        losses=pw.reducers.sum(pw.cast(int, ordered.lost)),
    )
    pw.io.subscribe(counts, on_change=keep)
    backend = pw.persistence.Backend.filesystem(str(folder))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=pw.persistence.Config(backend))
    return [(a, b, wins, losses) for (a, b), (wins, losses) in found.items()]


PROGRAMS = {
    each.__name__: each
    for each in (duckdb_once, polars_once, duckdb_stream, polars_stream, bytewax_stream, pathway_stream)
}

if __name__ == "__main__":
    keep_digest(Path(sys.argv[3]), PROGRAMS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3])))
