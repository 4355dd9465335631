"""Battles: strengths of models, and the agreement of judges."""
