"""Serve the state over HTTP: the API, the web page, metrics and probes."""
