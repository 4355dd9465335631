"""The demo: the paper's MMLU-Pro top ten, rebuilt from its printed counts and replayed."""
