"""Deep Q-learning with a memory, from a replay buffer of whole episodes (SMT)."""

from __future__ import annotations

import time
import warnings
from os import PathLike
from typing import Self

import numpy as np
import torch
from stable_baselines3.common.type_aliases import MaybeCallback, TensorDict
from torch import Tensor
from torch.nn.functional import huber_loss

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.off_policy import OffPolicyMemoryAlgorithm
from memenvs.agents.algorithms.replay_buffer import StepSample
from memenvs.agents.algorithms.rollout_buffer import StoredSteps
from memenvs.agents.memory import Memory, StepInputs
from memenvs.agents.policies.memory_policy import MemoryPolicy

STATISTICS = ("loss", "q", "grad_norm")
"""Statistics of an update, as logged."""


class EpisodeDQN(OffPolicyMemoryAlgorithm):
    """Double DQN with n-step targets and a memory, as a Stable-Baselines3 algorithm.

    The policy is the softmax of Q / `temperature` (Boltzmann exploration), in evaluation as in learning. The actor
    computes Q / `temperature` as its logits, so that acting, evaluation and checkpoints are those of
    `PartialUpdatePPO`. The critic is unused and gets no gradient.

    In an iteration of `learn` every environment plays one episode into the replay buffer, then `updates_per_collect`
    updates follow. Until the buffer is full, actions are uniform and nothing is learned. The same holds after `load`,
    unless `load_replay_buffer` restores the episodes.

    The memory starts empty in each episode, also where a trial has several. An iteration begins with a new trial of
    each environment. Environments whose episode ends first go on until the last one ends; these extra steps are counted
    in `num_timesteps` but not stored.

    An update samples `batch_size` episodes and `decisions` steps of each. The memory reads all steps of an episode, but
    only the sampled ones get a loss. With a frozen features extractor (`freeze_features`) the buffer stores embeddings
    and no observation. With `single_steps` in the policy, the Q values of a step depend on that step only.

    Difference from the paper:
        The paper does not state discount, target network, exploration and estimator; double Q-learning, n-step targets,
        the Huber loss and polyak averaging are ours. It replaces one episode every 500 updates; here every environment
        plays one between two sets of updates (`n_envs=1` is the paper's). It stops when validation no longer improves;
        here a run has a fixed length, and its best checkpoint in validation is kept.

    Args:
        policy: "MemoryPolicy" or a subclass of `MemoryPolicy`.
        env: Any Gymnasium environment or `VecEnv` with `Discrete` actions; `memenvs.agents.make_vec_env` makes fast
            ones.
        config: Settings; None for the defaults.
        **kwargs: Further arguments of `MemoryAlgorithm`, and fields of the config to change.

    Raises:
        ValueError: A setting is not allowed, episodes are longer than `episode_steps`, or there are several processes.
        TypeError: A setting does not exist.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019 (arXiv:1903.03878),
        section on training. Double DQN: van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning", 2016
        (arXiv:1509.06461).
    """

    rng_names = ("replay",)
    update_statistics = (*STATISTICS, "n_updates")

    def _setup_model(self) -> None:
        super()._setup_model()
        if not self.policy.value_gradient:
            raise ValueError("value_gradient must be True for EpisodeDQN, whose values are those of actions, got False")
        target = self._new_policy(0).requires_grad_(False)  # any seed: the weights are overwritten below
        assert isinstance(target, MemoryPolicy)
        self.target = target
        self.target.set_training_mode(False)
        self._polyak_update(1.0)  # copy all weights
        weights = [weight for name, weight in self.policy.named_parameters() if not name.startswith("critic.")]
        self._trained = [weight for weight in weights if weight.requires_grad]
        # `Memory.features_at` computes all steps of an episode, so one forward pass for sampled and bootstrap steps
        # costs as much as one for either. A memory that overrides it computes each step separately. Bootstrap steps
        # then get a pass of their own, because they need no gradient.
        computes_all_steps = type(self.policy.memory).features_at is Memory.features_at
        self._shares_forward_pass = computes_all_steps and not self.policy.single_steps

    def load_features(self, path: str | PathLike[str]) -> None:
        """Load the features extractor of a checkpoint; see `checkpoint.load_features`."""
        super().load_features(path)
        self._polyak_update(1.0)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer", "target"], []

    def set_parameters(
        self,
        load_path_or_dict: archive.File | TensorDict,
        exact_match: bool = True,
        device: torch.device | str = "auto",
    ) -> None:
        """Replace weights; a policy without its target network gives its weights to that too.

        Arguments and errors are those of `SavableAlgorithm.set_parameters`.
        """
        super().set_parameters(load_path_or_dict, exact_match, device)
        if isinstance(load_path_or_dict, dict) and "policy" in load_path_or_dict and "target" not in load_path_or_dict:
            self._polyak_update(1.0)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 1,
        tb_log_name: str = "EpisodeDQN",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Collect and learn for a number of environment steps.

        Arguments are those of Stable-Baselines3's `BaseAlgorithm.learn`.

        Raises:
            ValueError: A reward, output, loss or gradient is not finite, or an episode does not end.
        """
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        if self._lacks_replay:
            self.filled_at = -1  # fill the buffer again
            self._lacks_replay = False
        if reset_num_timesteps and self.filled_at >= 0:
            self.filled_at = 0  # `num_timesteps` starts again at 0, and with it the decay of epsilon
        callback.on_training_start(locals(), globals())
        assert self.env is not None
        iteration = 0
        while self.num_timesteps < total_timesteps and self._collect_episodes(self.env, callback):
            iteration += 1
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            if self.replay.is_full:
                self.train()
            self._is_unfinished = False
            if log_interval is not None and iteration % log_interval == 0:
                self.dump_logs(iteration)
        callback.on_training_end()
        if self.filled_at < 0 and self.num_timesteps >= total_timesteps:
            capacity = self.config.capacity
            iterations = -(-capacity // self.n_envs)  # rounded up
            needed = iterations * self.n_envs * self.config.episode_steps
            warnings.warn(
                f"nothing was learned: {total_timesteps} steps have not filled the replay, which has "
                f"{self.replay.count} of {capacity} episodes and needs up to {needed} steps; train for more steps or "
                "lower capacity",
                stacklevel=2,
            )
        return self

    def train(self) -> None:
        """Make `updates_per_collect` updates, after one collection of episodes.

        Raises:
            ValueError: Loss or gradient are not finite.
        """
        start = time.perf_counter()
        self._begin_update_log()
        if self._n_updates == 0:
            self._standardize()
        self.policy.set_training_mode(True)
        stats = torch.stack([self._update() for _ in range(self.config.updates_per_collect)]).mean(0)
        self.policy.set_training_mode(False)
        for name, value in zip(STATISTICS, stats.tolist(), strict=True):
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("time/updates_per_second", self.config.updates_per_collect / (time.perf_counter() - start))

    @torch.no_grad()
    def _standardize(self) -> None:
        """Scale the memory's initial weights to sampled steps, and copy them to the target network."""
        rng = np.random.default_rng(0)  # so that runs without it keep their draws
        sample = self.replay.sample(self.config.batch_size, self.config.decisions, rng)
        x = self._memory_inputs(self.policy, self.replay.read(sample.rows, sample.steps))
        if self.policy.memory.standardize(x.embedding[sample.is_valid]):
            self._polyak_update(1.0)

    def _update(self) -> Tensor:
        """Make one optimizer step on sampled steps of some episodes.

        Returns:
            float32, (len(STATISTICS),).

        Raises:
            ValueError: A statistic is not finite; the weights are left as they were.
        """
        config = self.config
        sample = self.replay.sample(config.batch_size, config.decisions, self.rngs["replay"])
        q_values, targets = self._q_values_and_targets(sample)  # (B, S, A), (B, S)
        actions = self.replay.actions(sample.rows, sample.steps)[..., None]  # (B, S, 1)
        q_taken = q_values.gather(-1, actions).squeeze(-1)  # (B, S)
        weight = sample.is_valid / sample.is_valid.sum()  # (B, S); mean over the steps that are not padding
        loss = (weight * huber_loss(q_taken, targets, reduction="none")).sum()
        auxiliary_loss = self.policy.memory.auxiliary_loss()
        self.policy.optimizer.zero_grad(set_to_none=True)
        (loss if auxiliary_loss is None else loss + auxiliary_loss).backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        stats = torch.stack([loss.detach(), (weight * q_taken.detach()).sum(), grad_norm])
        self._check_update(dict(zip(STATISTICS, stats.tolist(), strict=True)))
        self.policy.optimizer.step()
        self._polyak_update(config.target_rate)
        self._n_updates += 1
        return stats

    def _q_values_and_targets(self, sample: StepSample) -> tuple[Tensor, Tensor]:
        """Return Q values at the sampled steps, (B, S, A), and their n-step targets, (B, S), without gradient.

        Source:
            Double DQN: van Hasselt et al., 2016, equation 4: the online network chooses the best action at the
            bootstrap step, the target network gives its value.
        """
        config = self.config
        # Discounts are gamma ** n, and 0 where the episode terminated within n steps: nothing to bootstrap from.
        rewards, bootstrap, discounts = self.replay.n_step_returns(
            sample.rows, sample.steps, config.n_step, config.gamma, config.lowest_reward
        )
        if self._shares_forward_pass:
            steps = torch.cat([sample.steps, bootstrap], 1)  # (B, 2 S)
            q_values, next_q_values = self.q_values(self.policy, sample.rows, steps).chunk(2, 1)
        else:
            q_values = self.q_values(self.policy, sample.rows, sample.steps)
        with torch.no_grad():
            if not self._shares_forward_pass:
                next_q_values = self.q_values(self.policy, sample.rows, bootstrap)
            best_actions = next_q_values.argmax(-1, keepdim=True)  # (B, S, 1)
            next_value = self.q_values(self.target, sample.rows, bootstrap).gather(-1, best_actions).squeeze(-1)
            return q_values, config.reward_scale * rewards + discounts * next_value

    def q_values(self, policy: MemoryPolicy, rows: Tensor, steps: Tensor) -> Tensor:
        """Compute Q values at P steps of stored episodes, with the memory of all steps before each.

        Args:
            policy: `policy` or `target`.
            rows: int64, (B,); rows of the replay buffer.
            steps: int64, (B, P); numbers of the steps, 0 ... T (T: the observation after the last action).

        Returns:
            float32, (B, P, A); -inf for an action that is not available, 0 where none is.
        """
        if policy.single_steps:
            stored = self.replay.read(rows, steps)
        else:
            length = int(steps.max()) + 1  # L, all steps up to the last one needed
            stored = self.replay.read(rows, torch.arange(length, device=self.device).expand(len(rows), -1))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            if policy.single_steps:
                latent = self._single_step_latent(policy, stored)
            else:
                latent = self._latent(policy, stored, steps)
        latent = policy.mlp_extractor.forward_actor(latent.to(policy.actor.linear.weight.dtype))
        q_values = self.config.temperature * policy.actor.linear(latent)  # (B, P, A); the actor gives Q / temperature
        action_mask = policy.action_mask(stored.observations)
        if action_mask is None:
            return q_values
        if not policy.single_steps:  # (B, L, A) -> (B, P, A)
            action_mask = action_mask[torch.arange(len(rows), device=self.device)[:, None], steps]
        # At the end of an episode there may be no action left, such as on a full board: nothing follows, so Q is 0.
        return q_values.masked_fill(~action_mask, -torch.inf).masked_fill(~action_mask.any(-1, keepdim=True), 0.0)

    def _latent(self, policy: MemoryPolicy, stored: StoredSteps, steps: Tensor) -> Tensor:
        """Compute the memory's features at `steps`, (B, P), from the first L steps of episodes; float (B, P, D)."""
        return policy.memory.features_at(self._memory_inputs(policy, stored), steps)

    def _memory_inputs(self, policy: MemoryPolicy, stored: StoredSteps) -> StepInputs:
        """Assemble the memory's input of stored steps, the first of which starts a trial."""
        is_start = torch.zeros(stored.previous_action.shape, dtype=torch.bool, device=self.device)  # (B, L)
        is_start[:, 0] = True
        return policy.memory_inputs(
            stored.features(policy), stored.previous_action, is_start, is_start, stored.extra_inputs
        )

    def _single_step_latent(self, policy: MemoryPolicy, stored: StoredSteps) -> Tensor:
        """Compute the memory's features of P steps, each of them a sequence of its own; float (B, P, D)."""
        batch_shape = stored.previous_action.shape  # (B, P)
        features = stored.features(policy).flatten(0, 1)[:, None]  # (B * P, 1, F)
        previous_action = stored.previous_action.flatten()[:, None]  # (B * P, 1)
        extra_inputs = {key: value.flatten(0, 1)[:, None] for key, value in stored.extra_inputs.items()}
        is_start = torch.ones(previous_action.shape, dtype=torch.bool, device=self.device)
        x = policy.memory_inputs(features, previous_action, is_start, is_start, extra_inputs)
        return policy.memory(x)[0].unflatten(0, batch_shape).squeeze(2)  # (B * P, 1, D) -> (B, P, D)

    @torch.no_grad()
    def _polyak_update(self, rate: float) -> None:
        """Move the target network towards the online network: target += rate * (online - target)."""
        for target, source in zip(self.target.parameters(), self.policy.parameters(), strict=True):
            if source.requires_grad or rate == 1.0:  # frozen parameters are equal after the first copy
                target.lerp_(source, rate)
        for target_buffer, buffer in zip(self.target.buffers(), self.policy.buffers(), strict=True):
            target_buffer.copy_(buffer)

    def dump_logs(self, iteration: int = 0) -> None:
        """Write a log of the latest episodes, epsilon and speed."""
        seconds = max((time.time_ns() - self.start_time) / 1e9, 1e-9)
        self._record_episodes()
        self.logger.record("rollout/epsilon", self.epsilon)
        self.logger.record("time/iterations", iteration, exclude="tensorboard")
        self.logger.record("time/fps", int((self.num_timesteps - self._num_timesteps_at_start) / seconds))
        self.logger.record("time/time_elapsed", int(seconds), exclude="tensorboard")
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self._dump_log(lambda: self.logger.dump(step=self.num_timesteps))

    def saved_tensors(self) -> dict[str, Tensor]:
        """Return the weights of the target network."""
        return {f"target.{name}": value for name, value in self.target.state_dict().items()}
