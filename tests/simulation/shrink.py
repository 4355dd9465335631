"""The fewest actions of a run that still fail."""


def shrink(actions, fails):
    """Return a part of `actions` that fails, and of which no single action can be left out (delta debugging)."""
    actions, parts = list(actions), 2
    while len(actions) >= 1:
        size = max(1, len(actions) // parts)
        for start in range(0, len(actions), size):
            rest = actions[:start] + actions[start + size :]
            if fails(rest):
                actions, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(actions), 2 * parts)
    return actions
