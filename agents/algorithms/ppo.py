"""Partial-update PPO: proximal policy optimisation that learns several times within one long rollout (ReLIC)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.on_policy import OnPolicyMemoryAlgorithm
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.rollout_buffer import Sequences
from memenvs.agents.memory import State
from memenvs.agents.policies.distributions import ActionDistribution
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION, MemoryPolicy

__all__ = ["STATISTICS", "PPOConfig", "PartialUpdatePPO"]

PREFILL_STEPS = 1024
"""Steps of each sequence that go through the network at once where no gradient is asked for."""
#: What an optimiser step reports, as logged.
STATISTICS = ("policy_gradient_loss", "value_loss", "entropy", "clip_fraction", "grad_norm")


class PartialUpdatePPO(OnPolicyMemoryAlgorithm):
    """PPO with a memory, K updates in a rollout, as a Stable-Baselines3 algorithm.

    After every c = T / K steps the policy learns from the steps since the last update, with the whole rollout so far as its context; then the
    completed episodes are shuffled and the memory is refilled with the new weights. The last update of a rollout learns from all T
    steps. The rollout then ends: the next one starts with a new trial and an empty memory.

    Args:
        policy: "MemoryPolicy" or a subclass of it.
        env: Any Gymnasium environment or `VecEnv`; `memenvs.agents.make_vec_env` makes fast ones.
        config: Settings; None for the defaults.
        policy_kwargs: Settings of the policy.
        tensorboard_log: Folder for TensorBoard; None for none.
        verbose: 0 silent, 1 prints training logs.
        seed: Of everything random. No global generator is seeded.
        device: "auto", "cpu", "cuda".
        processes: Those that learn together, `memenvs.agents.algorithms.distributed.launched()`, each with as many environments of its own in `env`; None: this
            one alone. Together they make the optimiser steps of one process with all their environments and the same `batch_size`,
            but each takes its share of a batch from its own environments.
        **overrides: Fields of the config to change.

    Raises:
        ValueError: A setting is not allowed, or `batch_size` cannot be split evenly over the processes.
        TypeError: A setting does not exist.

    Source:
        ReLIC, sections on partial updates and Sink-KV; order of operations as in its release.
    """

    def __init__(
        self,
        policy: str | type[MemoryPolicy],
        env: GymEnv | str | None,
        config: PPOConfig | None = None,
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
        self._batch_size = self.processes.split_evenly("batch_size", self.config.batch_size)
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,  # type: ignore[arg-type]
            learning_rate=self.config.learning_rate,
            n_steps=self.config.n_steps,
            gamma=self.config.gamma,
            gae_lambda=self.config.gae_lambda,
            ent_coef=self.config.ent_coef,
            vf_coef=self.config.vf_coef,
            max_grad_norm=self.config.max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            tensorboard_log=tensorboard_log if self.processes.is_first else None,
            policy_kwargs=policy_kwargs,
            verbose=verbose if self.processes.is_first else 0,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
            supported_action_spaces=(spaces.Box, spaces.Discrete, spaces.MultiDiscrete),
        )

    def train(self) -> None:
        """One update: partial on the last segment, or full at the end of the rollout.

        Raises:
            ValueError: Loss or gradient are not finite; the message says when.
        """
        config, buffer, processes = self.config, self.rollout_buffer, self.processes
        is_last = buffer.pos == config.n_steps
        full = is_last and config.full_update
        begin, end = (0 if full else self._segment_begin), buffer.pos
        new = processes.count * self.n_envs * config.segment
        learning_rate = config.learning_rate_at(self.num_timesteps - new, self._total_timesteps)
        for group in self.policy.optimizer.param_groups:
            group["lr"] = learning_rate
        across = config.credit_across_episodes
        last_start = self._trial_start if across else self._episode_start
        advantages, returns = buffer.advantages(
            begin, end, self._last_values, last_start, config.gamma, config.gae_lambda, across
        )
        if config.normalize_advantage:
            mean, std = processes.moments(advantages)
            advantages = (advantages - mean) / (std + 1e-8)
        self.policy.set_training_mode(True)
        rows = self._all_rows()
        acted = (buffer.ordered(store, rows, begin, end) for store in (buffer.log_probs, buffer.values))
        targets = torch.stack([*acted, advantages, returns], -1)  # (N, c, 4), so that a batch takes them in one go
        stats = torch.stack([self._optimise(batch, begin, end, targets) for batch in self._batches()]).mean(0)
        self.policy.set_training_mode(False)
        self._n_updates += 1
        self.logger.record("train/learning_rate", learning_rate)
        for key, value in zip(STATISTICS, stats.tolist(), strict=True):
            self.logger.record(f"train/{key}", value)
        kind = "full" if full else "partial"
        divergences = processes.gather(self._approximate_kl(begin, end))
        self.logger.record(f"train/approx_kl_{kind}", sum(divergences) / len(divergences))
        _, spread = processes.moments(returns)
        _, unexplained = processes.moments(returns - targets[..., 1])
        explained = 1.0 - (unexplained / spread).square()
        self.logger.record("train/explained_variance", float(explained) if float(spread) > 0 else float("nan"))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if not is_last:
            if config.shuffle_episodes:
                buffer.shuffle_episodes(end, self.rngs["shuffle"])
            self._refresh(end, last_of_rollout=config.full_update and end + config.segment == config.n_steps)
        elif self._carries_on:
            self._refresh(end, last_of_rollout=False)
        if self._log_due is not None:
            self._write_logs(self._log_due)
            self._log_due = None

    def dump_logs(self, iteration: int = 0) -> None:
        """Asks for a log; `learn` asks before the update and it is written after it, with what the update measured."""
        self._log_due = iteration

    def _write_logs(self, iteration: int) -> None:
        """Writes a log, with the latest episodes of every process."""
        own = self.ep_info_buffer, self.ep_success_buffer
        everyones = zip(*self.processes.gather(own), strict=True)
        self.ep_info_buffer, self.ep_success_buffer = (deque(chain(*buffers)) for buffers in everyones)
        super().dump_logs(iteration)
        self.ep_info_buffer, self.ep_success_buffer = own

    def _all_rows(self) -> Tensor:
        return torch.arange(self.n_envs, device=self.device)

    def _batches(self) -> Iterator[Tensor]:
        """Environments of each optimiser step, int64 (B,), over all epochs: this process's share of it."""
        size = min(self._batch_size, self.n_envs)
        for _ in range(self.config.n_epochs):
            order = torch.as_tensor(self.rngs["order"].permutation(self.n_envs), device=self.device)
            yield from order.split(size)

    def _optimise(self, rows: Tensor, begin: int, end: int, targets: Tensor) -> Tensor:
        """One optimiser step on the loss positions `begin` to `end` of some environments of each process.

        Args:
            rows: int64, (B,); environments.
            begin: First position of the loss.
            end: One after the last.
            targets: float32, (N, end - begin, 4); log probability and value when acting, advantage, return.

        Returns:
            float32, one of each of `STATISTICS`.

        Raises:
            ValueError: One of them is not finite; the weights are left as they were.
        """
        config = self.config
        self.policy.optimizer.zero_grad(set_to_none=True)
        stats = torch.zeros(len(STATISTICS) - 1, device=self.device)
        for part in rows.split(max(1, config.micro_batch_tokens // end)):
            distribution, values, actions = self.evaluate(part, begin, end)
            old_log_probs, old_values, advantage, target = targets[part].unbind(-1)
            ratio = (distribution.log_prob(actions) - old_log_probs).exp()
            clipped = ratio.clamp(1.0 - config.clip_range, 1.0 + config.clip_range)
            policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
            if config.clip_range_vf is not None:
                values = old_values + (values - old_values).clamp(-config.clip_range_vf, config.clip_range_vf)
            value_loss = (values - target).square().mean()
            entropy = distribution.entropy().mean()
            share = len(part) / len(rows)
            loss = policy_loss + config.vf_coef * value_loss - config.ent_coef * entropy
            (share * loss).backward()
            with torch.no_grad():
                outside = (ratio != clipped).float().mean()
                stats += share * torch.stack([policy_loss, value_loss, entropy, outside])
        gradients = [parameter.grad for parameter in self._trained if parameter.grad is not None]
        self.processes.average([*gradients, stats])  # each has as many rows: the mean over those of all
        norm = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        stats = torch.cat([stats, norm[None]])
        if not bool(torch.isfinite(stats).all()):
            named = zip(STATISTICS, stats.tolist(), strict=True)
            broken = ", ".join(f"{name} {value}" for name, value in named if not math.isfinite(value))
            raise ValueError(
                f"loss and gradient must be finite, got {broken} in update {self._n_updates + 1}, after {self.num_timesteps} "
                "environment steps; lower learning_rate or max_grad_norm, or look at the rewards"
            )
        self.policy.optimizer.step()
        return stats

    def evaluate(self, rows: Tensor, begin: int, end: int) -> tuple[ActionDistribution, Tensor, Tensor]:
        """Policy and values at positions `begin` to `end` of the rollout, given everything before, with the present weights.

        Args:
            rows: int64, (B,); environments.
            begin: First position of interest.
            end: One after the last.

        Returns:
            Distribution over actions, values (B, end - begin), and the actions that were taken.
        """
        config, memory = self.config, self.policy.memory
        start, state = 0, self._carried_state(rows)
        if begin > 0 and config.prefix_grad == "detach":
            start, state = begin, self._rows_of(self._segment_state, rows)
        elif begin > config.prefix_window and config.prefix_grad == "window":
            start = begin - config.prefix_window
            training = memory.training
            memory.eval()
            state = self._prefill(rows, start, memory.initial_state(len(rows), max_steps=end), rewrites=False)
            memory.train(training)
        with self._autocast():
            x, sequences = self._inputs(rows, start, end)
            latent, _ = memory(x, state, last=end - begin)
        distribution, values = self._heads(latent, sequences)
        return distribution, values, sequences.actions[:, begin - start :]

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")

    def _heads(self, latent: Tensor, sequences: Sequences) -> tuple[ActionDistribution, Tensor]:
        """Distribution and values at the last steps of some sequences, from their memory features (B, steps, D)."""
        allowed = self.policy.action_mask(sequences.observations)
        if allowed is not None:
            allowed = allowed[:, -latent.shape[1] :]
        return self.policy.heads(latent.to(self.policy.critic.weight.dtype), allowed)

    def _inputs(self, rows: Tensor, begin: int, end: int) -> tuple[Any, Sequences]:
        """What the memory sees at positions `begin` to `end`, and what the buffer holds of them."""
        sequences = self.rollout_buffer.sequences(rows, begin, end)
        if sequences.embeddings is not None:
            features = sequences.embeddings.to(torch.float32)
        else:
            stored = sequences.observations
            flat: Any = (
                {key: value.flatten(0, 1) for key, value in stored.items()}
                if isinstance(stored, dict)
                else stored.flatten(0, 1)  # type: ignore[union-attr]
            )
            features = self.policy.features(flat).unflatten(0, (len(rows), end - begin))
        x = self.policy.memory_inputs(
            features, sequences.previous, sequences.episode_start, sequences.trial_start, sequences.where
        )
        return x, sequences

    def _carried_state(self, rows: Tensor) -> State | None:
        """Memory at the beginning of the rollout where it is carried over from the one before; None where it was empty."""
        if self._segment_begin == 0 and not bool(self.rollout_buffer.trial_start[:, 0].all()):
            return self._rows_of(self._segment_state, rows)
        return None

    @staticmethod
    def _rows_of(state: State, rows: Tensor) -> State:
        return {key: value[rows] for key, value in state.items() if key != PREVIOUS_ACTION}

    def _refresh(self, end: int, last_of_rollout: bool) -> None:
        """Refills the memory with the present weights and order of episodes and, if the full update comes next, the stored values."""
        assert self._state is not None
        if self._state.keys() == {PREVIOUS_ACTION} and not last_of_rollout:
            return  # there is no memory to refill
        size = max(1, self.config.micro_batch_tokens // min(end, PREFILL_STEPS))
        for rows in self._all_rows().split(size):
            block = slice(int(rows[0]), int(rows[-1]) + 1)
            held = {key: value[block] for key, value in self._state.items() if key != PREVIOUS_ACTION}
            state = self._carried_state(rows)
            if state is None:
                state = held  # it is forgotten: position 0 starts a trial
            state = self._prefill(rows, end, state, rewrites=last_of_rollout)
            for key, value in state.items():
                if value is not held[key]:  # else it was written in place
                    held[key].copy_(value)

    @torch.no_grad()
    def _prefill(self, rows: Tensor, end: int, state: State, *, rewrites: bool) -> State:
        """The memory after positions 0 to `end`, some steps at a time.

        Args:
            rows: int64, (B,); environments.
            end: One after the last position.
            state: Memory before position 0; may be changed in place.
            rewrites: Whether the stored values (and log probabilities, if so configured) are computed again.
        """
        buffer = self.rollout_buffer
        for begin in range(0, end, PREFILL_STEPS):
            with self._autocast():
                x, sequences = self._inputs(rows, begin, min(end, begin + PREFILL_STEPS))
                latent, state = self.policy.memory.prefill(x, state, last=None if rewrites else 1)
            if rewrites:
                distribution, values = self._heads(latent, sequences)
                buffer.write(buffer.values, rows, begin, values)
                if self.config.refresh_log_probs:
                    buffer.write(buffer.log_probs, rows, begin, distribution.log_prob(sequences.actions))
        return state

    @torch.no_grad()
    def _approximate_kl(self, begin: int, end: int) -> float:
        """KL of the policy that acted from the present one, measured without dropout on a batch: mean of ratio - 1 - log ratio."""
        rows = self._all_rows()[: max(1, min(self.config.batch_size, self.config.micro_batch_tokens // end))]
        distribution, _, actions = self.evaluate(rows, begin, end)
        log_ratio = distribution.log_prob(actions) - self.rollout_buffer.ordered(
            self.rollout_buffer.log_probs, rows, begin, end
        )
        return float((log_ratio.exp() - 1.0 - log_ratio).mean())
