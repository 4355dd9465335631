"""Facts as sentences: the one package that knows English. It imports the schemas alone, and every surface uses it."""
