"""Prometheus metrics: the catalogue, its documentation page, and what a scrape returns."""
