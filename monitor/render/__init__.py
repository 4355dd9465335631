"""The report as a document: one row a pair, Markdown, a page of its own."""
