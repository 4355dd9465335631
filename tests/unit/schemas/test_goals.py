"""Goals as text."""

import pytest

from schemas.records.declaration import Spec
from schemas.records.goals import Goal, named_goal, parse_goal


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("ranking", Goal("ranking")),
        ("ranking,margin=0.02", Goal("ranking", margin=0.02)),
        ("best", Goal("top")),
        ("top:3,margin=0.01", Goal("top", 3, margin=0.01)),
        ("pair:a,b", Goal("pair", models=("a", "b"))),
        ('pair:"a,b","c""d",margin=0.1', Goal("pair", models=("a,b", 'c"d'), margin=0.1)),
        ("model:org/m:free", Goal("model", models=("org/m:free",))),
        ("model:m,width=3,margin=0.5", Goal("model", 3, ("m",), 0.5)),
    ],
)
def test_a_goal_is_read_back_as_it_is_written(text, goal):
    assert parse_goal(text) == goal
    assert parse_goal(goal.text) == goal


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "use best, top:K, ranking, pair:A,B or model:M"),
        ("bests", "use best, top:K"),
        ("top:0", "a number of models K from 1"),
        ("top:3,4", "a number of models K from 1"),
        ("top:9999999999", "a number of models K from 1"),
        ("pair:a", "use pair:A,B"),
        ("pair:a,a", "use pair:A,B"),
        ("pair:a,", "use pair:A,B"),
        ("model:", "use model:M"),
        ("model:a,width=0", "a number of ranks from 1"),
        ("top:3,width=2", "only model:M takes"),
        ("best,margin=1", "from 1e-06 to below 1"),
        ("best,margin=nan", "from 1e-06 to below 1"),
        ("best,margin=1e-300", "from 1e-06 to below 1"),
        ("best,margin=x", "from 1e-06 to below 1"),
        ("best,margin=.1,margin=.2", "gives margin twice"),
        ("best,a", "goes on with 'a'"),
        ('pair:"a,b', "a quote that does not end"),
    ],
)
def test_a_wrong_goal_names_what_to_write(text, advice):
    with pytest.raises(ValueError, match=advice):
        parse_goal(text)


def test_a_flag_may_name_the_benchmark():
    assert named_goal("a=b=pair:x=y,z") == ("a=b", "=", "pair:x=y,z")
    assert named_goal("pair:x=best,z") == ("", "", "pair:x=best,z")
    assert named_goal("worst") == ("", "", "worst")


def test_a_declaration_has_one_form_of_each_goal():
    assert Spec(goal="top:1").goal == Spec(goal="best").goal == "best"
    with pytest.raises(ValueError, match="use best"):
        Spec(goal="first")
