"""Items in clusters, by weight, and with repeats."""
