"""Files of battles: tables, JSON lines and arrays of the shapes that arenas and pairwise judges write."""

import csv
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.importer import Importer
from monitor.files.streams.paths import PathError
from monitor.files.streams.read import read_files
from monitor.files.tables.battle_columns import BattleColumns
from schemas.records.events import BattleFields


def read(path, benchmark="arena", **choices):
    notes = []
    importer = Importer(Choices(benchmark=benchmark, **choices), notes.append)
    segments = list(read_files(importer.find([path]), opener=importer.open))
    events = [event for segment in segments for event in segment.events]
    faults = [(reject["line"], reject["reason"]) for segment in segments for reject in segment.rejects]
    return events, faults, notes


def fields(event):
    return event.item_id, event.model_a, event.model_b, event.winner, event.cluster, event.position


ARENA = [
    {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "u1", "language": "en"},
    {"question_id": "q2", "model_a": "y", "model_b": "z", "winner": "tie (bothbad)", "judge": "u2", "turn": 1},
    {"question_id": "q3", "model_a": "x", "model_b": "z", "winner": "model_b", "judge": "u1"},
]
EXPECTED = [
    ("q1", "x", "y", "a", "u1", None),
    ("q2", "y", "z", "tie", "u2", None),
    ("q3", "x", "z", "b", "u1", None),
]


TEXT = st.sampled_from(["x", "y", "model_a", "tie", "", "zü", "n" * 600, None, 7, {"inner": 1}])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "question_id": TEXT,
                "model_a": TEXT,
                "model_b": TEXT,
                "winner": st.sampled_from(["model_a", "x", " B ", "both_bad", "nobody", None]),
            },
            optional={
                "judge": st.sampled_from(["u1", None, "", ["u2", "v"], []]),
                "position": st.sampled_from(["a", None, "x"]),
            },
        ),
        max_size=3,
    ),
    st.sampled_from(["arena", None]),
)
def test_rows_that_are_read_by_column_are_those_that_are_read_one_by_one(rows, benchmark):
    columns = BattleColumns(
        ["question_id", "model_a", "model_b", "winner", "judge", "position"],
        Choices(benchmark=benchmark or "arena"),
        None,
    )
    usual = columns.usual(rows)
    assert usual is None or usual == [event for row in rows for event in columns.events(row)]


@pytest.mark.parametrize("form", ["array", "lines", "table"])
def test_arena_files_are_read_as_battles(tmp_path, form):
    path = tmp_path / {"array": "a.json", "lines": "a.jsonl", "table": "a.csv"}[form]
    if form == "array":
        path.write_text(json.dumps(ARENA))
    elif form == "lines":
        path.write_text("".join(json.dumps(row) + "\n" for row in ARENA))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(
                file, ["question_id", "model_a", "model_b", "winner", "judge"], extrasaction="ignore"
            )
            writer.writeheader()
            writer.writerows(ARENA)
    events, faults, notes = read(path)
    assert faults == []
    assert all(isinstance(event, BattleFields) and event.benchmark == "arena" for event in events)
    assert list(map(fields, events)) == EXPECTED
    assert any("winner = winner, judge = judge" in note and "count as ties" in note for note in notes)
    assert list(map(fields, read(tmp_path)[0])) == EXPECTED, "a folder lists the file too"


def test_the_two_games_of_a_fastchat_judgment_are_battles_in_both_orders(tmp_path):
    rows = [
        {"question_id": 81, "model_1": "m", "model_2": "n", "g1_winner": "model_1", "g2_winner": "tie", "turn": 1},
        {"question_id": 81, "model_1": "m", "model_2": "n", "g1_winner": "model_2", "g2_winner": "error", "turn": 2},
    ]
    path = tmp_path / "gpt-4_pair.jsonl"
    path.write_text("".join(json.dumps({**row, "judge": ["gpt-4", "pair-v2"]}) + "\n" for row in rows))
    events, faults, _ = read(path)
    assert list(map(fields, events)) == [
        ("81/1", "m", "n", "a", "gpt-4", "a"),
        ("81/1", "m", "n", "tie", "gpt-4", "b"),
        ("81/2", "m", "n", "b", "gpt-4", "a"),
    ]
    assert faults == [(2, "g2_winner is error: the judge gave no result; the game is omitted")]


def test_places_name_who_was_shown_first_and_names_come_before_numbers(tmp_path):
    path = tmp_path / "crowd.csv"
    path.write_text("id,prompt,model_x,model_y,worker,winner,left,right\n0,8,97,98,58,left,x,y\n1,8,97,98,3,x,x,y\n")
    events, faults, notes = read(path)
    assert [fields(event) for event in events] == [("8", "x", "y", "a", "58", "a"), ("8", "x", "y", "a", "3", "a")]
    assert faults == []
    assert any("left counts as shown first" in note for note in notes)
    assert fields(read(path, cluster="none")[0][0]) == ("8", "x", "y", "a", None, "a")


GAMES = [("model_1", "model_1"), ("tie", "model_1"), ("model_1", "model_2"), ("tie", "tie"), ("model_2", "model_2")]


def test_two_games_count_by_their_mean_or_as_a_tie_unless_they_agree(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"question_id": k, "model_1": "x", "model_2": "y", "g1_winner": one, "g2_winner": other}
        for k, (one, other) in enumerate(
            [*GAMES, ("model_1", "error"), ("error", "tie"), ("model_1", ["?"]), ("?", "tie")]
        )
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    events, _, notes = read(path)
    assert [event.winner for event in events][:4] == ["a", "a", "tie", "a"]
    assert any("count by their mean (--swap-rule agree: a tie unless both agree)" in note for note in notes)
    events, faults, notes = read(path, swap_rule="agree")
    assert [(event.item_id, event.winner) for event in events] == list(
        zip("01234", ["a", "tie", "tie", "tie", "b"], strict=True)
    )
    assert len(faults) == 4
    assert any("are one battle, a tie unless both agree" in note for note in notes)
    with pytest.raises(ChoiceError, match="--swap-rule other: use mean or agree"):
        Choices.parse(swap_rule="other")


@pytest.mark.parametrize(
    ("text", "choices", "reason"),
    [
        ("item_id,model_a,model_b,winner\n1,x,y,z\n", {}, '"z" is unknown; use a, b or tie'),
        ("item_id,model_a,model_b,winner\n1,,y,a\n", {}, "use a string of 1 to 200 printable characters"),
        ("item_id,model_a,model_b,winner\n1,x,y,a\n", {"cluster": "who"}, "who is no column of"),
    ],
)
def test_a_bad_battle_names_what_to_do(tmp_path, text, choices, reason):
    path = tmp_path / "a.csv"
    path.write_text(text)
    events, [(_, found)], _ = read(path, **choices)
    assert events == []
    assert reason in found


@pytest.mark.parametrize(
    ("name", "votes", "ties", "models"),
    [
        ("battles/gpt4-crowd-comparisons.csv", 2139, 66, 59),
        ("battles/crowd-comparisons.first600.csv", 599, 176, 57),
        ("mt_bench_variant/pairwise/gemma-2-9b-it_vs_Phi-3.5-mini-Instruct.first20.jsonl", 20, 6, 2),
    ],
)
def test_published_battle_files_are_read_whole(name, votes, ties, models):
    folder = os.environ.get("RANKWATCH_DATA")
    if not folder or not (path := Path(folder) / "native" / name).is_file():
        pytest.skip("RANKWATCH_DATA has no battle files")
    events, faults, _ = read(path)
    assert faults == []
    counts = Counter(event.winner for event in events)
    assert (counts.total(), counts["tie"]) == (votes, ties)
    assert len({model for event in events for model in (event.model_a, event.model_b)}) == models


def test_tables_in_a_folder_without_a_benchmark_name_the_flag(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("item_id,model_a,model_b,winner\n1,x,y,a\n")
    notes = []
    with pytest.raises(PathError):
        Importer(Choices(), notes.append).find([tmp_path])
    assert notes[0].endswith(
        "a.csv: the file is skipped: no column names the benchmark; give each file by name, or add --benchmark NAME"
    )
    assert len(Importer(Choices(benchmark="arena")).find([tmp_path])) == 2
