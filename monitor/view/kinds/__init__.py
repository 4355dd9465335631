"""Kinds of score: what the pairs of a board show. `kind_of` alone chooses one."""
