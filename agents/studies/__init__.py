"""Studies: many runs by one command, their table of results, their tables and figures."""
