"""Speed of the learner on 64 CartPoles beside Stable-Baselines3 and sb3-contrib.

`none` is compared with PPO of Stable-Baselines3, and `lstm` with RecurrentPPO of sb3-contrib. For `lstm` and its peer
the velocities are hidden.

Both learners get the same environments, networks of the same sizes, and equally many steps, transitions in a minibatch
and epochs. They learn in turn, one rollout each, on one thread. Time is CPU time of acting, stepping and learning
together, so that other processes do not count.

Each pair is measured twice: with Stable-Baselines3's `DummyVecEnv`, which steps 64 Python objects one after the other,
and with all 64 poles in one NumPy step, where the environment costs next to nothing. Mean returns are those of the last
100 episodes of training. Needs `pip install sb3-contrib`. Takes about fifteen minutes; `--smoke` ends in a few seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from _peer import machine
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents import PartialUpdatePPO

#: Environments of each learner.
N = 64
#: The output has the number of steps after which the mean return first reaches this; CartPole's largest return is 500.
TARGET_RETURN = 400.0
#: Entries of CartPole's observation that are not velocities.
POSITIONS = [0, 2]


@dataclass(frozen=True, kw_only=True)
class PairConfig:
    """Settings that both learners of a pair share.

    Attributes:
        memory: Memory of our learner. The peer is PPO for "none" and RecurrentPPO for "lstm".
        n_steps: Steps of a rollout in each environment.
        batch_size: Sequences of `n_steps` steps in a minibatch of ours; the peer's has as many transitions.
        n_epochs: Passes over each rollout.
        width: Width of all hidden layers, and of the LSTM.
        total: Environment steps of each learner, all N environments together.
    """

    memory: str
    n_steps: int
    batch_size: int
    n_epochs: int
    width: int
    total: int


PAIRS = (
    PairConfig(memory="none", n_steps=32, batch_size=8, n_epochs=10, width=64, total=200_000),
    PairConfig(memory="lstm", n_steps=128, batch_size=4, n_epochs=10, width=64, total=250_000),
)


class NoVelocities(gym.ObservationWrapper):
    """CartPole without its velocities."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Box)
        self.observation_space = gym.spaces.Box(space.low[POSITIONS], space.high[POSITIONS])

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Positions only."""
        return observation[POSITIONS]


class BatchCartPole(VecEnv):
    """Gymnasium's batch of CartPoles as a `VecEnv`; episodes are reset in the step they end."""

    def __init__(self, num_envs: int, *, seed: int, velocities: bool) -> None:
        self.batch = CartPoleVectorEnv(num_envs)
        self.first_seed = seed
        self.columns = slice(None) if velocities else POSITIONS
        space = self.batch.single_observation_space
        assert isinstance(space, gym.spaces.Box)
        observation_space = gym.spaces.Box(space.low[self.columns], space.high[self.columns])
        super().__init__(num_envs, observation_space, self.batch.single_action_space)

    def reset(self) -> np.ndarray:
        """Start all episodes anew, with the first seed."""
        observations, _ = self.batch.reset(seed=self.first_seed)
        self.returns = np.zeros(self.num_envs)
        return observations[:, self.columns]

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Step all environments."""
        batch = self.batch
        observations, rewards, terminated, truncated, _ = batch.step(self.actions)
        dones = terminated | truncated
        self.returns += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(dones)
        if len(ended):
            for i in ended.tolist():
                cut = bool(truncated[i] and not terminated[i])
                infos[i] = {"terminal_observation": observations[i, self.columns], "TimeLimit.truncated": cut}
                infos[i]["episode"] = {"r": float(self.returns[i]), "l": int(self.returns[i])}  # a reward of 1 a step
            # Gymnasium's own autoreset takes place one step later; without `prev_done` it does nothing.
            batch.state[:, ended] = batch.np_random.uniform(batch.low, batch.high, (4, len(ended)))
            batch.steps[ended] = self.returns[ended] = 0
            batch.prev_done = np.zeros(self.num_envs, bool)
            observations = batch.state.T.astype(np.float32)
        return observations[:, self.columns], rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the batch."""
        self.batch.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of the batch."""
        return [getattr(self.batch, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Not needed here."""
        raise NotImplementedError

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Not needed here."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: int | Iterable[int] | None = None) -> list[bool]:
        """True for `Monitor`, whose record is in the info."""
        return [wrapper_class.__name__ == "Monitor"] * self.num_envs


def make_env(kind: str, *, velocities: bool, seed: int) -> VecEnv:
    """Make N CartPoles.

    Args:
        kind: "batch" for `BatchCartPole`, which steps all in NumPy; "dummy" for `DummyVecEnv`, one by one.
        velocities: Whether observations have the velocities.
        seed: Seed of the episodes.
    """
    if kind == "batch":
        return BatchCartPole(N, seed=seed, velocities=velocities)
    return make_vec_env("CartPole-v1", N, seed=seed, wrapper_class=None if velocities else NoVelocities)


def make_learners(pair: PairConfig, kind: str, seed: int) -> dict[str, OnPolicyAlgorithm]:
    """Peer and ours, each with its own copies of the environment."""
    shared: dict[str, Any] = {
        "n_steps": pair.n_steps,
        "n_epochs": pair.n_epochs,
        "learning_rate": 1e-3,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "clip_range": 0.2,
        "clip_range_vf": None,
        "normalize_advantage": True,
        "seed": seed,
        "device": "cpu",
    }
    layers = [pair.width] * (2 if pair.memory == "none" else 1)
    arch = {"pi": layers, "vf": layers}
    transitions = pair.batch_size * pair.n_steps
    peer_policy: dict[str, Any] = {"net_arch": arch}
    our_policy: dict[str, Any] = {"net_arch": arch, "memory": pair.memory, "previous_action_dim": 0}
    envs = [make_env(kind, velocities=pair.memory == "none", seed=seed) for _ in range(2)]
    peer: OnPolicyAlgorithm
    if pair.memory == "none":
        peer = PPO("MlpPolicy", envs[0], batch_size=transitions, policy_kwargs=peer_policy, **shared)
    else:
        peer_policy |= {"lstm_hidden_size": pair.width, "shared_lstm": True, "enable_critic_lstm": False}
        our_policy["memory_kwargs"] = {"hidden_dim": pair.width}
        peer = RecurrentPPO("MlpLstmPolicy", envs[0], batch_size=transitions, policy_kwargs=peer_policy, **shared)
    ours = PartialUpdatePPO(
        "MemoryPolicy",
        envs[1],
        batch_size=pair.batch_size,
        n_updates=1,
        bootstrap_truncated=True,
        policy_kwargs=our_policy,
        **shared,
    )
    return {"peer": peer, "ours": ours}


def compare(pair: PairConfig, kind: str, total: int, seed: int) -> dict[str, Any]:
    """Compare speeds and returns of a pair.

    The first rollout of each learner compiles and is not timed.

    Args:
        pair: The settings of both.
        kind: Kind of the environments, see `make_env`.
        total: Environment steps of each learner, rounded to whole rollouts, of which there are at least two.
        seed: Seed of both learners and their environments.

    Returns:
        Row of the output: speeds in steps per second of CPU time, ratios are ours over the peer's.
    """
    learners = make_learners(pair, kind, seed)
    rollout = N * pair.n_steps  # environment steps
    rates: dict[str, list[float]] = {name: [] for name in learners}
    reached_at: dict[str, int | None] = dict.fromkeys(learners)
    returns: dict[str, float] = {}
    for turn in range(max(2, round(total / rollout))):
        for name, model in learners.items():
            began = time.process_time()
            model.learn(rollout, reset_num_timesteps=turn == 0, log_interval=10**9)
            if turn > 0:
                rates[name].append(rollout / (time.process_time() - began))
            returns[name] = float(np.mean([episode["r"] for episode in model.ep_info_buffer or [{"r": 0.0}]]))
            if returns[name] >= TARGET_RETURN and reached_at[name] is None:
                reached_at[name] = model.num_timesteps
    for model in learners.values():
        assert model.env is not None
        model.env.close()
    ratios = np.array(rates["ours"]) / np.array(rates["peer"])
    return {
        "env": kind,
        **asdict(pair),
        "total": learners["ours"].num_timesteps,
        "rollouts_timed": len(ratios),
        "steps_per_second": {name: round(float(np.median(values))) for name, values in rates.items()},
        "ratio": round(float(np.median(ratios)), 2),
        "ratio_quartiles": [round(float(value), 2) for value in np.percentile(ratios, [25, 75])],
        "mean_return": {name: round(value, 1) for name, value in returns.items()},
        f"steps_to_{TARGET_RETURN:.0f}": reached_at,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two rollouts of one epoch each, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--steps", type=int, help="environment steps of each learner instead of the pair's own")
    parser.add_argument("--memory", choices=[pair.memory for pair in PAIRS], help="only this pair")
    parser.add_argument("--env", choices=["dummy", "batch"], help="only this kind of vector environment")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for pair in PAIRS:
        for kind in ("dummy", "batch"):
            if args.memory not in (None, pair.memory) or args.env not in (None, kind):
                continue
            total = 1 if args.smoke else pair.total if args.steps is None else args.steps
            row = compare(replace(pair, n_epochs=1) if args.smoke else pair, kind, total, args.seed)
            rows.append(row)
            if not args.json:
                speed, returns = row["steps_per_second"], row["mean_return"]
                reached_at = row[f"steps_to_{TARGET_RETURN:.0f}"]
                print(
                    f"{pair.memory:4s} {kind:5s}  ours {speed['ours']} steps/s, peer {speed['peer']}: "
                    f"{row['ratio']}x (quartiles {row['ratio_quartiles']}); return after {row['total']} steps: "
                    f"ours {returns['ours']}, peer {returns['peer']}; "
                    f"{TARGET_RETURN:.0f} reached at: ours {reached_at['ours']}, peer {reached_at['peer']}",
                    flush=True,
                )
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__}
    print(json.dumps({"rows": rows, **machine(), **versions}))


if __name__ == "__main__":
    main()
