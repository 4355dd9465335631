import pytest

from monitor.files.reject_limit import RejectLimit, TooManyRejected
from monitor.files.streams.read import read_files
from monitor.view.from_files.fold import fold_files, join_segments

REJECT = {
    "source": "a\x1b.jsonl",
    "line": 3,
    "field": "score",
    "found": "1.2",
    "reason": "too large",
    "benchmark": None,
    "raw": "",
}


def test_a_share_and_a_number_have_to_be_passed_both():
    limit = RejectLimit(share=0.1, at_least=20)
    limit.add(20, [REJECT] * 20)
    limit.add(190, [])
    limit.add(1, [REJECT])
    with pytest.raises(TooManyRejected) as caught:
        limit.add(1, [REJECT])
    message = str(caught.value)
    assert "22 rejected of 212 lines, more than 10% of the lines and more than 20" in message
    assert "--max-rejected" in message
    assert message.count("a\\x1b.jsonl:3: score: too large") == 1


def test_the_first_rejects_are_of_different_reasons():
    limit = RejectLimit()
    limit.add(9, [REJECT | {"reason": reason} for reason in "aabbcccdd"])
    with pytest.raises(TooManyRejected) as caught:
        limit.finish()
    assert [line[-1] for line in str(caught.value).splitlines()[1:]] == ["a", "b", "c"]


def test_nothing_accepted_at_all_is_too_little():
    limit = RejectLimit()
    limit.finish()
    limit.add(2, [REJECT, REJECT])
    with pytest.raises(TooManyRejected, match=r"no line can be read \(rejected: 2\)"):
        limit.finish()
    limit.add(2, [])
    limit.finish()


@pytest.mark.parametrize(
    ("share", "lines", "rejected", "stops"),
    [
        (0.1, 6, 4, True),
        (0.1, 6, 3, False),
        (0.1, 1, 1, True),
        (0.0, 6, 4, True),
        (0.8, 6, 4, False),
        (0.8, 6, 5, True),
        (1.0, 6, 6, True),
    ],
)
def test_more_than_half_is_too_much_however_few_lines_there_are(share, lines, rejected, stops):
    limit = RejectLimit(share)
    limit.add(lines, [REJECT] * rejected)
    if not stops:
        limit.finish()
        return
    with pytest.raises(TooManyRejected, match=r"no line can be read|of 6 lines cannot be read, more than half"):
        limit.finish()


@pytest.mark.parametrize(("options", "name"), [({"share": 1.5}, "share is 1.5"), ({"at_least": -1}, "at_least is -1")])
def test_the_limit_itself_is_checked(options, name):
    with pytest.raises(ValueError, match=name):
        RejectLimit(**options)


def test_bad_lines_alone_stop_a_command_and_are_not_kept(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"a":1}\n' * 120_000)
    limit, shown = RejectLimit(), []
    with pytest.raises(TooManyRejected, match="rejected of"):
        fold_files([path], None, limit, on_rejected=shown.append)
    assert limit.lines < 100_000
    held = [len(joined.rejects) for joined, _ in join_segments(read_files([path]))]
    assert sum(held) == 120_000
    assert max(held) < 100_000
