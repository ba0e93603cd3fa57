"""Papers whose agents are more than a memory.

Each folder has the same modules: `config.py`, settings; `model.py`, the network; `learner.py`, what is learned from
which batches or rollouts; `experiment.py`, runs and their figures. Its `__init__` registers its learner, or the
environments that it predicts in, and imports nothing of it. A paper is added by a folder and a line here.
"""

from memenvs.agents.papers import emv, mtvm, sat

__all__ = ["emv", "mtvm", "sat"]
