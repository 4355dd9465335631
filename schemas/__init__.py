"""What crosses a border: events, declarations, verdict changes and reports."""
