"""Records of the log: events, battles, runs, declarations, operations; read and written in one place each."""
