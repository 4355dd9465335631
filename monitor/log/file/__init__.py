"""Events in one file that one process writes and reads."""
