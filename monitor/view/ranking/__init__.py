"""The ranking of a report: standings, ties, goals and races, suites, and earlier moments."""
