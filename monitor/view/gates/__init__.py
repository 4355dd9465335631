"""The answers of a gate: better, or not worse by more than a margin."""
