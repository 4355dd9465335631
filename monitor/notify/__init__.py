"""Notify people of verdict changes: few notifications, each with the answer in its text."""
