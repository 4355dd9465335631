"""Publish verdict changes and rejected records, at least once, with ids that never change."""
