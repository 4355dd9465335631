"""Numerics that the statistics share: special functions, root search, checks of arguments."""
