"""Intervals for the gap of a pair that hold at every look."""
