"""The HTTP API: what can be asked of the state, and what can be put into the log."""
