"""Gain of each kernel of the memories over plain PyTorch, end to end.

Each row runs one iteration of a documented command, collecting and learning, in turn with the kernel and with the plain
form that its test compares it with. Both learners start with the same weights. Times are CPU times on one thread, so
other processes do not count. The first turn, with compilation, does not count.
Printed are the median and the range of the ratio over turns. Takes five minutes; `--smoke` ends in one.

    python benchmarks/kernels.py [--smoke] [--json]

A kernel stays if it makes a documented command twice as fast, or a decision 1.5 times.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from _peer import machine
from stable_baselines3.common.env_util import make_vec_env as make_sb3_vec_env

from memenvs.agents import DQNConfig, EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.memory.frmqn import FRMQNMemory
from memenvs.agents.memory.recurrent import LSTMMemory, RecurrentMemory
from memenvs.agents.presets import find_preset

#: A call that runs one iteration.
Run = Callable[[], object]


@dataclass(frozen=True)
class Kernel:
    """A kernel and the command that it is measured in.

    Attributes:
        name: Name of the kernel.
        command: The documented command.
        make: Makes a learner; returns its iteration. The argument requests a small one.
        plain: Arguments of `mock.patch.object` with which the plain form runs: owner, name and replacement.
    """

    name: str
    command: str
    make: Callable[[bool], Run]
    plain: tuple[Any, str, Any]


def frmqn_iteration(is_small: bool) -> Run:
    """Sixteen episodes of Coverage and fifty updates of FRMQN, as the laptop preset does."""
    frmqn = [("policy.memory", "frmqn"), ("policy.memory_kwargs", {"dim": 64, "capacity": 200, "bptt": 128})]
    config = with_overrides(find_preset("coverage-laptop"), frmqn)
    assert isinstance(config.learner, DQNConfig)
    # a replay that one iteration fills, so that every iteration learns
    learner = replace(config.learner, capacity=config.n_envs)
    if is_small:
        learner = replace(learner, updates_per_collect=2, episode_steps=20)
    kwargs = {**config.env_kwargs, "max_episode_steps": learner.episode_steps}
    env = make_vec_env(config.env, config.n_envs, **kwargs)
    model = EpisodeDQN("MemoryPolicy", env, learner, policy_kwargs=config.policy, seed=0, device="cpu")
    steps = config.n_envs * learner.episode_steps
    return lambda: model.learn(steps, reset_num_timesteps=False, log_interval=10**9)


def lstm_iteration(is_small: bool) -> Run:
    """A rollout of 64 CartPoles and the updates of an LSTM, with starts within sequences."""
    env, n_steps = make_sb3_vec_env("CartPole-v1", 64, seed=0), 16 if is_small else 128
    policy = {
        "memory": "lstm",
        "memory_kwargs": {"hidden_dim": 64},
        "net_arch": {"pi": [64], "vf": [64]},
        "previous_action_dim": 0,
    }
    model = PartialUpdatePPO(
        "MemoryPolicy", env, policy_kwargs=policy, n_steps=n_steps, n_updates=1, batch_size=4,
        n_epochs=1 if is_small else 10, learning_rate=1e-3, bootstrap_truncated=True, seed=0, device="cpu",
    )  # fmt: skip
    return lambda: model.learn(64 * n_steps, reset_num_timesteps=False, log_interval=10**9)


KERNELS = (
    Kernel(
        "frmqn_cpu: a sequence of FRMQN as one function with compiled reads",
        "memenvs study scene_memory --methods frmqn",
        frmqn_iteration,
        (FRMQNMemory, "_run_kernel", FRMQNMemory._run_steps),
    ),
    Kernel(
        "LSTM gate steps: sequences with starts inside are not cut",
        "python benchmarks/learner.py --memory lstm",
        lstm_iteration,
        (LSTMMemory, "_run_pieces", RecurrentMemory._run_pieces),
    ),
)


def in_turn(kernel: Kernel, turns: int, is_small: bool) -> dict[str, Any]:
    """Seconds with and without the kernel, and their ratio over turns."""
    owner, name, plain = kernel.plain
    runs = {"kernel": kernel.make(is_small), "plain": kernel.make(is_small)}
    seconds: dict[str, list[float]] = {kind: [] for kind in runs}

    for turn in range(turns + 1):
        for kind, run in runs.items():
            began = time.process_time()
            if kind == "plain":
                with mock.patch.object(owner, name, plain):
                    run()
            else:
                run()
            if turn > 0:
                seconds[kind].append(time.process_time() - began)
    ratio = np.array(seconds["plain"]) / np.array(seconds["kernel"])
    return {
        "kernel": kernel.name,
        "command": kernel.command,
        "seconds": {kind: round(float(np.median(values)), 3) for kind, values in seconds.items()},
        "gain": round(float(np.median(ratio)), 2),
        "range": [round(float(ratio.min()), 2), round(float(ratio.max()), 2)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small learners and two turns, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the first episodes only fill the replay
    rows = []
    for kernel in KERNELS:
        row = in_turn(kernel, 2 if args.smoke else args.turns, args.smoke)
        rows.append(row)
        if not args.json:
            print(
                f"{row['gain']:5.2f}x {row['range']}  {row['kernel']}  ({row['command']}; {row['seconds']} s)",
                flush=True,
            )
    print(json.dumps({"rows": rows, **machine(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
