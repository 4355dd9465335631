"""Wire the monitor together: log, fold, store, relay and web server."""
