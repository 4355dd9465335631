"""docker-compose.yml without Docker: its services as processes of this machine, with its own commands and configuration files."""
