"""The formats of harnesses: how each is recognised, and the module that reads it. A format is a row here and a module.

Paths name fields that the beginning of a document, or its first line, has: ``results.*.task_id``, with `*` for any field or element. All
paths of one alternative must be there. Rows are tried in order, so a row comes ahead of any that its files would match too.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.files.formats.outline import has_path


class Format(NamedTuple):
    """How a harness's files are recognised, and read."""

    name: str
    module: str = ""  # in `monitor.files.tools`; none for a file that is refused
    # document, lines: the paths that a document has, or the first line of a file of JSON lines; space-separated alternatives
    document: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    row: tuple[
        str, ...
    ] = ()  # the columns that a table has, or the fields of the first row of an array or of JSON lines
    attribute: str = "TOOL"  # the `Tool` in the module
    refusal: str | None = None  # why files of this kind have no results of items, and what is needed
    matches: Callable[[Any], bool] = lambda _: True  # a further condition on the beginning of a document
    tool: Any = None  # what reads the files, of a plugin

    def is_row(self, row: object) -> bool:
        """Return whether a row has the columns of this format."""
        return bool(self.row) and isinstance(row, dict) and row.keys() >= {*self.row} and self.matches(row)


def _verdicts_only(value: object) -> bool:
    """Return whether an object has nothing but booleans."""
    return isinstance(value, dict) and bool(value) and all(each in (b"true", b"false") for each in value.values())


def _only_metrics(row: object) -> bool:
    """Return whether a row of ragas is not one of a table that names its scores: ragas keeps columns of its users."""
    return isinstance(row, dict) and not {"score", "item_id", "correct", "is_correct", "acc"} & {
        str(name).lower() for name in row
    }


_NO_ITEM: Final = (
    "OpenTelemetry names no attribute for the item of an evaluation; name yours in a rankwatch.toml next to the file: [[map]] with "
    'evaluation = "*" and item_id = "your.attribute"'
)

FORMATS: Final = (
    Format("HELM", "helm", document=("*.instance_id", "*.stats.*.name.name")),
    Format("promptfoo", "promptfoo", document=("results.results.*.provider",)),
    Format("EvalPlus", "evalplus", document=("eval.*.*.base_status",)),
    Format("BigCodeBench", "evalplus", document=("eval.*.*.status", "eval.*.*.solution"), attribute="BIG"),
    Format("tau-bench", "tau_bench", document=("*.task_id", "*.reward", "*.info"), matches=lambda value: not has_path(value, "*.model")),
    Format("tau2-bench", "tau_bench", document=("info.agent_info", "info.environment_info", "info.user_info"), attribute="SECOND"),
    Format("HAL", "hal", document=("config.agent_name", "config.benchmark_name", "results")),
    Format("aider", "aider", document=("testcase", "edit_format", "tests_outcomes")),
    Format("Phoenix", "phoenix", document=("*.example_id", "*.repetition_number")),
    Format("Phoenix", "phoenix", document=("experiments.*.runs", "dataset"), attribute="EXPERIMENTS"),
    Format("Langfuse", "langfuse", document=("data.*.experimentId", "data.*.experimentItemId"), attribute="ITEMS"),
    Format("Phoenix", "phoenix", row=("example_id", "repetition_number", "latency_ms"), attribute="TABLE"),
    Format("Langfuse", "langfuse", row=("id", "timestamp", "name", "userId", "bookmarked", "input")),
    Format("Langfuse", "langfuse", row=("id", "traceId", "startTime", "type", "level", "input")),
    Format("ragas", "ragas", row=("user_input", "response"), matches=_only_metrics),
    Format("ragas", "ragas", row=("user_input", "retrieved_contexts"), matches=_only_metrics),
    Format("ragas", "ragas", row=("question", "answer", "contexts"), matches=_only_metrics),
    Format("HumanEval", "human_eval", row=("task_id", "completion", "passed")),
    Format("Terminal-Bench", "terminal_bench", document=("results.*.task_id", "results.*.is_resolved")),
    Format("Harbor", "harbor", document=("task_name", "trial_name", "config.trial_name")),
    Format("SWE-bench", "swe_bench", document=("resolved_ids", "submitted_instances"), attribute="REPORT"),
    Format("SWE-bench", "swe_bench", document=("total_instances", "resolved_instances"), attribute="REPORT"),
    Format("OpenCompass", "opencompass", document=("details.*.is_correct",)),
    Format("OpenCompass", "opencompass", document=("details.*.correct",)),
    Format("MLflow", "mlflow", document=("*.info.trace_id", "*.info.trace_metadata")),
    Format("DeepEval", "deepeval", document=("testCases.*.metricsData",)),
    Format("AlpacaEval", "alpaca_eval", document=("*.instruction", "*.generator_1", "*.generator_2")),
    Format("LiveCodeBench", "live_code_bench", document=("performances.*.model", "performances.*.question_id")),
    Format("LiveCodeBench", "live_code_bench", document=("*.question_id", "*.contest_date", "*.output_list"), attribute="SAMPLES"),
    Format("SWE-bench", "swe_bench", document=("*.patch_successfully_applied",), attribute="INSTANCES"),
    Format("SWE-bench", "swe_bench", document=("resolved", "generated"), attribute="FIRST"),
    Format("SWE-bench Pro", "swe_bench", document=("*",), matches=_verdicts_only),
    Format("OpenAI evals", "openai_evals", lines=("spec.completion_fns",)),
    Format("EvalScope", "evalscope", lines=("sample_score.score",)),
    Format("Every Eval Ever", "every_eval_ever", lines=("schema_version", "evaluation_name", "sample_id", "evaluation")),
    Format("LiveBench", "livebench", lines=("question_id", "task", "model", "score", "tstamp")),
    Format("MT-Bench", "mt_bench", lines=("question_id", "model", "judge", "score")),
    Format("MT-Bench", "mt_bench", lines=("question_id", "model_id", "score_turn1")),
    Format("BFCL", "failure_list", lines=("accuracy", "correct_count", "total_count")),
    Format(
        "MTEB",
        document=("mteb_version", "scores"),
        refusal="MTEB writes one score a task and none for its items, so no two models can be compared on the same items; "
        "rankwatch needs a score for each query, pair or text",
    ),
    Format(
        "Every Eval Ever",
        document=("evaluation_results", "schema_version"),
        refusal="the document of Every Eval Ever has one score an evaluation; give its *_samples.jsonl, which has the items",
    ),
    Format(
        "Harbor",
        document=("n_total_trials", "stats"),
        refusal="the result of a Harbor job has totals; give the folder, with result.json of each trial",
    ),
    Format(
        "OpenCompass",
        document=("*.origin_prompt", "*.prediction"),
        refusal="predictions of OpenCompass have no scores; run it with --dump-eval-details, and give its folder results",
    ),
    Format(
        "OpenCompass",
        document=("accuracy",),
        refusal="the file has an accuracy and no items; in OpenCompass, --dump-eval-details adds the details of each item",
        matches=lambda value: isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values()),
    ),
    Format(
        "EvalScope",
        document=("dataset_name", "model_name", "metrics"),
        refusal="a report of EvalScope has one score a metric; give its folder reviews, which has the items",
    ),
    Format(
        "lighteval",
        document=("config_general", "results"),
        refusal="results of lighteval have one score a task; run it with --save-details, and give the folder details",
    ),
    Format(
        "lm-evaluation-harness",
        document=("results", "configs"),
        refusal="results of lm-eval have one score a task; run it with --log_samples, and give samples_*.jsonl next to them",
    ),
    Format(
        "Langfuse",
        row=("traceId", "dataType", "stringValue", "value", "source"),
        refusal="an export of scores names no item and no model; export the traces or the observations that have them",
    ),
    Format("OpenTelemetry", lines=("resourceLogs",), refusal=_NO_ITEM),
    Format("OpenTelemetry", lines=("resourceSpans",), refusal=_NO_ITEM),
)  # fmt: skip

_HELM: Final = "per_instance_stats.json"

COMPANIONS: Final = {
    **dict.fromkeys(("run_spec.json", "scenario.json", "scenario_state.json", "instances.json", "stats.json"), _HELM),
    **dict.fromkeys(("display_predictions.json", "display_requests.json"), _HELM),
    "run_metadata.json": "results.json",
    "config.json": "result.json",
    "reward.json": "../result.json",
    "runs.csv": "*.json",
    "question.jsonl": "model_judgment",
}
"""Files that harnesses write next to their results, with what they are next to: no results of their own, and skipped without a note."""

COPIES: Final = {"eval_results_pretty.json": "eval_results.json"}
"""Files that repeat the results of another one in the same folder."""


def is_companion(path: Path) -> bool:
    """Return whether a file belongs to results next to it."""
    beside = "samples_*" if path.name.startswith("results_") else COMPANIONS.get(path.name)
    if beside is None:
        return False
    folder = path.parent.parent if beside.startswith("../") else path.parent
    return any(folder.glob(beside.removeprefix("../")))


def match(value: object, *, lines: bool, formats: Iterable[Format] = FORMATS) -> Format | None:
    """Return the format of a document, or of JSON lines, that begins with this value.

    >>> match({"spec": {"completion_fns": ["m"]}}, lines=True).name
    'OpenAI evals'
    >>> match({"benchmark": "quiz"}, lines=True)
    """
    row = value if lines else first_row(value)
    for each in formats:
        paths = each.lines if lines else each.document
        if paths and all(has_path(value, path) for path in paths) and each.matches(value):
            return each
        if each.is_row(row):
            return each
    return None


def match_row(names: Iterable[str]) -> Format | None:
    """Return the format of a table with these columns."""
    row = dict.fromkeys(names)
    return next((each for each in FORMATS if each.is_row(row)), None)


def first_row(value: object) -> object:
    """Return the first row of an array, or of a document with a column a field, as pandas writes it."""
    if isinstance(value, dict) and value and all(isinstance(column, dict) for column in list(value.values())[:-1]):
        return value
    return value[0] if isinstance(value, list) and value else None
