"""What `gate` and `plan` read from their command lines."""
