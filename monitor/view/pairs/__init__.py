"""The pairs of a report: what they count by, their columns, rows, families, intervals and e-processes."""
