"""Deep Q-learning with a memory, from a replay of whole episodes: the off-policy counterpart of `PartialUpdatePPO`."""

from __future__ import annotations

import math
import time
import warnings
from os import PathLike
from typing import Any, Self

import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.utils import safe_mean
from torch import Tensor
from torch.nn.functional import huber_loss

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.off_policy import OffPolicyMemoryAlgorithm
from memenvs.agents.algorithms.rollout_buffer import Observations
from memenvs.agents.memory import Memory
from memenvs.agents.policies.memory_policy import MemoryPolicy

STATISTICS = ("loss", "q", "grad_norm")
"""What an update reports, as logged."""


class EpisodeDQN(OffPolicyMemoryAlgorithm):
    """Double DQN with n-step targets and a memory, as a Stable-Baselines3 algorithm.

    The actor's outputs are Q / `temperature`, and the policy is their softmax, drawn from when evaluated too, so that everything that acts, evaluates
    and saves is that of `PartialUpdatePPO`. The critic gets no gradient and stays as it was made.

    An iteration of `learn` lets every environment play one episode into the replay and makes `updates_per_collect` updates. Until the replay is
    full, actions are uniform and nothing is learned; so too after `load`, unless `load_replay_buffer` brings the episodes back. What the memory
    holds is one episode: it is emptied at the start of each, also where a trial has several. Environments begin an iteration with a new trial;
    those whose episode ends first wait for the others (their steps are counted in `num_timesteps` but not stored).

    Updates look at whole episodes, at a few decisions of each (`Memory.decide`). With a frozen features extractor (`freeze_features`) the replay
    holds its embeddings and no observation. With `single_steps` in the policy a decision sees its own step only.

    Args:
        policy: "MemoryPolicy" or a subclass of it.
        env: Any Gymnasium environment or `VecEnv` with `Discrete` actions; `memenvs.agents.make_vec_env` makes fast ones.
        config: Settings; None for the defaults.
        policy_kwargs: Settings of the policy.
        tensorboard_log: Folder for TensorBoard; None for none.
        verbose: 0 silent, 1 prints training logs.
        seed: Of everything random. No global generator is seeded.
        device: "auto", "cpu", "cuda".
        processes: This process alone (None), or a launch of one.
        **overrides: Fields of the config to change.

    Attributes:
        filled_at: Environment steps after which the replay was full; -1 before.

    Raises:
        ValueError: A setting is not allowed, episodes are longer than the replay has room for, or there are several processes.
        TypeError: A setting does not exist.

    Source:
        SMT, section on training; double DQN: van Hasselt et al., 2016; n-step targets and soft updates as in our specification.
    """

    rng_names = ("replay",)

    def __init__(
        self,
        policy: str | type[MemoryPolicy],
        env: GymEnv | str | None,
        config: DQNConfig | None = None,
        *,
        policy_kwargs: dict[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        processes: Processes | None = None,
        _init_setup_model: bool = True,
        **overrides: Any,
    ) -> None:
        self._configure(config, overrides, processes)
        if self.processes.count > 1:
            raise ValueError(f"EpisodeDQN learns in one process, got a launch of {self.processes.count}")
        super().__init__(
            policy,
            env,
            self.config.learning_rate,
            policy_kwargs=policy_kwargs,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            support_multi_env=True,
            seed=seed,
            supported_action_spaces=(spaces.Discrete,),
        )
        if _init_setup_model:
            self._setup_model()

    # ------------------------------------------------------------------ set-up

    def _setup_model(self) -> None:
        super()._setup_model()
        target = self._new_policy(0).requires_grad_(False)
        assert isinstance(target, MemoryPolicy)
        self.target = target
        self.target.set_training_mode(False)
        self._follow(1.0)
        named = self.policy.named_parameters()
        self._trained = [each for name, each in named if each.requires_grad and not name.startswith("critic.")]
        # A memory that computes all steps in any case is asked once for the decisions and for what follows them. For one that computes each
        # decision by itself that would be as many again with gradients, which nobody needs.
        self._shares_steps = type(self.policy.memory).decide is Memory.decide and not self.policy.single_steps

    def load_features(self, path: str | PathLike[str]) -> None:
        """Starts with the encoder of another learner; see `memenvs.agents.algorithms.checkpoint.load_features`."""
        super().load_features(path)
        self._follow(1.0)

    # ------------------------------------------------------------------ learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "EpisodeDQN",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Collects and learns until as many environment steps are over; see Stable-Baselines3's `BaseAlgorithm.learn`.

        Raises:
            ValueError: A reward, output, loss or gradient is not finite, or an episode has no end; the message says when.
        """
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        if self.filled_at >= 0 and not self.replay.is_full:
            self.filled_at = -1  # a loaded learner without its episodes
        if reset_num_timesteps and self.filled_at >= 0:
            self.filled_at = 0
        callback.on_training_start(locals(), globals())
        assert self.env is not None
        iteration = 0
        while self.num_timesteps < total_timesteps and self._collect(self.env, callback):
            iteration += 1
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            if self.filled_at >= 0:
                self.train()
            if iteration % log_interval == 0:
                self.dump_logs(iteration)
        callback.on_training_end()
        if self.filled_at < 0 and self.num_timesteps >= total_timesteps:
            needed = -(-self.config.capacity // self.n_envs) * self.n_envs * self.config.episode_steps
            warnings.warn(
                f"nothing was learned: {total_timesteps} steps have not filled the replay, which has {self.replay.count} of {self.config.capacity} "
                f"episodes and needs up to {needed} steps; ask for more steps or lower capacity",
                stacklevel=2,
            )
        return self

    def train(self) -> None:
        """Makes `updates_per_collect` updates.

        Raises:
            ValueError: Loss or gradient are not finite; the message says when.
        """
        begun = time.perf_counter()
        self.policy.set_training_mode(True)
        stats = torch.stack([self._update() for _ in range(self.config.updates_per_collect)]).mean(0)
        self.policy.set_training_mode(False)
        for key, value in zip(STATISTICS, stats.tolist(), strict=True):
            self.logger.record(f"train/{key}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("time/updates_per_second", self.config.updates_per_collect / (time.perf_counter() - begun))

    def _update(self) -> Tensor:
        """One optimiser step on decisions of some episodes.

        Returns:
            float32, one of each of `STATISTICS`.

        Raises:
            ValueError: One of them is not finite; the weights are left as they were.
        """
        config, replay = self.config, self.replay
        drawn = replay.draw(config.batch_size, config.decisions, self.rngs["replay"])
        rewards, then, discounts = replay.returns(
            drawn.rows, drawn.at, config.n_step, config.gamma, config.lowest_reward
        )
        if self._shares_steps:
            now, after = self.q_values(self.policy, drawn.rows, torch.cat([drawn.at, then], 1)).chunk(2, 1)
        else:
            now = self.q_values(self.policy, drawn.rows, drawn.at)
        with torch.no_grad():
            if not self._shares_steps:
                after = self.q_values(self.policy, drawn.rows, then)
            best = after.argmax(-1, keepdim=True)
            value = self.q_values(self.target, drawn.rows, then).gather(-1, best).squeeze(-1)
            targets = config.reward_scale * rewards + discounts * value
        taken = now.gather(-1, replay.actions(drawn.rows, drawn.at)[..., None]).squeeze(-1)
        share = drawn.given / drawn.given.sum()
        loss = (share * huber_loss(taken, targets, reduction="none")).sum()
        self.policy.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        stats = torch.stack([loss.detach(), (share * taken.detach()).sum(), norm])
        if not bool(torch.isfinite(stats).all()):
            named = zip(STATISTICS, stats.tolist(), strict=True)
            broken = ", ".join(f"{name} {value}" for name, value in named if not math.isfinite(value))
            raise ValueError(
                f"loss and gradient must be finite, got {broken} in update {self._n_updates + 1}, after {self.num_timesteps} "
                "environment steps; lower learning_rate or max_grad_norm, or look at the rewards"
            )
        self.policy.optimizer.step()
        self._follow(config.target_rate)
        self._n_updates += 1
        return stats

    def q_values(self, policy: MemoryPolicy, rows: Tensor, at: Tensor) -> Tensor:
        """Q values at some steps of episodes in the replay, each with the memory of all steps before it.

        Args:
            policy: `policy` or `target`.
            rows: int64, (B,); rows of the replay.
            at: int64, (B, P); steps, 0 ... T.

        Returns:
            float32, (B, P, actions); -inf where there is no such action.
        """
        batch, asked = at.shape
        is_start = torch.zeros(
            batch, 1 if policy.single_steps else int(at.max()) + 1, dtype=torch.bool, device=self.device
        )
        is_start[:, 0] = True
        steps = self.replay.read(
            rows, at if policy.single_steps else torch.arange(is_start.shape[1], device=self.device).expand(batch, -1)
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            if steps.embeddings is not None:
                features = steps.embeddings.to(torch.float32)
            else:
                assert steps.observations is not None
                features = policy.features(_flat(steps.observations)).unflatten(0, steps.previous.shape)
            if policy.single_steps:  # every step is a sequence of its own
                features, previous = features.flatten(0, 1)[:, None], steps.previous.flatten()[:, None]
                where = {key: value.flatten(0, 1)[:, None] for key, value in steps.where.items()}
                is_start = is_start.expand(-1, asked).flatten()[:, None]
                latent = policy.memory(policy.memory_inputs(features, previous, is_start, is_start, where))[0]
                latent = latent.unflatten(0, (batch, asked)).squeeze(2)
            else:
                latent = policy.memory.decide(
                    policy.memory_inputs(features, steps.previous, is_start, is_start, steps.where), at
                )
        latent = policy.mlp_extractor.forward_actor(latent.to(policy.actor.linear.weight.dtype))
        values = self.config.temperature * policy.actor.linear(latent)
        allowed = policy.action_mask(steps.observations)
        if allowed is None:
            return values
        if not policy.single_steps:
            allowed = allowed[torch.arange(batch, device=self.device)[:, None], at]
        return values.masked_fill(~allowed, -torch.inf)

    @torch.no_grad()
    def _follow(self, rate: float) -> None:
        """Takes a share of the network over into the target network."""
        for own, other in zip(self.target.parameters(), self.policy.parameters(), strict=True):
            if other.requires_grad or rate == 1.0:
                own.lerp_(other, rate)
        for kept, new in zip(self.target.buffers(), self.policy.buffers(), strict=True):
            kept.copy_(new)

    def dump_logs(self, iteration: int = 0) -> None:
        """Writes a log."""
        seconds = max((time.time_ns() - self.start_time) / 1e9, 1e-9)
        for key in ("r", "l"):
            if self.ep_info_buffer:
                name = {"r": "rollout/ep_rew_mean", "l": "rollout/ep_len_mean"}[key]
                self.logger.record(name, safe_mean([info[key] for info in self.ep_info_buffer]))
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        self.logger.record("rollout/epsilon", self.epsilon)
        self.logger.record("time/iterations", iteration, exclude="tensorboard")
        self.logger.record("time/fps", int((self.num_timesteps - self._num_timesteps_at_start) / seconds))
        self.logger.record("time/time_elapsed", int(seconds), exclude="tensorboard")
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(step=self.num_timesteps)

    def saved_tensors(self) -> dict[str, Tensor]:
        """The weights of the target network."""
        return {f"target.{name}": value for name, value in self.target.state_dict().items()}


def _flat(observations: Observations) -> Observations:
    """Observations of B sequences of P steps, (B, P, ...), as (B * P, ...)."""
    if isinstance(observations, dict):
        return {key: value.flatten(0, 1) for key, value in observations.items()}
    return observations.flatten(0, 1)
