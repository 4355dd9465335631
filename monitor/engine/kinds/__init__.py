"""Kinds of benchmarks that the fold treats in a way of their own."""
