"""Plain Stable-Baselines3 in a task that needs a memory; about 6 minutes of one core.

In Darkroom-Gap a robot that finds a goal should go straight to it in the next episodes, though blank steps lie between.
PPO sees the present observation alone. RecurrentPPO of sb3-contrib has an LSTM, and `TrialWrapper` makes one episode of
the ten episodes in a room, so that its memory lasts over them. Both then play trials of the test set. Prints the return
of a trial.

With the default settings it printed PPO 38.7 and RecurrentPPO 54.4, over ten episodes. A rule without a memory has 5.9
in an episode and an agent that remembers the goal 17.8, so neither has learned to remember in so few steps. Agents of
this package have: `memenvs study needs_memory --show`.

    python examples/sb3.py [--steps 200000] [--seed 0] [--smoke]
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import memenvs  # noqa: F401  (registers the ids)
from memenvs.agents import evaluate
from memenvs.certificates.test_sets import find_test_set
from memenvs.wrappers import TrialWrapper

ID = "memenvs/Darkroom-Gap-v0"
SETTINGS = {"n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000, help="steps that each agent learns from (default 200000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--smoke", action="store_true", help="learn for seconds, to see that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)  # faster for networks of this size
    steps, trials = (512, 4) if options.smoke else (options.steps, 50)

    plain = make_vec_env(ID, 16, seed=options.seed)
    memoryless = PPO("MultiInputPolicy", plain, n_steps=128, batch_size=256, seed=options.seed, **SETTINGS)
    memoryless.learn(steps, progress_bar=not options.smoke)
    results = {"PPO": evaluate(ID, memoryless, trials=trials)}

    whole = make_vec_env(lambda: TrialWrapper(gym.make(ID)), 16, seed=options.seed)
    recurrent = RecurrentPPO("MultiInputLstmPolicy", whole, n_steps=128, batch_size=256, seed=options.seed, **SETTINGS)
    recurrent.learn(steps, progress_bar=not options.smoke)
    env = TrialWrapper(gym.make(ID, **find_test_set(ID).settings))
    results["RecurrentPPO"] = evaluate(env, recurrent, trials=trials)

    print("| agent | return of a trial |\n| --- | --- |")
    for name, played in results.items():
        print(f"| {name} | {played.curve('return').mean.sum():.1f} |")


if __name__ == "__main__":
    main()
