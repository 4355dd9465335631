"""What PATH arguments and choices may be."""

import pytest

from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.streams.paths import PathError
from tests.unit.files.native_logs import Importer, lm_eval_run, sample


def test_a_path_may_have_a_name(tmp_path):
    path = lm_eval_run(tmp_path, "m", [sample(0)]).resolve()
    assert Importer().find([f"x={path}"]) == [path]
    assert Importer().find([path, f"x={path}"]) == [path]


def test_a_path_with_an_equals_sign_is_a_path(tmp_path):
    folder = tmp_path / "lr=0.1"
    path = lm_eval_run(folder, "m", [sample(0)]).resolve()
    assert Importer().find([folder]) == [path]
    assert Importer().find([f"run={folder}"]) == [path]


def test_a_file_is_named_once(tmp_path):
    path = lm_eval_run(tmp_path, "m", [sample(0)])
    with pytest.raises(PathError, match=r"is named x and y; name it once"):
        Importer().find([f"x={path}", f"y={tmp_path}"])


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(PathError, match=r"nowhere does not exist"):
        Importer().find([f"x={tmp_path / 'nowhere'}"])


def test_a_folder_without_results_says_what_was_looked_for(tmp_path):
    with pytest.raises(
        PathError,
        match=r"has no files of results; use names that end with .*\.jsonl.*\.eval.*\.csv.*\.parquet",
    ):
        Importer().find([tmp_path])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": ["quiz="]}, r"--metric quiz=: a name is missing; use NAME or BENCHMARK=NAME"),
        ({"scorer": ["=x"]}, r"--scorer =x: a name is missing"),
        (
            {"columns": ["question=id"]},
            r"--columns question=id: use FIELD=COLUMN, where FIELD is one of benchmark, item_id",
        ),
        ({"columns": ["model"]}, r"--columns model: use FIELD=COLUMN"),
        ({"columns": ["model=a", "model=b"]}, r"model is given twice, as a and b; give it once"),
        ({"columns": ["models=a|"]}, r"a name is missing; use models=A\|B"),
        ({"columns": ["models=*,score=a"]}, r"models replaces model and score"),
    ],
)
def test_choices_that_cannot_be_meant_are_refused(options, message):
    with pytest.raises(ChoiceError, match=message):
        Choices.parse(**options)


def test_the_direction_of_a_column_is_that_of_earlier_calls():
    first = Importer(Choices.parse(columns=["score=cost:lower"]))
    first.keep_direction(["qa"])
    for columns in (["score=cost"], ["score=time:lower"], []):
        later = Importer(Choices.parse(columns=columns))
        later.resume(first.chosen)
        later.keep_direction(["other"])
        with pytest.raises(ChoiceError, match="score=cost:lower"):
            later.keep_direction(["qa"])
    first.keep_direction(["qa", "more"])
