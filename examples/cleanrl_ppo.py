"""PPO in one file: the loop of CleanRL's `ppo.py`; a minute on one core.

It takes any id whose observations are numbers.

An agent without memory in a 4 x 4 Darkroom: it cannot remember where the reward was in earlier episodes, but learns to
stay where it is rewarded. Prints the mean return of the latest 100 episodes after each tenth of the training. The start
of a memory of your own: `trial_start` is in `infos`, see docs/integrations/cleanrl.md.

    python examples/cleanrl_ppo.py [--env-id memenvs/Darkroom-v0] [--total-timesteps 100000] [--seed 1]
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn, optim
from torch.distributions.categorical import Categorical

import memenvs

#: Settings of the environment.
SETTINGS = {"memenvs/Darkroom-v0": {"size": 4, "max_episode_steps": 16, "trial_episodes": 4}}


@dataclass
class Args:
    """Settings, as in CleanRL but for learning rate, environments and steps."""

    env_id: str = "memenvs/Darkroom-v0"
    seed: int = 1
    total_timesteps: int = 100_000
    learning_rate: float = 2.5e-3
    num_envs: int = 16
    num_steps: int = 64
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


def layer_init(layer: nn.Linear, std: float = 2**0.5) -> nn.Linear:
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    """Actor and critic, two layers of 64 units each."""

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        super().__init__()
        size = int(np.prod(envs.single_observation_space.shape))

        def network(out: int, std: float) -> nn.Sequential:
            layers = [layer_init(nn.Linear(size, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh()]
            return nn.Sequential(*layers, layer_init(nn.Linear(64, out), std))

        self.critic = network(1, 1.0)
        self.actor = network(int(envs.single_action_space.n), 0.01)

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        """Value of each observation."""
        return self.critic(x)

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Actions, drawn if not given, their log-probability, entropy and value."""
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def make_env(env_id: str) -> Callable[[], gym.Env]:
    def thunk() -> gym.Env:
        env = gym.make(env_id, **SETTINGS.get(env_id, {}))
        return gym.wrappers.RecordEpisodeStatistics(gym.wrappers.FlattenObservation(env))

    return thunk


def train(args: Args) -> list[float]:
    """Train, and return the mean return of the latest 100 episodes after each iteration."""
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    # The loop takes the observation of a reset in the step that ends an episode.
    envs = SyncVectorEnv([make_env(args.env_id)] * args.num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    agent = Agent(envs)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    num_iterations = args.total_timesteps // batch_size

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + envs.single_observation_space.shape)
    actions = torch.zeros(shape, dtype=torch.long)
    logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(4))
    latest: deque[float] = deque(maxlen=100)
    history: list[float] = []

    next_obs, _ = envs.reset(seed=args.seed)
    next_obs = torch.as_tensor(next_obs, dtype=torch.float32)
    next_done = torch.zeros(args.num_envs)
    for iteration in range(1, num_iterations + 1):
        optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / num_iterations) * args.learning_rate
        for step in range(args.num_steps):
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
            next_done = torch.as_tensor(np.logical_or(terminations, truncations), dtype=torch.float32)
            rewards[step] = torch.as_tensor(reward)
            next_obs = torch.as_tensor(next_obs, dtype=torch.float32)
            if "final_info" in infos:
                record = infos["final_info"]
                latest.extend(record["episode"]["r"][record["_episode"]].tolist())

        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(-1)
            advantages = torch.zeros_like(rewards)
            lastgaelam = torch.zeros(args.num_envs)
            for t in reversed(range(args.num_steps)):
                is_last = t == args.num_steps - 1
                nextnonterminal = 1.0 - (next_done if is_last else dones[t + 1])
                nextvalues = next_value if is_last else values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
                lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
                advantages[t] = lastgaelam
            returns = advantages + values

        b_obs = obs.reshape((-1, *envs.single_observation_space.shape))
        b_actions, b_logprobs = actions.reshape(-1), logprobs.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
        for _ in range(args.update_epochs):
            order = rng.permutation(batch_size)
            for start in range(0, batch_size, minibatch_size):
                mb = torch.as_tensor(order[start : start + minibatch_size])
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                mb_advantages = b_advantages[mb]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                clipped = torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
                pg_loss = torch.max(-mb_advantages * ratio, -mb_advantages * clipped).mean()
                v_loss = 0.5 * ((newvalue.flatten() - b_returns[mb]) ** 2).mean()
                loss = pg_loss - args.ent_coef * entropy.mean() + args.vf_coef * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        history.append(float(np.mean(latest)) if latest else float("nan"))
        if iteration % max(1, num_iterations // 10) == 0:
            print(f"global_step={iteration * batch_size}, episodic_return={history[-1]:.2f}", flush=True)
    envs.close()
    return history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for each in fields(Args):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    train(Args(**vars(parser.parse_args())))


if __name__ == "__main__":
    assert memenvs.__version__  # the import registers the ids
    main()
