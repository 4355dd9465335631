"""Check the surroundings of the service; each finding has what to fix."""
