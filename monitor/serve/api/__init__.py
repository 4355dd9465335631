"""The HTTP API: routes that read the state, and routes that append to the log."""
