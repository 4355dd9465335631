"""Planted bugs: patches of the protocol that the simulation must find. The first line of each says what it breaks."""

from pathlib import Path

PATCHES = sorted(Path(__file__).parent.glob("*.patch"))
ROOT = Path(__file__).parents[3]
FOUND = Path(__file__).with_name("found.csv")
"""How many faults and seconds of processor time the last whole run took to find each."""
