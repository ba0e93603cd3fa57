"""Homes read from ProcTHOR files."""
