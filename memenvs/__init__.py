"""Environments that measure the memory of embodied agents.

`import memenvs` registers every id with Gymnasium.
"""

from memenvs.registry import ENVIRONMENTS, register_all

__all__ = ["ENVIRONMENTS", "__version__"]

__version__ = "0.1.0"

register_all()
