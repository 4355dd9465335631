"""A ranking for other people's pages: badges, tables with ties, a sentence to quote, and a site of files."""
