"""What commands that run the monitor share: their logs, and how they end."""

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any

import structlog
from structlog.typing import Processor

from monitor.cli.shared.errors import file_error, stop


def log_to_terminal() -> None:
    """Log readable lines on standard error."""
    _configure_logs(logging.ERROR)


def log_json() -> None:
    """Log JSON lines on standard error."""
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.dict_tracebacks,
    ]
    as_json = structlog.processors.JSONRenderer()
    _configure_logs(logging.WARNING, processors=[*processors, as_json])
    # Libraries log through the standard library: their lines get the same form.
    (handler,) = logging.getLogger().handlers
    formatter = structlog.stdlib.ProcessorFormatter
    handler.setFormatter(
        formatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *processors],
            processors=[formatter.remove_processors_meta, as_json],
        )
    )


def _configure_logs(level: int, **configuration: Any) -> None:  # noqa: ANN401 - what structlog takes
    logging.basicConfig(level=level, stream=sys.stderr, format="%(name)s: %(message)s", force=True)
    # These log an error and raise it too: the command reports it once, in its own words.
    for name in ("faust", "mode", "monitor.log"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        **configuration,
    )


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`; an error from outside ends the command with its message, Ctrl-C with exit 130."""
    try:
        from monitor.service.process import (
            startup_errors,  # late, for commands that only log: it loads the whole application
        )

        try:
            asyncio.run(work)
        except BrokenPipeError:
            raise  # the reader of the output has gone: no error to report
        except startup_errors() as error:
            stop(file_error(error) if isinstance(error, OSError) else str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        work.close()  # Ctrl-C may come before it has begun
