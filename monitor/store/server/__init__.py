"""Connect to a Redis or Valkey server, or run one."""
