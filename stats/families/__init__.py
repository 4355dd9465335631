"""Many pairs at once: error control, step-down, rank ranges."""
