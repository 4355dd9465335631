"""Measure speed and memory: ``python -m benchmarks`` writes the tables of ``docs/explanation/benchmarks.md``."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in every command of rankwatch

DATA = os.environ.pop("RANKWATCH_DATA", None)
"""Folder of real events; it is no setting of the commands that are measured."""
