"""Put an agent of another library on the board; one to four minutes of one core.

An agent is a function from N observations and its state to N actions and the next state. Two are here, both in
Darkroom-Gap: RecurrentPPO of sb3-contrib, and PPO with a transformer in one file (`ppo_memory.py`). Each plays the test
set; its actions are replayed, and written with their scores into a folder of the board.

    python examples/board.py recurrent-ppo|ppo-memory --author NAME --link ADDRESS [--board board] [--seed 0] [--smoke]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
import ppo_memory
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from torch.nn import functional as F

import memenvs  # noqa: F401  (registers the ids)
from memenvs.board.entry import hash_settings, make_entry, write_entry
from memenvs.board.replay import Agent, record_actions, replay
from memenvs.wrappers import TrialWrapper

ID = "memenvs/Darkroom-Gap-v0"


def recurrent_ppo(seed: int, steps: int) -> tuple[Agent, dict]:
    """An LSTM whose episodes are whole trials, and the settings of its training."""
    settings = {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01}
    env = make_vec_env(lambda: TrialWrapper(gym.make(ID)), 16, seed=seed)
    model = RecurrentPPO("MultiInputLstmPolicy", env, seed=seed, **settings).learn(steps)

    def agent(observation, state, trial_start, episode_start):
        # as TrialWrapper: it also observes where an episode starts
        observation = {**observation, "episode_start": episode_start.astype(np.int64)}
        return model.predict(observation, state, trial_start)

    return agent, {"library": "sb3-contrib", "algorithm": "RecurrentPPO", "envs": 16, "steps": steps, **settings}


def transformer_ppo(seed: int, steps: int) -> tuple[Agent, dict]:
    """A transformer that attends to all steps of the trial, and its settings."""
    args = ppo_memory.Args(gap=20, episode_steps=40, total_timesteps=steps)
    settings = {key: value for key, value in vars(args).items() if key != "seed"}
    args.seed = seed
    model = ppo_memory.train(args)

    @torch.no_grad()
    def agent(observation, state, trial_start, episode_start):
        count = len(trial_start)
        if trial_start.all():  # all trials have the same length
            state = None, torch.zeros(count, dtype=torch.long), torch.zeros(count, 5)
        caches, step, previous = state
        going_on = torch.as_tensor(~episode_start)
        step, previous = step * going_on, previous * going_on[:, None]
        position, reward = (torch.as_tensor(observation[key]) for key in ("position", "previous_reward"))
        inputs = torch.cat([position / (args.size - 1), reward, previous], 1)
        attends = torch.ones(count, 1, 1 + (0 if caches is None else caches[0][0].shape[2]), dtype=torch.bool)
        policy, _, caches = model(inputs[:, None], step[:, None], attends, caches)
        actions = policy.sample()[:, 0]
        return actions.numpy(), (caches, step + 1, F.one_hot(actions, 5).float())

    return agent, {"file": "ppo_memory.py", **settings}


AGENTS = {"recurrent-ppo": ("LSTM", recurrent_ppo, 120_000), "ppo-memory": ("transformer", transformer_ppo, 400_000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", choices=AGENTS)
    parser.add_argument("--author", required=True, help="who trained it")
    parser.add_argument("--link", required=True, help="https address of its code")
    parser.add_argument("--board", type=Path, default=Path("board"), help="folder of the board (default board)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--smoke", action="store_true", help="learn for seconds, to see that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)  # faster for networks of this size

    memory, train, steps = AGENTS[options.agent]
    agent, settings = train(options.seed, 6400 if options.smoke else steps)
    run = replay(ID, record_actions(ID, agent), seed=options.seed)
    about = {"memory": memory, "settings": hash_settings(settings), "author": options.author, "link": options.link}
    entry = make_entry(options.agent, ID, [run], **about)
    print(f"{write_entry(options.board, entry)}: {entry.mean:.2f} +- {entry.stderr:.2f}")


if __name__ == "__main__":
    main()
