"""`memenvs-agents warmup`."""

from __future__ import annotations

import argparse
import time
from typing import Any


def warmup(options: argparse.Namespace, extra_arguments: list[str]) -> Any:
    """Compile what learners need beyond the environments, by a few steps of learning."""
    from memenvs.agents import PartialUpdatePPO, make_vec_env
    from memenvs.compilation import COMPILATION

    start = time.perf_counter()
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0)
    sizes: dict[str, Any] = {"n_steps": 8, "n_updates": 2, "batch_size": 2, "n_epochs": 1}
    # With the advantages of PPO and the memory of FRMQN this runs every compiled function of the agents.
    policy = {"memory": "frmqn"}
    PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, device="cpu", seed=0, **sizes).learn(16)
    env.close()
    result = {"compiled": COMPILATION.num_functions, "seconds": round(time.perf_counter() - start, 1)}
    if not options.json:
        print(f"compiled {result['compiled']} functions in {result['seconds']} s; the others were compiled before")
    return result
