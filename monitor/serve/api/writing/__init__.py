"""One request that writes: its body, its refusals, its answer."""
