"""The state in Redis or Valkey, and the server that the embedded default brings along."""
