"""Steps per second of tasks in homes, as a multiple of one Miniworld FourRooms.

64 environments with colour, depth and class of 64 x 48 and FourRooms play random actions through their Gymnasium
interface, alternately in one run: first one FourRooms in this process, then as many processes with one as we have
threads. Ratios are by the clock and by CPU time of all threads and processes. The chance of ExtObjNav's
stop is 1/50, as for an agent whose episodes take 50 steps. Resets are included in the time and not counted as steps. A
turn is long enough to contain changes of the home: one every 4096 steps in ExtObjNav, one an episode in the others.

Needs `pip install memenvs[miniworld]` and a display; without one: `xvfb-run -a python benchmarks/env_steps.py --env
Search-v0`. Takes about five minutes; `--smoke` ends in a few seconds.
"""

from __future__ import annotations

import argparse
import json
import time

import gymnasium as gym
import numpy as np
from _peer import Miniworlds, Play, compare, machine, make_miniworld, ratios_text

import memenvs  # noqa: F401  (registers its ids)

#: Name -> the setting that selects the observation, and the probability of each action (ExtObjNav's first is stop).
ENVS = {
    "ExtObjNav-v0": ("sensors", (0.02, 0.196, 0.196, 0.196, 0.196, 0.196)),
    "Roaming-v0": ("modalities", (1 / 3, 1 / 3, 1 / 3)),
    "Coverage-v0": ("modalities", (1 / 3, 1 / 3, 1 / 3)),
    "Search-v0": ("modalities", (1 / 3, 1 / 3, 1 / 3)),
}


def make_ours(name: str, num_envs: int, threads: int, observed: tuple[str, ...]) -> tuple[Play, dict[str, float]]:
    """Make a vector environment, and a function that plays it.

    Args:
        name: Name of the environment, a key of `ENVS`.
        num_envs: Number of environments.
        threads: Rendering threads.
        observed: Names of observations, such as "rgb".

    Returns:
        Function that plays for some seconds and returns the number of steps.
        Seconds of set-up with the first reset, and of the first step, which compiles.
    """
    setting, probabilities = ENVS[name]
    began = time.perf_counter()
    kwargs = {"image_size": (48, 64), setting: observed}
    env = gym.make_vec(f"memenvs/{name}", num_envs=num_envs, threads=threads, copy=False, **kwargs)
    env.reset(seed=0)
    first_reset = time.perf_counter() - began
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    env.step(rng.choice(len(probabilities), size=num_envs, p=probabilities))
    first_step = time.perf_counter() - began

    # A prime number of rows: when they are repeated, they meet other steps of the episodes.
    actions = rng.choice(len(probabilities), size=(997, num_envs), p=probabilities)

    def play(seconds: float) -> int:
        steps, calls, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            _, _, _, _, info = env.step(actions[calls % len(actions)])
            calls += 1
            steps += int((info["num_steps"] > 0).sum())  # an environment that resets makes no step
        return steps

    return play, {"first_reset_seconds": first_reset, "first_step_seconds": first_step}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", choices=tuple(ENVS), default="ExtObjNav-v0")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--observed", default="rgb,depth,semantic", help="images and, except in ExtObjNav, pose")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=12.0, help="length of one turn")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds; fills the caches of layouts")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.num_envs, args.turns, args.seconds, args.warm_up = 4, 2, 0.2, 0.2
    theirs = make_miniworld()  # first, because a display may be missing
    ours, start = make_ours(args.env, args.num_envs, args.threads, tuple(args.observed.split(",")))
    ours(args.warm_up)
    theirs(min(args.seconds, 2.0))
    row = compare(ours, theirs, args.turns, args.seconds)
    print(f"{args.env} {row['ours']:.0f} steps/s against {row['theirs']:.0f} of Miniworld: {ratios_text(row)}")
    processes = Miniworlds(args.threads)
    processes.play(min(args.seconds, 2.0))
    equal = compare(ours, processes.play, args.turns, args.seconds, lambda: time.process_time() + processes.cpu)
    processes.close()
    print(
        f"{args.env} {equal['ours']:.0f} steps/s with {args.threads} threads against {equal['theirs']:.0f} of as many "
        f"processes: {ratios_text(equal)}"
    )
    result = {
        "env": args.env,
        "num_envs": args.num_envs,
        "threads": args.threads,
        "observed": args.observed,
        "turns": args.turns,
        **row,
        "equal_cores": equal,
        **start,
        **machine(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
