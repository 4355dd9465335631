"""What leaves: reports, answers of the API, verdict changes, and the sentences of verdicts."""
