"""Darkroom: find a hidden goal cell, and return to it in later episodes."""
