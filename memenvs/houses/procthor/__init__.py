"""Houses read from ProcTHOR files."""
