"""Kinds of score: what the pairs of a board show. Each answers the questions of `Kind`, and nothing else asks which one it is."""
