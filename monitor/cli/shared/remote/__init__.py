"""Servers that a command talks to: where boards are, the token it shows, and Kafka."""
