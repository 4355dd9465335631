"""How commands that serve start, show what they do, and end."""
