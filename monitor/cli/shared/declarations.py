"""What the command line and each rankwatch.toml declare of benchmarks that begin."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import Declare, read_declarations
from monitor.cli.shared.options import DeclareOptions
from schemas.decode import describe_error
from schemas.events import Declaration


def make_declare(options: DeclareOptions, paths: Sequence[Path]) -> Declare:
    """Return a function that gives the declaration of a new benchmark: --items and --order, else a rankwatch.toml next to `paths`."""
    tables = read_declarations(paths)
    counts: dict[str | None, int] = {}
    for entry in options.items or ():
        name, equals, number = entry.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            stop(f"--items {entry}: give an item count from 1, as N or NAME=N", USAGE)
        counts[name if equals else None] = int(number)

    def declare(benchmark: str) -> dict[str, Any] | None:
        spec: dict[str, Any] = dict(tables.get(benchmark, ()))
        count = counts.get(benchmark, counts.get(None))
        if count is not None:
            spec["items"] = count
        if options.order is not None and options.order != _policy(spec):
            spec["order"] = options.order.value
        return {"declare": benchmark, **spec} if spec else None

    try:
        for name in tables or [next((name for name in counts if name), "benchmark")]:
            declaration = declare(name)
            if declaration is not None:
                Declaration.model_validate(declaration)
    except ValidationError as error:
        stop(describe_error(error.errors(include_url=False)[0]), USAGE)
    return declare


def _policy(spec: dict[str, Any]) -> str | None:
    declared = spec.get("order")
    return declared.get("policy") if isinstance(declared, dict) else declared
