"""Publish verdict changes and unreadable records, at least once, with ids that never change."""
