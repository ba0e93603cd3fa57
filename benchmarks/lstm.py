"""Gain of running an LSTM over whole sequences over a packed batch of their pieces.

Sequences have starts of episodes inside. Each turn is a rollout of 64 CartPoles and its updates, in turn with both
forms. Both learners start with the same weights. Times are CPU times on one thread, so other processes do not count.
The first turn does not count. Printed are the median and the range of the ratio over turns. Takes two minutes;
`--smoke` ends in seconds.

    python benchmarks/lstm.py [--turns 7] [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch
from _peer import machine
from stable_baselines3.common.env_util import make_vec_env

from memenvs.agents import PartialUpdatePPO
from memenvs.agents.memory.recurrent import LSTMMemory, RecurrentMemory


def make_iteration(is_small: bool) -> Callable[[], object]:
    """A call that collects a rollout and learns from it."""
    env, n_steps = make_vec_env("CartPole-v1", 64, seed=0), 16 if is_small else 128
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small learners and two turns, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    forms = {"whole": LSTMMemory._run_pieces, "pieces": RecurrentMemory._run_pieces}
    iterations = {form: make_iteration(args.smoke) for form in forms}
    seconds: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(1 + (2 if args.smoke else args.turns)):
        for form, run_pieces in forms.items():
            began = time.process_time()
            with mock.patch.object(LSTMMemory, "_run_pieces", run_pieces):
                iterations[form]()
            seconds[form].append(time.process_time() - began)
    ratios = np.array(seconds["pieces"][1:]) / np.array(seconds["whole"][1:])
    if not args.json:
        print(f"{np.median(ratios):.2f}x ({ratios.min():.2f} to {ratios.max():.2f})")
    row = {"gain": float(np.median(ratios)), "least": float(ratios.min()), "most": float(ratios.max())}
    print(json.dumps(row | machine() | {"torch": torch.__version__}))


if __name__ == "__main__":
    main()
