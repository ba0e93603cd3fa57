"""Agents of papers that are more than a memory, one folder each."""
