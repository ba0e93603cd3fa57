"""Compiled or hand-differentiated versions of memory operations."""
