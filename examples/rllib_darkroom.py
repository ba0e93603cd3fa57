"""An LSTM memory learns the 5 x 5 Darkroom in RLlib's PPO; minutes on one core.

Needs memenvs[rllib].

Each trial of four episodes with the same hidden goal is one episode of RLlib. Prints the return by episode of the
trial, of actions drawn from the policy: with memory it rises after the first episode.

    python examples/rllib_darkroom.py [--memory lstm] [--steps 400000] [--seed 0] [--smoke]
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, EPISODE_RETURN_MEAN
from ray.tune.registry import register_env

import memenvs
from memenvs.agents.integrations.rllib import MemoryRLModule
from memenvs.wrappers import PreviousActionWrapper, TrialWrapper

EPISODES, STEPS = 4, 15
"""Episodes of a trial, and steps of an episode."""
ENV = "darkroom-trials"


def make_env(config: dict[str, Any]) -> gym.Env:
    """Trials of the Darkroom, each as one episode, with the previous action as an observation."""
    assert memenvs.__version__  # a process of RLlib must have registered the ids
    env = gym.make("memenvs/Darkroom-v0", size=5, max_episode_steps=STEPS, split="all", disable_env_checker=True)
    return PreviousActionWrapper(TrialWrapper(env, trial_episodes=EPISODES))


def make_config(memory: str, seed: int, smoke: bool) -> PPOConfig:
    """PPO in this process alone."""
    trial_steps = EPISODES * STEPS
    policy = {
        "memory": memory,
        "memory_kwargs": {"hidden_dim": 64} if memory in ("gru", "lstm") else {},
        "features_extractor_kwargs": {"scaled": ["position"]},
    }
    # one step more than a trial has: PPO adds one for the value after the last step
    model_config = {"policy": policy, "max_seq_len": trial_steps + 1}
    return (
        PPOConfig()
        .environment(ENV)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4 if smoke else 32, rollout_fragment_length=trial_steps)
        .learners(num_learners=0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MemoryRLModule, model_config=model_config))
        .training(
            train_batch_size=(4 if smoke else 32) * trial_steps,
            minibatch_size=(2 if smoke else 4) * (trial_steps + 1),
            num_epochs=4,
            lr=1e-3,
            gamma=0.95,
            lambda_=0.95,
            entropy_coeff=0.01,
            vf_loss_coeff=0.02,  # returns are large beside advantages, and the network is shared
            vf_clip_param=float("inf"),
            grad_clip=0.5,
            use_kl_loss=False,
        )
        .debugging(seed=seed)
    )


def returns_by_episode(module: MemoryRLModule, trials: int, seed: int) -> np.ndarray:
    """Return of each episode of each trial, float (trials, EPISODES); actions are drawn."""
    from ray.rllib.core.columns import Columns
    from ray.rllib.utils.torch_utils import convert_to_torch_tensor

    distribution_class = module.get_exploration_action_dist_cls()
    found = np.zeros((trials, EPISODES))
    env = make_env({})
    for trial in range(trials):
        observation, info = env.reset(seed=seed if trial == 0 else None)
        state, is_over = module.get_initial_state(), False
        while not is_over:
            episode = info["episode_index"]
            batch = {
                Columns.OBS: {key: np.asarray(value)[None, None] for key, value in observation.items()},
                Columns.STATE_IN: {key: np.asarray(value)[None] for key, value in state.items()},
            }
            out = module.forward_exploration(convert_to_torch_tensor(batch))
            state = {key: value[0].numpy() for key, value in out[Columns.STATE_OUT].items()}
            action = distribution_class.from_logits(out[Columns.ACTION_DIST_INPUTS]).sample().item()
            observation, reward, terminated, truncated, info = env.step(action)
            found[trial, episode] += reward
            is_over = terminated or truncated
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--memory", default="lstm", help="a memory of memenvs.agents (default %(default)s)")
    parser.add_argument("--steps", type=int, default=400_000, help="environment steps (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="only a few steps")
    options = parser.parse_args()
    register_env(ENV, make_env)
    algorithm = make_config(options.memory, options.seed, options.smoke).build_algo()
    steps, iteration = 0, 0
    while steps < (1_000 if options.smoke else options.steps):
        result = algorithm.train()[ENV_RUNNER_RESULTS]
        steps = int(result["num_env_steps_sampled_lifetime"])
        iteration += 1
        if iteration % 5 == 0:
            print(f"{steps} steps, return of a trial {result[EPISODE_RETURN_MEAN]:.2f}", flush=True)
    returns = returns_by_episode(algorithm.get_module(), 5 if options.smoke else 200, seed=1_000)
    algorithm.stop()
    ray.shutdown()
    print("return by episode of the trial: " + " ".join(f"{value:.2f}" for value in returns.mean(0)))


if __name__ == "__main__":
    main()
