"""Has a model got worse than it was: ranks of runs in their own past, and a sum of bets that alarms."""
