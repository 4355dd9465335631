"""How fast and how large: ``python -m benchmarks`` measures, and writes the tables of ``docs/benchmarks.md``."""
