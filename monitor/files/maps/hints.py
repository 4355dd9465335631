"""What names hint at: evidence for which column is which field of an event, never proof. The values decide where they can."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from monitor.files.tables.columns import USUAL, names_answer

EXACT: Final = 3  # the least rank of a usual name

HINTED: Final = 2  # the rank of a name that ends with a word of the field; 1 if it has one elsewhere


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCORE_NAMES: Final = (
    *USUAL["score"],
    "pass@1",
    "passed",
    "pass",
    "success",
    "resolved",
    "is_resolved",
    "reward",
    "value",
    "result",
    "accuracy",
)
_ITEM_NAMES: Final = (*USUAL["item_id"], "task_id", "instance_id", "qid", "name", "key")
_MODEL_NAMES: Final = (*USUAL["model"], "system", "agent", "llm", "engine", "provider", "generator")
_EXACT: Final[Mapping[str, tuple[str, ...]]] = {
    **USUAL,
    "score": _SCORE_NAMES,
    "item_id": _ITEM_NAMES,
    "model": _MODEL_NAMES,
}
_LOWER: Final = _set(  # words in names of scores where less is better
    """
error errors loss wer cer perplexity mae mse rmse distance wrong incorrect fail failed failure failures mistake mistakes
hallucinated hallucination hallucinations violation violations
"""
)

_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "model": _set(
        """
model models system sys llm lm agent engine provider generator bot assistant checkpoint candidate contestant submission solver
team participant player competitor
"""
    ),
    "item_id": _set(
        """
item id idx index uid uuid question qid q doc document sample task instance problem case testcase prompt example query utterance
nr no number row key input test
"""
    ),
    "score": _set(
        """
score scores correct acc accuracy em match pass passed success solved resolved reward grade graded points rating mark marks f1
bleu rouge chrf ok verdict judgment judgement correctness outcome status precision recall similarity relevance relevancy
faithfulness factuality groundedness helpfulness harmlessness coherence consistency fluency adequacy toxicity quality meteor
comet bertscore levenshtein
"""
    )
    | _LOWER,
    "repeat": _set(
        """
repeat trial attempt run seed sample rep iteration epoch replicate turn round
"""
    ),
    "benchmark": _set(
        """
benchmark dataset eval evaluation suite
"""
    ),
}
_NO_MODEL: Final = _set(  # words that make a name with `model` in it another field: `model_output`
    """
output outputs answer answers response responses prediction predictions text completion reply input prompt version size type
args kwargs config params parameters family revision url path temperature message messages reasoning thought
"""
)

_NO_CONTESTANT: Final = _set(
    """
assessment annotator category difficulty evaluator extraction filter format grader judge key lang language level method metric
mode phase rater role scorer setting split stage status style template type variant worker
"""
)
"""Words in names of what else an item may have several values of; no column of such a name is a model."""

_COUNTS: Final = _set(  # words in names of numbers that are no scores
    """
ms s sec secs second seconds time timestamp date latency duration tokens token cost price count length len size seed threshold
cutoff weight max min total temperature year version top std stderr ci n num tstamp ts nano ns confidence prob probability logprob
"""
)
_SUMMARIES: Final = _set(  # names of columns that sum up others
    """
avg average mean median overall total sum all macro micro std stderr max min rank best
"""
)
_TOTALS: Final = _set(
    "summary summaries aggregate aggregates aggregated statistics stats metrics totals overall usage tokens"
)
_ITEMS: Final = _set("questions items cases examples instances problems positions queries samples tasks")
_OF_ASSESSORS: Final = _set(
    "annotator evaluator grader judge rater scorer worker metric category difficulty lang language filter"
)
_FAMILIES: Final = (  # how words in names of models begin
    "gpt", "claude", "llama", "gemini", "gemma", "mistral", "mixtral", "qwen", "deepseek", "grok", "sonnet", "haiku", "opus", "kimi",
)  # fmt: skip

_TRAILING: Final = frozenset({"name", "id", "label", "title", "slug", "key"})
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBERED: Final = re.compile(r"(.*?)(\d+)")
_RANGE: Final = re.compile(r"(?:^|[^\d.])(?:0|1)\s*(?:-|\u2013|to|\.\.)\s*(\d+)(?!\d)|/\s*(\d+)(?!\d)|out of (\d+)")

VERDICTS: Final = {  # words for a verdict, with their scores
    "pass": 1, "passed": 1, "correct": 1, "resolved": 1, "solved": 1, "success": 1, "ok": 1,
    "fail": 0, "failed": 0, "incorrect": 0, "wrong": 0, "unresolved": 0, "unsolved": 0, "failure": 0, "error": 0, "timeout": 0,
}  # fmt: skip


def words(label: str) -> list[str]:
    """Return the words of a name.

    >>> words("modelName"), words("Score (0-10)"), words("exact_match/score")
    (['model', 'name'], ['score', '0', '10'], ['exact', 'match', 'score'])
    """
    return [word for word in re.split(r"[\W_]+", _CAMEL.sub("_", label).lower()) if word]


def rank(field: str, label: str) -> float:
    """Return how strongly a name hints at a field: `EXACT` and more for usual names, the first of them the most; 0 if it does not.

    >>> rank("model", "model") > rank("model", "llm") > rank("model", "Model under test") > rank("model", "model_output")
    True
    """
    last = label.rpartition(".")[2].lower()
    usual = _EXACT.get(field, ())
    if (exact := next((name for name in usual if name in {label.lower(), last}), None)) is not None:
        return EXACT + 1 - (usual.index(exact) + 1) / (len(usual) + 1)
    parts = words(label)
    while len(parts) > 1 and (parts[-1] in _TRAILING or parts[-1].isdecimal()):
        parts.pop()
    wanted = _WORDS.get(field, frozenset())
    if not parts or (field == "model" and not _NO_MODEL.isdisjoint(parts)):
        return 0
    if field == "score" and not _COUNTS.isdisjoint(parts):
        return 0
    if field == "item_id" and wanted.isdisjoint(parts):
        return float(is_number(label))
    return HINTED if parts[-1] in wanted else 1 if not wanted.isdisjoint(parts) else 0


def is_condition(label: str) -> bool:
    """Return whether a name is that of a judge, a metric, a prompt style or the like: a difference that is no model."""
    return not _NO_CONTESTANT.isdisjoint(words(label)) or rank("cluster", label) >= EXACT


def is_setting(label: str) -> bool:
    """Return whether a name means a setting of one system: a style, a mode, a method.

    >>> is_setting("prompt_style"), is_setting("inference_type"), is_setting("judge"), is_setting("notes")
    (True, True, False, False)
    """
    return is_condition(label) and _OF_ASSESSORS.isdisjoint(words(label)) and rank("cluster", label) < EXACT


def holds_totals(name: str) -> bool:
    """Return whether a name on a path means a summary of items: `summary`, `metrics`."""
    return not _TOTALS.isdisjoint(words(name))


def counts_items(label: str) -> bool:
    """Return whether a name means a number of items: its record is a total then.

    >>> counts_items("total_questions"), counts_items("samples_evaluated"), counts_items("num_samples"), counts_items("tests")
    (True, True, False, False)
    """
    parts = set(words(label))
    if _ITEMS.isdisjoint(parts):
        return False
    return not {"evaluated", "attempted"}.isdisjoint(parts) or (
        "samples" not in parts and not {"n", "num", "total", "count", "test"}.isdisjoint(parts)
    )


def is_count(label: str) -> bool:
    """Return whether a name is that of a number that is no score: a time, a price, a threshold."""
    return not _COUNTS.isdisjoint(words(label))


def is_answer(label: str) -> bool:
    """Return whether a name means an answer, or its key.

    >>> is_answer("predicted_label"), is_answer("label_correct")
    (True, False)
    """
    return names_answer(label) and rank("score", label) < HINTED


def is_number(label: str) -> bool:
    """Return whether a name ends like that of an id or a number: `seg_id`, `row_index`."""
    return words(label)[-1:] in (["id"], ["idx"], ["index"], ["nr"], ["no"], ["number"], ["uid"], ["uuid"])


def is_summary(name: str) -> bool:
    """Return whether a name is that of a column or a row that sums up others: `Total`, `avg`."""
    return words(name)[-1:] != [] and words(name)[-1] in _SUMMARIES


def family(names: Sequence[str]) -> bool:
    """Return whether names are those of one score of several models: the same word of a score, with something else before or after it.

    >>> family(["gpt_score", "llama_score"]), family(["acc", "acc_norm"]), family(["f1_score", "bleu_score"])
    (True, False, False)
    """
    parts = [words(name) for name in names]
    shared = set.intersection(*map(set, parts)) if parts else set()
    own = [[word for word in each if word not in shared] for each in parts]
    metrics = not all(_WORDS["score"].isdisjoint(each) for each in own)
    return len(names) > 1 and not shared.isdisjoint(_WORDS["score"]) and all(own) and not metrics


def lower_is_better(label: str) -> bool:
    """Return whether less is better of a score of this name."""
    return not _LOWER.isdisjoint(words(label))


def is_model(name: object) -> bool:
    """Return whether a name contains the name of a well-known model.

    >>> is_model("meta-llama/Llama-3.1-8B"), is_model("q17")
    (True, False)
    """
    return isinstance(name, str) and any(word.startswith(_FAMILIES) for word in re.split(r"[\W_]+", name.lower()))


def may_be_data(name: str) -> bool:
    """Return whether a name may be that of a model or an item: it is no field of an event, no count, and no summary."""
    parts = words(name)
    if len(parts) > 1 and is_number(name):
        return False
    fields = any(
        rank(field, name) >= HINTED for field in ("model", "cluster", "repeat", "epoch", "benchmark") if len(parts) == 1
    )
    return not (
        fields
        or is_count(name)
        or is_summary(name)
        or is_answer(name)
        or (len(parts) == 1 and parts[0] in {*_TRAILING, *_ITEM_NAMES})
    )


def are_metrics(names: Sequence[str]) -> bool:
    """Return whether most names are those of scores, so that they are neither models nor items."""
    return sum(rank("score", name) > 0 for name in names) * 2 > len(names)


def are_repeats(names: Sequence[str]) -> bool:
    """Return whether names number repeats: `run1`, `run2`.

    >>> are_repeats(["run_1", "run_2"]), are_repeats(["q1", "q2"])
    (True, False)
    """
    return numbered(names) and all(
        any(re.sub(r"\d+$", "", word) in _WORDS["repeat"] for word in words(name)) for name in names
    )


def numbered(values: Sequence[object]) -> bool:
    """Return whether values are numbers, or one text with a number each, as ids of items are.

    >>> numbered(["HumanEval/0", "HumanEval/1"]), numbered([3, 7]), numbered(["gpt-4", "llama-3"])
    (True, True, False)
    """
    matches = [_NUMBERED.fullmatch(str(value)) for value in values]
    return bool(matches) and len({match and match[1] for match in matches}) == 1 and matches[0] is not None


def names_columns(names: Sequence[str]) -> bool:
    """Return whether the names of an object are those of the columns of a table: one of a score, and one of an item or a model."""
    exact = [{field for field in ("score", "item_id", "model") if rank(field, name) >= HINTED} for name in names]
    return any("score" in each for each in exact) and any(each & {"item_id", "model"} for each in exact)


def largest(label: str) -> int | None:
    """Return the largest score that a name states.

    >>> largest("Score (0-10)"), largest("rating/5"), largest("f1")
    (10, 5, None)
    """
    match = _RANGE.search(label.lower())
    return int(next(group for group in match.groups() if group)) if match else None
