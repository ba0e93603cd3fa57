"""Play every environment in an installation without PyTorch.

Run it with the Python of an environment in which `memenvs` is installed without extras.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile

sys.path = [path for path in sys.path if path not in ("", os.path.dirname(os.path.abspath(__file__)))]
os.chdir(tempfile.gettempdir())  # so that the installed package is found, and not the folder

import gymnasium as gym  # noqa: E402

import memenvs  # noqa: E402
from memenvs.registry import ENVIRONMENTS  # noqa: E402

for absent in ("torch", "stable_baselines3"):
    assert importlib.util.find_spec(absent) is None, f"{absent} is installed, so this shows nothing"
for row in ENVIRONMENTS:
    env = gym.make(row.id)
    env.reset(seed=0)
    for _ in range(5):
        _, _, terminated, truncated, _ = env.step(env.unwrapped.oracle_action())
        if terminated or truncated:
            env.reset()
    env.close()
print(f"{len(ENVIRONMENTS)} environments run without PyTorch, from {os.path.dirname(memenvs.__file__)}")
