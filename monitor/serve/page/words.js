// The heads of columns and the names of procedures: the server writes them here, as monitor/words/columns.py declares them.

export const WORDS = {};
