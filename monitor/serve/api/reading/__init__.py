"""What read routes share: kept answers, ties, the history of verdicts, and who waits for a change."""
