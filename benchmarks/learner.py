"""The learner beside Stable-Baselines3, sb3-contrib and CleanRL, on 64 CartPoles.

`none` is compared with PPO of Stable-Baselines3, `lstm` with RecurrentPPO of sb3-contrib, and `trxl` with CleanRL's
single file `ppo_trxl.py`. For the last two the velocities are hidden.

Both learners of a pair get the same environments, networks of the same sizes, and equally many steps, transitions in a
minibatch and epochs. RecurrentPPO with one LSTM trains it by the policy's gradient alone, and its forget gates begin
with a bias of 0. Ours has both settings in that pair. Each seed is a turn: first the peer learns, then ours,
on one thread. Time is CPU time of acting, stepping and learning together, from the second rollout on. The 64 poles are
one NumPy step, so that the environment costs next to nothing. The mean return is that of the last 1,000 episodes of
training.

    python benchmarks/learner.py [--memory none lstm trxl] [--seeds 0 1 2] [--cleanrl ppo_trxl.py] [--json] [--smoke]

Needs `pip install sb3-contrib`; for `trxl` also `pip install tyro einops tensorboard minigrid` and the path of
CleanRL's file, without which the pair is left out. Takes about an hour; `--smoke` ends in seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from _peer import machine
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents import PartialUpdatePPO

#: Environments of each learner.
N = 64
#: The output has when the mean of the last 100 returns first reaches this; CartPole's largest return is 500.
TARGET_RETURN = 400.0
#: Entries of CartPole's observation that are not velocities.
POSITIONS = [0, 2]


@dataclass(frozen=True, kw_only=True)
class PairConfig:
    """Settings that both learners of a pair share.

    Attributes:
        memory: Memory of our learner. It names the pair.
        n_steps: Steps of a rollout in each environment.
        batch_size: Sequences of `n_steps` steps in a minibatch of ours; the peer's has as many transitions.
        n_epochs: Passes over each rollout.
        width: Width of all hidden layers and of the memory; `trxl` has two layers of four heads that read `n_steps` / 2
            steps.
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
    PairConfig(memory="trxl", n_steps=128, batch_size=4, n_epochs=3, width=64, total=250_000),
)


class CartPoles(VecEnv):
    """Gymnasium's batch of CartPoles as a `VecEnv` that keeps a record of the learner.

    Episodes are reset in the step that ends them.

    Args:
        seed: Seed of the episodes.
        velocities: Whether observations have the velocities.
        warm_up: Steps after which the clock starts.

    Attributes:
        ended: Return of each episode.
        reached: Environment steps and CPU seconds when the mean of the last 100 returns first was `TARGET_RETURN`.
    """

    def __init__(self, *, seed: int, velocities: bool, warm_up: int) -> None:
        self.batch = CartPoleVectorEnv(N)
        self.first_seed, self.warm_up = seed, warm_up
        self.ended: list[float] = []
        self.steps, self.began = 0, time.process_time()
        self.reached: tuple[int, float] | None = None
        self.columns = slice(None) if velocities else POSITIONS
        space = self.batch.single_observation_space
        assert isinstance(space, gym.spaces.Box)
        observation_space = gym.spaces.Box(space.low[self.columns], space.high[self.columns])
        super().__init__(N, observation_space, self.batch.single_action_space)

    def reset(self) -> np.ndarray:
        """Start all episodes anew, with the first seed."""
        observations, _ = self.batch.reset(seed=self.first_seed)
        self.returns = np.zeros(N)
        return observations[:, self.columns]

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Step all environments."""
        batch = self.batch
        if self.steps == self.warm_up:
            self.began = time.process_time()
        observations, rewards, terminated, truncated, _ = batch.step(self.actions)
        dones = terminated | truncated
        self.returns += rewards
        self.steps += N
        infos: list[dict[str, Any]] = [{} for _ in range(N)]
        ended = np.flatnonzero(dones)
        if len(ended):
            for i in ended.tolist():
                cut = bool(truncated[i] and not terminated[i])
                infos[i] = {"terminal_observation": observations[i, self.columns], "TimeLimit.truncated": cut}
                infos[i]["episode"] = {"r": float(self.returns[i]), "l": int(self.returns[i])}  # a reward of 1 a step
                self.ended.append(float(self.returns[i]))
            if self.reached is None and np.mean(self.ended[-100:]) >= TARGET_RETURN:
                self.reached = self.steps, time.process_time() - self.began
            # Gymnasium's own autoreset takes place one step later; without `prev_done` it does nothing.
            batch.state[:, ended] = batch.np_random.uniform(batch.low, batch.high, (4, len(ended)))
            batch.steps[ended] = self.returns[ended] = 0
            batch.prev_done = np.zeros(N, bool)
            observations = batch.state.T.astype(np.float32)
        return observations[:, self.columns], rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the batch."""
        self.batch.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of the batch."""
        return [getattr(self.batch, attr_name)] * N

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Not needed here."""
        raise NotImplementedError

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Not needed here."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: int | Iterable[int] | None = None) -> list[bool]:
        """No wrapper."""
        return [False] * N

    def row(self) -> dict[str, Any]:
        """Steps per CPU second, mean return of the last 1,000 episodes, and `reached`."""
        return {
            "steps_per_second": (self.steps - self.warm_up) / (time.process_time() - self.began),
            "mean_return": float(np.mean(self.ended[-1000:])),
            "reached": self.reached,
        }


class GymnasiumCartPoles:
    """`CartPoles` with what CleanRL's file uses of Gymnasium's vector environments."""

    def __init__(self, env: CartPoles) -> None:
        self.env = env
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.envs = [SimpleNamespace(spec=gym.spec("CartPole-v1"))]

    def reset(self, *, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes; the seed is that of `CartPoles`."""
        return self.env.reset(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; all ends are terminations, since the file makes no difference."""
        observations, rewards, dones, infos = self.env.step(actions.reshape(N))
        assert isinstance(observations, np.ndarray)
        return observations, rewards, dones, np.zeros(N, bool), {"final_info": infos}

    def close(self) -> None:
        """Close the batch."""
        self.env.close()


#: Settings that all learners share.
LEARNING: dict[str, Any] = {
    "learning_rate": 1e-3,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "clip_range": 0.2,
    "clip_range_vf": None,
    "normalize_advantage": True,
}
LAYERS, HEADS = 2, 4


def learn_ours(pair: PairConfig, env: CartPoles, seed: int) -> None:
    """Train our learner."""
    sizes: dict[str, dict[str, Any]] = {
        "none": {},
        "lstm": {"hidden_dim": pair.width, "forget_bias": 0.0},
        "trxl": {
            "layers": LAYERS,
            "heads": HEADS,
            "dim": pair.width,
            "mlp_dim": pair.width,
            "memory_length": pair.n_steps // 2,
            "dropout": 0.0,
        },
    }
    model = PartialUpdatePPO(
        "MemoryPolicy",
        env,
        batch_size=pair.batch_size,
        n_updates=1,
        bootstrap_truncated=pair.memory != "trxl",  # CleanRL does not
        policy_kwargs={
            "net_arch": net_arch(pair),
            "memory": pair.memory,
            "memory_kwargs": sizes[pair.memory],
            "previous_action_dim": 0,
            "value_gradient": pair.memory != "lstm",
        },
        n_steps=pair.n_steps,
        n_epochs=pair.n_epochs,
        seed=seed,
        device="cpu",
        **LEARNING,
    )
    model.learn(pair.total, log_interval=10**9)


def learn_stable_baselines(pair: PairConfig, env: CartPoles, seed: int) -> None:
    """Train PPO of Stable-Baselines3, or RecurrentPPO of sb3-contrib."""
    shared = {
        "batch_size": pair.batch_size * pair.n_steps,
        "n_steps": pair.n_steps,
        "n_epochs": pair.n_epochs,
        "seed": seed,
        "device": "cpu",
        **LEARNING,
    }
    kwargs: dict[str, Any] = {"net_arch": net_arch(pair)}
    if pair.memory == "none":
        PPO("MlpPolicy", env, policy_kwargs=kwargs, **shared).learn(pair.total, log_interval=10**9)
    else:
        kwargs |= {"lstm_hidden_size": pair.width, "shared_lstm": True, "enable_critic_lstm": False}
        RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=kwargs, **shared).learn(pair.total, log_interval=10**9)


def learn_cleanrl(pair: PairConfig, env: CartPoles, seed: int, file: str) -> None:
    """Run CleanRL's file with our environment in place of its own."""
    options = {
        "seed": seed,
        "env-id": "CartPole-v1",
        "total-timesteps": pair.total,
        "init-lr": LEARNING["learning_rate"],
        "final-lr": LEARNING["learning_rate"],
        "num-envs": N,
        "num-steps": pair.n_steps,
        "gamma": LEARNING["gamma"],
        "gae-lambda": LEARNING["gae_lambda"],
        "num-minibatches": N // pair.batch_size,
        "update-epochs": pair.n_epochs,
        "clip-coef": LEARNING["clip_range"],
        "init-ent-coef": LEARNING["ent_coef"],
        "final-ent-coef": LEARNING["ent_coef"],
        "vf-coef": LEARNING["vf_coef"],
        "max-grad-norm": LEARNING["max_grad_norm"],
        "trxl-num-layers": LAYERS,
        "trxl-num-heads": HEADS,
        "trxl-dim": pair.width,
        "trxl-memory-length": pair.n_steps // 2,
    }
    arguments = [file, "--no-cuda", "--norm-adv", "--no-clip-vloss"]
    arguments += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    # Environments that the file imports and that are not used here.
    sys.modules.update({"memory_gym": ModuleType("memory_gym"), "pom_env": ModuleType("pom_env")})
    vars(sys.modules["pom_env"])["PoMEnv"] = None
    with (
        mock.patch("gymnasium.vector.SyncVectorEnv", lambda _: GymnasiumCartPoles(env)),
        mock.patch.object(sys, "argv", arguments),
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        runpy.run_path(file, run_name="__main__")


def net_arch(pair: PairConfig) -> dict[str, list[int]]:
    """Hidden layers of policy and value."""
    layers = [pair.width] * (2 if pair.memory == "none" else 1)
    return {"pi": layers, "vf": layers}


def compare(pair: PairConfig, seed: int, cleanrl: str | None) -> dict[str, dict[str, Any]]:
    """Train the peer, then ours, and return the row of each."""
    rows = {}
    for name in ("peer", "ours"):
        env = CartPoles(seed=seed, velocities=pair.memory == "none", warm_up=N * pair.n_steps)
        if name == "ours":
            learn_ours(pair, env, seed)
        elif pair.memory == "trxl":
            assert cleanrl is not None
            learn_cleanrl(pair, env, seed, cleanrl)
        else:
            learn_stable_baselines(pair, env, seed)
        rows[name] = env.row()
        env.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [pair.memory for pair in PAIRS]
    parser.add_argument("--memory", choices=names, nargs="+", default=names, help="(default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--cleanrl", metavar="FILE", help="CleanRL's ppo_trxl.py")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--smoke", action="store_true", help="two rollouts of one epoch, to see that it runs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    for pair in PAIRS:
        if pair.memory not in args.memory or (pair.memory == "trxl" and args.cleanrl is None):
            continue
        if args.smoke:
            pair = replace(pair, n_epochs=1, total=2 * N * pair.n_steps)
        rows = []
        for seed in args.seeds:
            rows.append(compare(pair, seed, args.cleanrl and os.path.abspath(args.cleanrl)))
            if not args.json:
                print(pair.memory, f"seed {seed}:", rows[-1], flush=True)
        ratios = [row["ours"]["steps_per_second"] / row["peer"]["steps_per_second"] for row in rows]
        result[pair.memory] = {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
        result[pair.memory] |= {"seeds": dict(zip(args.seeds, rows, strict=True))}
        if not args.json:
            print(
                f"{pair.memory}: {statistics.median(ratios):.1f}x ({min(ratios):.1f} to {max(ratios):.1f})", flush=True
            )
    print(
        json.dumps({"memories": result, **machine(), "torch": torch.__version__, "sb3": stable_baselines3.__version__})
    )


if __name__ == "__main__":
    main()
