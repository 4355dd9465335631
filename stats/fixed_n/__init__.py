"""The counts of a pair at a number of items that was planned: moments, tests, intervals, required sizes."""
