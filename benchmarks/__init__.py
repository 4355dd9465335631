"""Measure speed and memory: ``python -m benchmarks`` writes the tables of ``docs/explanation/benchmarks.md``."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in every command of rankwatch
