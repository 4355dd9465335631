"""Verdict changes on their way out: from the outbox to whoever wants them, at least once, each with an id that never changes."""
