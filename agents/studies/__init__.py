"""Studies: many runs by one command, their table of results, and the tables and figures that are printed from it."""
