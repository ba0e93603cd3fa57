"""Compiled inner loops of the renderer, written for vector registers."""
