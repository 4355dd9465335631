"""The published sizes of well-known benchmarks."""

import pytest

from schemas.records.catalogue import CATALOGUE, published


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("gsm8k", 1_319),
        ("MMLU-Pro", 12_032),
        ("mmlu", 14_042),
        ("ARC-Challenge", 1_172),
        ("arc_c", 1_172),
        ("cruxeval-o", 800),
        ("HumanEval+", 164),
        ("swe-bench-verified", 500),
        ("leaderboard_ifeval", 541),
    ],
)
def test_a_benchmark_is_known_by_its_names(name, items):
    assert published(name).items == items


def test_no_name_means_two_benchmarks_and_every_size_has_a_source():
    names = [name for entry in CATALOGUE for name in (entry.name, *entry.aliases)]
    assert all(
        published(entry.name) is entry and published(alias) is entry for entry in CATALOGUE for alias in entry.aliases
    )
    assert len({*names}) == len(names) >= 60
    assert all(entry.items > 0 and entry.split and entry.source.startswith("https://") for entry in CATALOGUE)
    for name in ("quiz", "math", "my-gsm8k", "", "mmlu_anatomy"):
        assert published(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "truthfulqa",
        "mbpp",
        "mbpp+",
        "asdiv",
        "swe-bench",
        "mt_bench",
        "coqa",
        "multirc",
        "squad",
        "copa",
        "mnli",
        "sst2",
        "mrpc",
    ],
)
def test_a_name_of_two_sizes_is_not_known(name):
    assert published(name) is None
