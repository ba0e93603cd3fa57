"""Homes generated from a seed: floor plan, furniture, placement."""
