"""How fast and how large: ``python -m benchmarks`` measures, and writes the tables of ``docs/explanation/benchmarks.md``."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as every command of rankwatch has it
