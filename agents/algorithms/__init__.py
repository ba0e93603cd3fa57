"""Learners: partial-update PPO, episode Q-learning, supervised learning."""
