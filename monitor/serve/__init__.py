"""What people and machines see: HTTP, metrics, probes, the terminal."""
