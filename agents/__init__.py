"""Agents: memories, policies and learners that plug into Stable-Baselines3."""
