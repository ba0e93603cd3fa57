"""Tasks in homes."""
