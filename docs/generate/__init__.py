"""Write the parts of the documentation that come from the code; see `python -m docs.generate --help`."""
