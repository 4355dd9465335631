"""Who may read, write and declare: scopes, tokens, and the check of every request."""
