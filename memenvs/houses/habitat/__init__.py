"""Homes in the package habitat-sim, an optional peer of our own simulator."""
