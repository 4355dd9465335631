"""Aggregate documents of Every Eval Ever (schema 0.3.0), one for each benchmark and model: intervals and ties have a place in them.

The layout is that of its data store: ``data/BENCHMARK/DEVELOPER/MODEL/UUID.json``.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, Final
from uuid import UUID

from monitor.render.board.exporters import Context, Exporter, File
from monitor.render.board.scored import Scored, confidence, method, omitted, scored_models
from monitor.render.board.site import file_name
from monitor.render.board.standings import Board
from monitor.words.counts import counted
from monitor.words.numbers import safe

_SCHEMA: Final = "0.3.0"
_UNKNOWN: Final = "unknown"


def files(boards: Iterable[Board], context: Context) -> Iterator[File]:
    """Return a document for each model that has a score."""
    nameless: set[str] = set()
    for board in boards:
        omitted(board, context)
        for each in scored_models(board):
            developer, _, name = each.name.rpartition("/")
            if not developer:
                nameless.add(each.name)
                developer = _UNKNOWN
            folder = "/".join(file_name(part) for part in (each.benchmark, developer, name or each.name))
            text = json.dumps(_document(each, developer, context), ensure_ascii=False, indent=1)
            yield f"data/{folder}/{_uuid(each)}.json", text + "\n"
    if nameless:
        context.note(
            f"{counted(len(nameless), 'model')} without a developer, such as {min(nameless)}: the data store of Every Eval Ever asks for "
            "DEVELOPER/MODEL; name the results so with NAME=PATH"
        )


def _uuid(each: Scored) -> UUID:
    """Return the same identifier for the same benchmark and model, so that a later export replaces the file."""
    digest = hashlib.sha256(json.dumps([each.benchmark, each.name]).encode("utf-8", "replace")).digest()
    return UUID(bytes=digest[:16], version=4)


def _document(each: Scored, developer: str, context: Context) -> dict[str, Any]:
    at = f"{context.at:.0f}"
    source = {
        "source_type": "evaluation_run",
        "source_organization_name": context.organization or _UNKNOWN,
        "evaluator_relationship": "other",
    }
    if context.source is not None:
        source["source_organization_url"] = context.source
    model = {
        "name": each.name,
        "id": each.name,
        "developer": developer,
        "additional_details": {"deployment_type": _UNKNOWN, "model_availability": _UNKNOWN},
    }
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": f"{each.benchmark}/{each.name}/{at}",
        "retrieved_timestamp": at,
        "source_metadata": source,
        "eval_library": {"name": "rankwatch", "version": version("rankwatch")},
        "model_info": model,
        "evaluation_results": [_result(each, context)],
    }


def _result(each: Scored, context: Context) -> dict[str, Any]:
    dataset = context.datasets.get(each.benchmark)
    data: dict[str, Any] = {"dataset_name": each.benchmark, "source_type": "other"}
    if dataset is not None:
        data = {"dataset_name": each.benchmark, "source_type": "hf_dataset", "hf_repo": dataset.id}
    unit = "percent" if context.percent else "proportion"
    return {
        "evaluation_name": each.benchmark,
        "source_data": data,
        "metric_config": {
            "evaluation_description": "mean score of the items",
            "metric_name": each.metric,
            "metric_unit": unit,
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 100.0 if context.percent else 1.0,
        },
        "score_details": {
            "score": context.scaled(each.mean),
            "details": {
                "rank": str(each.ranked.model.rank),
                "rank_low": str(each.ranked.model.rank_low),
                "rank_high": str(each.ranked.model.rank_high),
                "models": str(each.ranked.models),
                "tied_with": json.dumps([safe(name) for name in each.ranked.ties], ensure_ascii=False),
                "sentence": each.ranked.sentence,
            },
            "uncertainty": _uncertainty(each, context),
        },
    }


def _uncertainty(each: Scored, context: Context) -> dict[str, Any]:
    interval = {}
    if each.interval is not None:
        low, high = map(context.scaled, each.interval)
        interval = {
            "confidence_interval": {
                "lower": low,
                "upper": high,
                "confidence_level": confidence(each.report),
                "method": method(each.report),
            }
        }
    return {**interval, "num_samples": each.ranked.model.items}


EXPORTER: Final = Exporter("every-eval-ever", files, frozenset({"datasets", "organization", "source", "percent"}))
