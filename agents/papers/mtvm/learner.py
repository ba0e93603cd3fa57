"""Teacher forcing and advantage actor-critic, summed in each update (MTVM)."""

from __future__ import annotations

import time
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from stable_baselines3.common.type_aliases import MaybeCallback
from torch import Tensor

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.papers.mtvm.prevalent import load_prevalent
from memenvs.agents.papers.mtvm.rollouts import ImitationRolloutAlgorithm, Rollout, discounted_returns
from memenvs.agents.vec_env import TrialVecEnv


class ImitationA2C(ImitationRolloutAlgorithm):
    """Teacher forcing and actor-critic for `MTVMPolicy`, as a Stable-Baselines3 algorithm.

    An update is one step of AdamW on the sum of two losses. The first is the imitation loss of a rollout in which the
    teacher acts. The second is the actor-critic loss of a rollout of other episodes, in which actions are sampled from
    the policy; the first `imitation_updates` updates leave it out. Gradients flow through the whole episode, including
    what the memory stores.

    A rollout is one episode of each environment. Update u plays trial 2 u with the teacher and trial 2 u + 1 with the
    policy, so that the episodes depend on the seed and on u alone.

    Unlike in Stable-Baselines3, `num_timesteps`, `learn(total_timesteps)` and the logs count updates.

    Difference from the paper:
        The release runs three processes that update one network asynchronously, and clips only the gradients of the
        actor, before they are unscaled. Here one process clips all gradients, and none is scaled. Presets for one core
        learn from scratch by the imitation loss alone.

    Args:
        policy: "MTVMPolicy" or a subclass of `MTVMPolicy`.
        env: `memenvs.agents.make_vec_env` of VLN-R2R or VLN-CVDN; its oracle is the teacher.
        config: Settings; None for the defaults.
        **kwargs: Further arguments of `MemoryAlgorithm`, and fields of the config to change. Draws of an update use
            torch's global generator, inside `torch.random.fork_rng`.

    Attributes:
        decisions: Environment steps learned from so far, summed over the environments.

    Raises:
        ValueError: A setting is not allowed, the environment has no teacher, or there are several processes.
        TypeError: A setting does not exist.

    Source:
        Lin et al., "Multimodal Transformer with Variable-length Memory for Vision-and-Language Navigation", ECCV 2022
        (arXiv:2111.05759), equation 6.
    """

    saved_attributes = ("decisions",)

    def _complete_policy_kwargs(self, policy_kwargs: dict[str, Any]) -> dict[str, Any]:
        weight_decay = policy_kwargs.get("weight_decay", self.config.weight_decay)
        if weight_decay != self.config.weight_decay:
            raise ValueError(
                f"weight_decay is a setting of the learner ({self.config.weight_decay}) and not of the policy, got "
                f"{weight_decay} in policy_kwargs"
            )
        return {**policy_kwargs, "weight_decay": self.config.weight_decay}

    def _setup_model(self) -> None:
        super()._setup_model()
        self.decisions = 0
        self._log_means: dict[str, tuple[float, int]] = {}
        if self.config.drops_words and not self.policy.network.config.language:
            raise ValueError(
                "text_consistency and cross_consistency must be 0 where network.language is False: no word is read "
                "that could be dropped"
            )
        network = self.policy.network.config
        if self.config.random_bank is not None and (network.history == "state" or network.bank is not None):
            raise ValueError(
                "random_bank must be None where the network has one size of memory, "
                f"got {self.config.random_bank} with bank {network.bank} and history {network.history!r}"
            )

    def _setup_env(self) -> None:
        if self.env is None:
            return
        env = self.env.unwrapped
        config = self.policy.network.config
        if not isinstance(env, TrialVecEnv):
            raise ValueError(f"env must be of memenvs.agents.make_vec_env and have a teacher, got {env}")
        # The last step counts too: the bootstrap value of a truncated episode reads a memory of all its steps.
        memory_size = env.env.task.max_episode_steps
        if config.bank is not None:
            memory_size = min(config.bank, memory_size)
        if config.history == "state":
            memory_size = 1
        needed = int(env.action_space.n) + memory_size  # type: ignore[attr-defined]
        if needed > config.vision_positions:
            raise ValueError(
                f"vision_positions of the network must be at least {needed}, the actions and what can be remembered of "
                f"an episode, got {config.vision_positions}"
            )

    def load_features(self, path: str | PathLike[str]) -> None:
        """Load weights to start from: all of a checkpoint (.zip) or those of PREVALENT.

        See `checkpoint.load_policy` and `prevalent.load_prevalent`.
        """
        if Path(path).suffix == ".zip":
            checkpoint.load_policy(self.policy, path)
        else:
            load_prevalent(self.policy.network, Path(path))

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 10,
        tb_log_name: str = "ImitationA2C",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Make `total_timesteps` updates; see Stable-Baselines3's `BaseAlgorithm.learn`.

        Raises:
            ValueError: A loss or gradient is not finite.
        """
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            callback.on_rollout_start()
            self._is_unfinished = True
            self.train()
            self._is_unfinished = False
            callback.on_rollout_end()
            is_due = log_interval is not None and self.num_timesteps % log_interval == 0
            if is_due or self.num_timesteps == total_timesteps:
                self.dump_logs()
            if not callback.on_step():
                break
        callback.on_training_end()
        return self

    def train(self) -> None:
        """Make one update: play the rollouts, sum their gradients and step the optimizer.

        Raises:
            ValueError: A loss or gradient is not finite; the weights are not changed then.
        """
        start = time.perf_counter()
        config = self.config
        policy = self.policy
        update = self.num_timesteps
        assert self.env is not None
        # Dropout, dropped words and sizes of the bank draw from torch's global generator: seed it for this update only.
        update_seed = int(torch.randint(2**62, (), generator=policy.generator, device=policy.generator.device))
        policy.set_training_mode(True)
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(update_seed)
            policy.optimizer.zero_grad(set_to_none=True)
            if config.random_bank is not None:
                policy.network.bank.size = int(torch.randint(config.random_bank + 1, ()))
            try:
                rollout = self.play(self.env, 2 * update, teacher_forcing=True)
                stats = self._backward(rollout, teacher_forcing=True)
                if update >= config.imitation_updates:
                    rollout = self.play(self.env, 2 * update + 1, teacher_forcing=False)
                    stats |= self._backward(rollout, teacher_forcing=False)
            finally:  # whoever plays the policy meanwhile, such as a callback, has its whole memory
                policy.network.bank.size = policy.network.config.bank
        policy.set_training_mode(False)
        stats["grad_norm"] = torch.nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm).item()
        self._check_update(stats)
        for group in policy.optimizer.param_groups:
            group["lr"] = config.learning_rate_at(update, max(self._total_timesteps, 1))
        policy.optimizer.step()
        self._n_updates += 1
        self.num_timesteps += 1
        for name, value in stats.items():
            # kept here too and not in the logger alone, so that a checkpoint between two logs holds them
            mean, count = self._log_means.get(name, (0.0, 0))
            self._log_means[name] = (mean * count / (count + 1) + value / (count + 1), count + 1)
            self.logger.record(f"train/{name}", self._log_means[name][0])  # for callbacks, until the log is written
        self.logger.record_mean("time/seconds_per_update", time.perf_counter() - start)

    def _backward(self, rollout: Rollout, *, teacher_forcing: bool) -> dict[str, float]:
        """Add the gradients of a rollout to the parameters; return statistics for the log."""
        losses = self.losses(rollout, teacher_forcing=teacher_forcing)
        total: Tensor = sum(losses.values())  # type: ignore[assignment]
        if bool(total.isfinite()):  # else `_check_update` raises, with the losses in its message
            total.backward()
        self.decisions += rollout.n_decisions
        name = "imitation" if teacher_forcing else "sampled"
        agreement = torch.cat([step.teacher_agreement for step in rollout.steps]).mean()
        return {f"{name}_{key}": value.item() for key, value in losses.items()} | {
            f"{name}_agreement": agreement.item()
        }

    def losses(self, rollout: Rollout, *, teacher_forcing: bool) -> dict[str, Tensor]:
        """Compute the weighted terms of the loss of a rollout.

        Args:
            rollout: Episodes with gradients.
            teacher_forcing: If True, the imitation loss; otherwise the actor-critic loss.

        Returns:
            Name -> term, float (); their sum is the loss. With teacher forcing "error", the cross-entropy to the
            teacher's actions; otherwise "actor", "critic" and "entropy". With a consistency loss, its two terms too.

        Source:
            MTVM, equation 6 and the section on the consistency loss.
        """
        config = self.config
        steps = rollout.steps
        n_episodes = len(rollout.bootstrap_value)
        terms: dict[str, Tensor] = {}
        if teacher_forcing:
            cross_entropy = torch.cat([step.imitation_loss for step in steps])
            terms["error"] = config.imitation_weight * cross_entropy.sum() / n_episodes
        else:
            returns = discounted_returns(steps, rollout.bootstrap_value, config.gamma)
            values = torch.cat([step.values for step in steps]).float()
            log_probs = torch.cat([step.log_probs for step in steps])
            entropy = torch.cat([step.entropy for step in steps])
            advantages = returns - values
            terms["actor"] = -(log_probs * advantages.detach()).mean()
            terms["critic"] = config.value_coef * advantages.square().mean()
            terms["entropy"] = -config.entropy_coef * entropy.mean()
        if config.drops_words:
            cross_inconsistency = torch.cat([step.inconsistency for step in steps])
            terms["text_consistency"] = config.text_consistency * rollout.text_inconsistency.mean()
            terms["cross_consistency"] = config.cross_consistency * cross_inconsistency.mean()
        return terms

    def _progress(self) -> str:
        return f"after {self.num_timesteps} updates"

    def dump_logs(self) -> None:
        """Log the latest episodes and the number of decisions, and write the log."""
        self._record_episodes()
        for name, (mean, _) in self._log_means.items():
            self.logger.record(f"train/{name}", mean)
        self._log_means = {}
        self.logger.record("rollout/decisions", self.decisions)
        self.logger.dump(step=self.num_timesteps)

    def _process_state(self) -> dict[str, Any]:
        return {**super()._process_state(), "log_means": self._log_means}

    def _restore(self, saved: Checkpoint, rank: int) -> None:
        super()._restore(saved, rank)
        means = saved.states[rank].get("log_means", {})  # not in earlier files
        try:
            self._log_means = {str(name): (float(mean), int(count)) for name, (mean, count) in means.items()}
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"state.json: log_means must be name -> [mean, count], got {means!r}") from None
