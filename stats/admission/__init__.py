"""A newcomer on a board whose other models are complete: where its total lies among theirs, from a part of the items."""
