"""Weights of the agents that come with the package; see `memenvs.agents.presets.pretrained`."""
