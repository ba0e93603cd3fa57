"""Partial-update PPO (ReLIC): PPO that updates several times within one long rollout."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor

from memenvs.agents.algorithms.on_policy import OnPolicyMemoryAlgorithm
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.rollout_buffer import RolloutSequences
from memenvs.agents.memory import Memory, State, StepInputs
from memenvs.agents.policies.distributions import ActionDistribution
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION

__all__ = ["STATISTICS", "PPOConfig", "PartialUpdatePPO"]

PREFILL_STEPS = 1024
"""Steps of each sequence in one forward pass, where the memory is computed without gradient."""
MAX_LOG_RATIO = 20.0
"""Largest logarithm of a probability ratio, far outside of any clip range.

Beyond 88 a ratio is infinite in float32 and gradients are NaN, also where the loss has the clipped ratio. One step can
go that far with thousands of numbers in an action, whose log densities add up.
"""
STATISTICS = ("policy_gradient_loss", "value_loss", "entropy", "clip_fraction", "auxiliary_loss", "grad_norm")
"""Statistics of an optimizer step, as logged; `auxiliary_loss` only where the memory has one."""


class PartialUpdatePPO(OnPolicyMemoryAlgorithm):
    """PPO with a memory and K updates per rollout, as a Stable-Baselines3 algorithm.

    A rollout has T steps. After every T / K of them the policy learns from the steps since the last update, with the
    whole rollout so far as context: a partial update. The completed episodes are then shuffled and the memory is
    refilled with the new weights. The last update of a rollout learns from all T steps: a full update. The next
    rollout starts with a new trial and an empty memory. K = 1 is ordinary PPO.

    With `cloning_steps`, the oracle acts in the first rollouts, and the policy learns its actions.

    With `allocator`, the eviction strategy of a memory with a capacity is chosen where it is emptied, and a Q of each
    strategy learns from the undiscounted returns. The strategy of each step is stored, so that learning sees the memory
    that acted; the trained policy follows the strategy with the largest Q.

    Several processes make the same optimizer steps as one process with all their environments and the same
    `batch_size` would; each takes its share of a batch from its own environments.

    Difference from the paper:
        The gradient is the mean over a batch. The release sums the gradients of ten micro-batches, so presets clip at a
        tenth of its norm and use a tenth of its Adam epsilon. The clip is over all parameters; the release leaves out
        the critic's head. Rewards, values and log probabilities are float32; in the release's float16 rewards of
        -0.001 vanish. The action after an update is drawn with the new weights. `prefix_grad`, `bootstrap_truncated`,
        `refresh_log_probs` and a schedule with warm-up in environment steps are ours.

    Args:
        policy: "MemoryPolicy" or a subclass of `MemoryPolicy`.
        env: Any Gymnasium environment or `VecEnv`; `memenvs.agents.make_vec_env` makes fast ones.
        config: Settings; None for the defaults.
        **kwargs: Further arguments of `MemoryAlgorithm`, and fields of the config to change.

    Raises:
        ValueError: A setting is not allowed, or `batch_size` cannot be split evenly over the processes.
        TypeError: A setting does not exist.

    Source:
        Partial updates: Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for
        Embodied AI", 2024 (arXiv:2410.02751), sections on partial updates and Sink-KV; the order of operations is that
        of its release. PPO: Schulman et al., "Proximal Policy Optimization Algorithms", 2017 (arXiv:1707.06347).
    """

    update_statistics = (
        *STATISTICS,
        "learning_rate",
        "approx_kl_full",
        "approx_kl_partial",
        "explained_variance",
        "n_updates",
    )

    def train(self) -> None:
        """Make one update: partial on the last segment, or full at the end of the rollout.

        Raises:
            ValueError: Loss or gradient are not finite.
        """
        config = self.config
        buffer = self.rollout_buffer
        is_last = buffer.pos == config.n_steps  # the last segment of the rollout
        is_full = is_last and config.full_update
        begin = 0 if is_full else self._segment_begin
        end = buffer.pos
        self._begin_update_log()
        if self._n_updates == 0:
            self._standardize(end)
        learning_rate = self._set_learning_rate()
        advantages, returns = self._advantages(begin, end)
        self.policy.set_training_mode(True)
        rows = self._all_rows()
        old_log_probs = buffer.ordered(buffer.log_probs, rows, begin, end)
        old_values = buffer.ordered(buffer.values, rows, begin, end)
        targets = torch.stack([old_log_probs, old_values, advantages, returns], -1)  # (N, S, 4), S = end - begin
        stats = torch.stack([self._optimizer_step(batch, begin, end, targets) for batch in self._batches()]).mean(0)
        self.policy.set_training_mode(False)
        self._n_updates += 1
        statistics = dict(zip(STATISTICS, stats.tolist(), strict=True))
        if type(self.policy.memory).auxiliary_loss is Memory.auxiliary_loss:
            del statistics["auxiliary_loss"]
        self._record_update(statistics, learning_rate)
        self._record_kl_and_explained_variance(begin, end, old_values, returns, "full" if is_full else "partial")
        if self._episodes is not None:
            self._train_allocator(*self._episodes.take_finished())
        if not is_last:
            if config.shuffle_episodes:
                buffer.shuffle_episodes(end, self.rngs["shuffle"])
            # The full update computes its advantages from the stored values. The last refill before it computes these
            # again, so that all of them belong to the same weights and to the new order of episodes.
            self._refill_memory(end, rewrite=config.full_update and end + config.segment == config.n_steps)
        elif self._carries_memory:  # the next rollout goes on with this memory
            self._refill_memory(end, rewrite=False)
        self._is_unfinished = False
        if self._pending_log is not None:
            self._write_log(self._pending_log)
            self._pending_log = None

    def _set_learning_rate(self) -> float:
        """Set and return the learning rate, that of the schedule at the first step of the segment."""
        segment_steps = self.processes.count * self.n_envs * self.config.segment
        learning_rate = self.config.learning_rate_at(self.num_timesteps - segment_steps, self._total_timesteps)
        self.policy.optimizer.param_groups[0]["lr"] = learning_rate  # the allocator has a group with its own
        return learning_rate

    def _advantages(self, begin: int, end: int) -> tuple[Tensor, Tensor]:
        """Compute advantages (normalised if so configured) and returns of positions `begin` to `end`, float (N, S)."""
        config = self.config
        # Credit stops at the start of the next episode, or, if it crosses episodes, of the next trial.
        across = config.credit_across_episodes
        first = 0 if config.normalize_advantage == "rollout" else begin  # of the advantages that decide the scale
        advantages, returns = self.rollout_buffer.advantages(
            first,
            end,
            self._last_values,
            self._trial_start if across else self._episode_start,
            config.gamma,
            config.gae_lambda,
            across,
        )
        if config.normalize_advantage:
            mean, std = self.processes.moments(advantages)
            advantages = (advantages - mean) / (std + 1e-8)
        return advantages[:, begin - first :], returns[:, begin - first :]

    @torch.no_grad()
    def _standardize(self, end: int) -> None:
        """Scale the memory's initial weights to the inputs of positions 0 to `end`.

        The probabilities of the first actions stay those of acting. Every process gets the weights of the first.
        """
        rows = self._all_rows()[: max(1, self.config.micro_batch_tokens // end)]
        x, _ = self._inputs(rows, 0, end)
        if self.policy.memory.standardize(x.embedding.flatten(0, 1)):
            self.processes.broadcast(list(self.policy.memory.state_dict().values()))

    def _all_rows(self) -> Tensor:
        return torch.arange(self.n_envs, device=self.device)

    def _batches(self) -> Iterator[Tensor]:
        """Yield the environments of each optimizer step, int64 (B,): whole sequences, shuffled in each epoch."""
        size = min(self._process_batch_size, self.n_envs)  # this process's share of a batch
        for _ in range(self.config.n_epochs):
            order = torch.as_tensor(self.rngs["order"].permutation(self.n_envs), device=self.device)
            yield from order.split(size)

    def _optimizer_step(self, rows: Tensor, begin: int, end: int, targets: Tensor) -> Tensor:
        """Make one optimizer step on positions `begin` to `end` of some environments of each process.

        Args:
            rows: int64, (B,); environments of this process.
            begin: First position of the loss.
            end: One after the last position.
            targets: float32, (N, end - begin, 4); log probability and value (while acting, or as the last refill has
                recomputed them), advantage, return.

        Returns:
            float32, (len(STATISTICS),).

        Raises:
            ValueError: A statistic is not finite; the weights are left as they were.
        """
        config = self.config
        self.policy.optimizer.zero_grad(set_to_none=True)
        stats = torch.zeros(len(STATISTICS) - 1, device=self.device)
        # Gradients of micro-batches are added up, weighted so that the sum is the gradient of the batch's mean loss.
        # Each sequence takes `end` tokens: its context and the positions of the loss.
        for part in rows.split(max(1, config.micro_batch_tokens // end)):
            distribution, values, actions = self.evaluate(part, begin, end)
            old_log_probs, old_values, advantages, returns = targets[part].unbind(-1)  # (B', S) each
            # Clipped surrogate objective: Schulman et al., 2017, equation 7.
            log_probs = distribution.log_prob(actions)
            ratio = (log_probs - old_log_probs).clamp(max=MAX_LOG_RATIO).exp()
            clipped_ratio = ratio.clamp(1.0 - config.clip_range, 1.0 + config.clip_range)
            policy_loss = -torch.min(advantages * ratio, advantages * clipped_ratio).mean()
            if self._is_cloning:
                policy_loss = -log_probs.mean()
            if config.clip_range_vf is not None:  # the value may change by at most clip_range_vf in an update
                values = old_values + (values - old_values).clamp(-config.clip_range_vf, config.clip_range_vf)
            value_loss = (values - returns).square().mean()
            entropy = distribution.entropy().mean()
            loss = policy_loss + config.vf_coef * value_loss - config.ent_coef * entropy  # equation 9
            auxiliary_loss = self.policy.memory.auxiliary_loss()
            if auxiliary_loss is None:
                auxiliary_loss = loss.new_zeros(())
            else:
                loss = loss + auxiliary_loss
            weight = len(part) / len(rows)
            (loss if weight == 1.0 else weight * loss).backward()
            with torch.no_grad():
                clip_fraction = (ratio != clipped_ratio).float().mean()
                stats += weight * torch.stack([policy_loss, value_loss, entropy, clip_fraction, auxiliary_loss])
        gradients = [parameter.grad for parameter in self._trained if parameter.grad is not None]
        self.processes.average([*gradients, stats])  # processes have equally many rows: the mean over all of them
        grad_norm = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        stats = torch.cat([stats, grad_norm[None]])
        self._check_update(dict(zip(STATISTICS, stats.tolist(), strict=True)))
        self.policy.optimizer.step()
        return stats

    def evaluate(self, rows: Tensor, begin: int, end: int) -> tuple[ActionDistribution, Tensor, Tensor]:
        """Evaluate policy and values at positions of the rollout, with the current weights.

        All steps of the rollout before these positions (the prefix) are their context. `PPOConfig.prefix_grad` decides
        how much of the prefix gets a gradient.

        Args:
            rows: int64, (B,); environments.
            begin: First position.
            end: One after the last position.

        Returns:
            Distribution over actions, values (B, end - begin), and the actions that were taken.
        """
        config = self.config
        memory = self.policy.memory
        start = 0  # first position that gets a gradient; the state is the memory before it
        state = self._carried_state(rows)
        if begin > 0 and config.prefix_grad == "detach":
            start = begin
            state = self._state_rows(self._segment_state, rows)
        elif begin > config.prefix_window and config.prefix_grad == "window":
            start = begin - config.prefix_window
            state = self._prefill(rows, start, memory.initial_state(len(rows), max_steps=end), rewrite=False)
        with self._autocast():
            x, sequences = self._inputs(rows, start, end)
            latent, _ = memory(x, state, last=end - begin)  # (B, end - begin, D)
        distribution, values = self._heads(latent, sequences)
        return distribution, values, sequences.actions[:, begin - start :]

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")

    def _inputs(self, rows: Tensor, begin: int, end: int) -> tuple[StepInputs, RolloutSequences]:
        """Assemble the memory's input at positions `begin` to `end`, (B, S, ...); return the buffer's content too."""
        sequences = self.rollout_buffer.sequences(rows, begin, end)
        x = self.policy.memory_inputs(
            sequences.features(self.policy),
            sequences.previous_action,
            sequences.episode_start,
            sequences.trial_start,
            sequences.extra_inputs,
        )
        return x, sequences

    def _heads(self, latent: Tensor, sequences: RolloutSequences) -> tuple[ActionDistribution, Tensor]:
        """Compute distribution and values at the last steps of sequences, from memory features (B, steps, D)."""
        action_mask = self.policy.action_mask(sequences.observations)
        if action_mask is not None:
            action_mask = action_mask[:, -latent.shape[1] :]  # (B, S, A) -> (B, steps, A)
        return self.policy.heads(latent.to(self.policy.critic.weight.dtype), action_mask)

    def _train_allocator(self, finished: list[tuple[int, float]], begun: Counter[int]) -> None:
        """Let the allocator learn from the returns of this segment, and log its choices.

        Args:
            finished: Strategy and return of each stay of a memory that has ended; one step of Adam is made for each.
                Every process makes the steps for those of all processes, so that weights stay equal.
            begun: Number of stays that have begun, by strategy.
        """
        allocator = self.policy.allocator
        assert allocator is not None
        task = allocator.constant(1)
        optimizer = self.policy.optimizer
        for strategy, total in chain(*self.processes.gather(finished)):
            chosen = torch.tensor([strategy], device=self.device)
            optimizer.zero_grad(set_to_none=True)  # so that the policy's parameters have no gradient and stay
            allocator.loss(task, chosen, torch.tensor([total], device=self.device)).backward()
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        counts: Counter[int] = sum(self.processes.gather(begun), Counter())
        with torch.no_grad():
            values = allocator(task)[0].tolist()
        for name, number, value in zip(allocator.strategies, allocator.numbers.tolist(), values, strict=True):
            if counts:
                self.logger.record(f"allocator/share_{name}", counts[number] / counts.total())
            self.logger.record(f"allocator/q_{name}", value)

    def _carried_state(self, rows: Tensor) -> State | None:
        """Return the memory that was carried over from the previous rollout; None if this one started empty.

        Only a rollout of one segment (K = 1) can begin with a memory, which is then the one before the segment.
        """
        if self._segment_begin == 0 and not bool(self.rollout_buffer.trial_start[:, 0].all()):
            return self._state_rows(self._segment_state, rows)
        return None

    @staticmethod
    def _state_rows(state: State, rows: Tensor) -> State:
        """Select environments of a policy's state, without the previous action: a state of the memory."""
        return {key: value.index_select(0, rows) for key, value in state.items() if key != PREVIOUS_ACTION}

    def _refill_memory(self, end: int, *, rewrite: bool) -> None:
        """Refill the memory from positions 0 to `end`, with the current weights and order of episodes.

        Args:
            end: One after the last position.
            rewrite: If True, recompute the stored values too (and log probabilities, if `refresh_log_probs`).
        """
        assert self._state is not None
        if self._state.keys() == {PREVIOUS_ACTION} and not rewrite:
            return  # there is no memory to refill
        size = max(1, self.config.micro_batch_tokens // min(end, PREFILL_STEPS))
        for rows in self._all_rows().split(size):
            block = slice(int(rows[0]), int(rows[-1]) + 1)  # a slice gives views, through which `_state` is written
            current = {key: value[block] for key, value in self._state.items() if key != PREVIOUS_ACTION}
            state = self._carried_state(rows)
            if state is None:
                state = current  # overwritten: position 0 starts a trial
            state = self._prefill(rows, end, state, rewrite=rewrite)
            for key, value in state.items():
                if value is not current[key]:  # else the memory has written in place
                    current[key].copy_(value)

    @torch.no_grad()
    def _prefill(self, rows: Tensor, end: int, state: State, *, rewrite: bool) -> State:
        """Return the memory after positions 0 to `end`, computed `PREFILL_STEPS` at a time.

        Args:
            rows: int64, (B,); environments.
            end: One after the last position.
            state: Memory before position 0; may be changed in place.
            rewrite: As in `_refill_memory`.
        """
        buffer = self.rollout_buffer
        for begin in range(0, end, PREFILL_STEPS):
            with self._autocast():
                x, sequences = self._inputs(rows, begin, min(end, begin + PREFILL_STEPS))
                latent, state = self.policy.memory.prefill(x, state, last=None if rewrite else 1)
            if rewrite:
                distribution, values = self._heads(latent, sequences)
                buffer.write(buffer.values, rows, begin, values)
                if self.config.refresh_log_probs:
                    buffer.write(buffer.log_probs, rows, begin, distribution.log_prob(sequences.actions))
        return state

    def dump_logs(self, iteration: int = 0) -> None:
        """Request a log: `learn` calls this before the update, and `train` writes the log after it."""
        self._pending_log = iteration

    def _write_log(self, iteration: int) -> None:
        """Write a log, with the latest episodes of every process."""
        own_buffers = (self.ep_info_buffer, self.ep_success_buffer)
        buffers_of_all = zip(*self.processes.gather(own_buffers), strict=True)
        self.ep_info_buffer, self.ep_success_buffer = (deque(chain(*buffers)) for buffers in buffers_of_all)
        self._dump_log(lambda: super(PartialUpdatePPO, self).dump_logs(iteration))
        self.ep_info_buffer, self.ep_success_buffer = own_buffers

    def _record_update(self, stats: dict[str, float], learning_rate: float) -> None:
        self.logger.record("train/learning_rate", learning_rate)
        for name, value in stats.items():
            self.logger.record(f"train/{name}", value)

    def _record_kl_and_explained_variance(
        self, begin: int, end: int, values: Tensor, returns: Tensor, kind: str
    ) -> None:
        """Log the approximate KL divergence of the update and the explained variance of the values."""
        divergences = self.processes.gather(self._approximate_kl(begin, end))
        self.logger.record(f"train/approx_kl_{kind}", sum(divergences) / len(divergences))
        _, std = self.processes.moments(returns)
        _, residual_std = self.processes.moments(returns - values)
        explained = 1.0 - (residual_std / std).square()
        self.logger.record("train/explained_variance", float(explained) if float(std) > 0 else float("nan"))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    @torch.no_grad()
    def _approximate_kl(self, begin: int, end: int) -> float:
        """Estimate the KL divergence of the current policy from that of the stored log probabilities, on one batch.

        These are of the policy that acted, unless `refresh_log_probs` has recomputed them.

        Source:
            Schulman, "Approximating KL divergence", 2020: the mean of (r - 1) - log r, r the probability ratio.
        """
        # `train` has switched to evaluation mode, so there is no dropout.
        rows = self._all_rows()[: max(1, min(self.config.batch_size, self.config.micro_batch_tokens // end))]
        distribution, _, actions = self.evaluate(rows, begin, end)
        old_log_probs = self.rollout_buffer.ordered(self.rollout_buffer.log_probs, rows, begin, end)
        log_ratio = (distribution.log_prob(actions) - old_log_probs).clamp(max=MAX_LOG_RATIO)
        return float((log_ratio.exp() - 1.0 - log_ratio).mean())
