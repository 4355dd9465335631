"""The demo: a replay of the paper's MMLU-Pro top ten, rebuilt from its printed counts."""
