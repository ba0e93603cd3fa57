"""Speed of training of Stable-Baselines3's PPO with two environments, by what it observes.

Playing and learning together, in steps a second of CPU time on one thread, so that other processes do not count.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from _peer import machine
from stable_baselines3 import PPO

from memenvs.agents import make_vec_env

#: What is observed -> settings of ExtObjNav.
SETTINGS: dict[str, dict[str, Any]] = {
    "256 x 256 (default)": {},
    "48 x 64": {"image_size": (48, 64)},
    "symbolic": {"obs_mode": "symbolic"},
}


def steps_per_second(settings: dict[str, Any], seconds: float) -> float:
    """Train for about this many seconds of CPU time, after one rollout that is not measured."""
    env = make_vec_env("memenvs/ExtObjNav-v0", 2, seed=0, threads=1, **settings)
    model = PPO("MultiInputPolicy", env, n_steps=64, seed=0, device="cpu").learn(128)
    first, began = model.num_timesteps, time.process_time()
    while time.process_time() - began < seconds:
        model.learn(128, reset_num_timesteps=False)
    env.close()
    return (model.num_timesteps - first) / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time, each")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {"symbolic": SETTINGS["symbolic"]} if args.smoke else SETTINGS
    speeds = {
        name: steps_per_second(settings, 0.1 if args.smoke else args.seconds) for name, settings in chosen.items()
    }
    for name, speed in speeds.items():
        print(f"ExtObjNav-v0, {name}: {speed:.3g} steps a CPU second")
    print(json.dumps({"steps_per_second": speeds, "torch": torch.__version__, **machine()}))


if __name__ == "__main__":
    main()
