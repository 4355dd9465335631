"""Keep the state in Redis or Valkey."""
