"""Compiled inner loops of the renderer."""
