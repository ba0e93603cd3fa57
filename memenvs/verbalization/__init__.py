"""Episodic memory verbalization: the days of a household robot, and questions about them."""
