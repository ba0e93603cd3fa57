"""Environment steps per second from pictures: the small encoder and the large one.

64 copies of ExtObjNav in small homes play random actions, in turn with each encoder of the package at the size of image
that it was trained for. Drawing and encoding are included. Then the agent of the package acts from pictures: drawing,
encoding and decisions.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch
from _peer import Play, compare, machine, ratios_text

from memenvs.agents.experiments.play import play_trials
from memenvs.agents.presets.pretrained import load_pretrained, pretrained_config
from memenvs.agents.vec_env import make_vec_env

AGENT = "extobjnav-small-pictures"
#: Encoder -> rows and columns of its images.
IMAGE_SIZES = {"symbolic": [48, 64], "cnn": [128, 128]}
#: Probability of each action; the first, stop, as for an agent whose episodes take 50 steps.
PROBABILITIES = (0.02, 0.196, 0.196, 0.196, 0.196, 0.196)


def make_env(encoder: str, num_envs: int, threads: int) -> Any:
    """Make copies of the environment of the agent from pictures, with an encoder of the package."""
    config = pretrained_config(AGENT)
    pictures = {"encoder": encoder, "image_size": IMAGE_SIZES[encoder], "threads": threads}
    return make_vec_env(config.env, num_envs, seed=0, **{**config.env_kwargs, **pictures})


def random_play(encoder: str, num_envs: int, threads: int) -> Play:
    """Make a function that plays random actions for some seconds and counts the steps."""
    env = make_env(encoder, num_envs, threads)
    env.reset()
    actions = np.random.default_rng(0).choice(len(PROBABILITIES), size=(997, num_envs), p=PROBABILITIES)
    calls = 0

    def play(seconds: float) -> int:
        nonlocal calls
        first, began = calls, time.perf_counter()
        while time.perf_counter() - began < seconds:
            env.step(actions[calls % len(actions)])
            calls += 1
        return (calls - first) * num_envs

    return play


def agent_play(num_envs: int, threads: int) -> Play:
    """Return a function in which the agent of the package acts from pictures."""
    env = make_env("symbolic", num_envs, threads)
    policy = load_pretrained(AGENT, device="cpu")
    torch.set_num_threads(threads)
    steps = play_trials(policy, env, env.reset())

    def play(seconds: float) -> int:
        calls, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            next(steps)
            calls += 1
        return calls * num_envs

    return play


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1, help="of both the renderer and PyTorch")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one turn")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds; fills the caches of layouts")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.num_envs, args.turns, args.seconds, args.warm_up = 4, 2, 0.2, 0.2
    torch.set_num_threads(args.threads)
    small, large = (random_play(encoder, args.num_envs, args.threads) for encoder in IMAGE_SIZES)
    agent = agent_play(args.num_envs, args.threads)
    for play in (small, large, agent):
        play(args.warm_up)
    encoders = compare(small, large, args.turns, args.seconds)
    acting = compare(agent, large, args.turns, args.seconds)
    for title, row in (("random actions", encoders), ("decisions of an agent", acting)):
        print(
            f"symbolic encoder, {title}: {row['ours']:.0f} steps/s ({row['cpu_ours']:.0f} per CPU second) against "
            f"{row['theirs']:.0f} of random actions with the large encoder: {ratios_text(row)}"
        )
    result = {"num_envs": args.num_envs, "threads": args.threads, "turns": args.turns, "torch": torch.__version__}
    print(json.dumps({**result, "encoders": encoders, "agent": acting, **machine()}))


if __name__ == "__main__":
    main()
