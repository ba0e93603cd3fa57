"""Partial-update PPO: proximal policy optimisation that learns several times within one long rollout (ReLIC)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents import checkpoint
from agents.buffer import Sequences, TrialRolloutBuffer
from agents.distributions import ActionDistribution
from agents.memory import State
from agents.policies import PREVIOUS_ACTION, MemoryPolicy

PREFIX_GRADS = ("full", "detach", "window")
#: What an optimiser step reports, as logged.
STATISTICS = ("policy_gradient_loss", "value_loss", "entropy", "clip_fraction", "grad_norm")


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Settings of partial-update PPO; the defaults are ReLIC's but for sizes.

    Attributes:
        learning_rate: Step size of Adam, > 0; the largest one where it changes.
        warmup_steps: Environment steps over which it rises from a thousandth of `learning_rate`; >= 0.
        final_learning_rate: Where a cosine takes it by the end of `learn`, > 0; None keeps it constant.
        n_steps: Steps of a rollout in each environment, T; >= 2.
        n_updates: Updates in a rollout, K; divides n_steps. K - 1 partial ones and a full one; 1 is ordinary PPO.
        n_epochs: Passes over the data in each update; >= 1.
        batch_size: Sequences (environments) in an optimiser step; >= 1.
        micro_batch_tokens: Steps that go through the network at once; gradients of smaller pieces are added up; >= 1.
        gamma: Discount, in [0, 1].
        gae_lambda: Lambda of the advantages, in [0, 1].
        clip_range: Clip of the probability ratio, > 0.
        clip_range_vf: Clip of the value's change, > 0; None for none.
        normalize_advantage: Whether the advantages of an update get mean 0 and standard deviation 1.
        ent_coef: Weight of the entropy.
        vf_coef: Weight of the squared error of the value.
        max_grad_norm: Clip of the gradient's norm, > 0.
        prefix_grad: How a partial update treats the steps before its segment: "full" lets gradients through all of them, "detach" takes
            them from the memory's state as it was when the segment began, "window" recomputes them but lets gradients through
            the last `prefix_window` only.
        prefix_window: Steps, >= 1; for "window" only.
        shuffle_episodes: Whether completed episodes are put into a random order after each partial update.
        refresh_log_probs: Whether the log probabilities that the full update compares with are those of the weights and the order at the
            last refresh, instead of those recorded when acting.
        bootstrap_truncated: Whether an episode cut by the clock is credited with the value of what it did not see.
        reset_each_rollout: Whether a rollout begins with a reset to a new trial. None: if the environment has trials, if n_updates > 1, or
            if the memory keeps every step.
    """

    learning_rate: float = 2e-4
    warmup_steps: int = 0
    final_learning_rate: float | None = None
    n_steps: int = 512
    n_updates: int = 4
    n_epochs: int = 4
    batch_size: int = 32
    micro_batch_tokens: int = 32_768
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    clip_range_vf: float | None = 0.2
    normalize_advantage: bool = False
    ent_coef: float = 0.01
    vf_coef: float = 0.25
    max_grad_norm: float = 0.2
    prefix_grad: Literal["full", "detach", "window"] = "full"
    prefix_window: int = 256
    shuffle_episodes: bool = True
    refresh_log_probs: bool = False
    bootstrap_truncated: bool = False
    reset_each_rollout: bool | None = None

    def __post_init__(self) -> None:
        for name in ("n_updates", "n_epochs", "batch_size", "micro_batch_tokens", "prefix_window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.n_steps < 2:
            raise ValueError(f"n_steps must be at least 2, got {self.n_steps}")
        if self.n_steps % self.n_updates:
            raise ValueError(f"n_updates must divide n_steps ({self.n_steps}), got {self.n_updates}")
        for name in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("clip_range", "clip_range_vf", "max_grad_norm", "learning_rate", "final_learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be > 0, got {value}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if self.prefix_grad not in PREFIX_GRADS:
            raise ValueError(f"unknown prefix_grad {self.prefix_grad!r}; choose from {list(PREFIX_GRADS)}")

    @property
    def segment(self) -> int:
        """Steps between two updates, c."""
        return self.n_steps // self.n_updates

    def learning_rate_at(self, steps: int, total: int) -> float:
        """Learning rate after `steps` of `total` environment steps."""
        if steps < self.warmup_steps:
            return self.learning_rate * (0.001 + 0.999 * steps / self.warmup_steps)
        if self.final_learning_rate is None:
            return self.learning_rate
        done = min(1.0, (steps - self.warmup_steps) / max(1, total - self.warmup_steps))
        span = self.learning_rate - self.final_learning_rate
        return self.final_learning_rate + 0.5 * span * (1.0 + math.cos(math.pi * done))


class PartialUpdatePPO(OnPolicyAlgorithm):
    """PPO with a memory, K updates in a rollout, as a Stable-Baselines3 algorithm.

    After every c = T / K steps the policy learns from the steps since the last update, with the whole rollout so far as its context; then the
    completed episodes are shuffled and the memory is refilled with the new weights. The last update of a rollout learns from all T
    steps. The rollout then ends: the next one starts with a new trial and an empty memory.

    Args:
        policy: "MemoryPolicy" or a subclass of it.
        env: Any Gymnasium environment or `VecEnv`; `agents.make_vec_env` makes fast ones.
        config: Settings; None for the defaults.
        policy_kwargs: Settings of the policy.
        tensorboard_log: Folder for TensorBoard; None for none.
        verbose: 0 silent, 1 prints training logs.
        seed: Of everything random. No global generator is seeded.
        device: "auto", "cpu", "cuda".
        **overrides: Fields of the config to change.

    Raises:
        ValueError: A setting is not allowed.
        TypeError: A setting does not exist.

    Source:
        ReLIC, sections on partial updates and Sink-KV; order of operations as in its release.
    """

    policy: MemoryPolicy  # type: ignore[assignment]
    rollout_buffer: TrialRolloutBuffer  # type: ignore[assignment]
    policy_aliases = {"MemoryPolicy": MemoryPolicy}  # noqa: RUF012  (declared so by Stable-Baselines3)

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
        _init_setup_model: bool = True,
        **overrides: Any,
    ) -> None:
        known = [field.name for field in fields(PPOConfig)]
        for name in overrides:
            if name not in known:
                raise TypeError(f"unknown setting {name!r}; choose from {known}")
        self.config = replace(config or PPOConfig(), **overrides)
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
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
            supported_action_spaces=(spaces.Box, spaces.Discrete, spaces.MultiDiscrete),
        )

    # ------------------------------------------------------------------ set-up

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        seed = self.seed if self.seed is not None else int(np.random.default_rng().integers(2**31))
        with torch.random.fork_rng(devices=[]):  # weights from the seed; the global generator stays as it was
            torch.manual_seed(seed)
            policy = self.policy_class(
                self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
            ).to(self.device)
        assert isinstance(policy, MemoryPolicy)
        self.policy = policy
        self._trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.policy.generator = torch.Generator(self.device)
        self.rollout_buffer = self._make_buffer()
        self._state: State | None = None
        self._has_trials = False
        self._begun = False  # whether the environment was reset for the rollout that comes next
        self._resume_options: list[dict[str, Any]] | None = None
        self._log_due: int | None = None
        self._seed_generators(seed)
        if self.seed is not None and self.env is not None:
            self.env.seed(self.seed)

    def _make_buffer(self) -> TrialRolloutBuffer:
        return TrialRolloutBuffer(
            self.n_envs,
            self.config.n_steps,
            self.observation_space,
            self.action_space,
            self.device,
            self.policy.features_dim if self.policy.freeze_features else None,
        )

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Goes on in another environment, of any number of copies; the next rollout begins with a reset.

        Args:
            env: With the spaces of the model.
            force_reset: Must be True: a rollout cannot go on in another environment.

        Raises:
            ValueError: Other spaces, or `force_reset` is False.
        """
        if not force_reset:
            raise ValueError("force_reset must be True: a rollout cannot go on in another environment, got False")
        env = self._wrap_env(env, self.verbose)
        for name in ("observation_space", "action_space"):
            if getattr(env, name) != getattr(self, name):
                raise ValueError(f"{name} must be {getattr(self, name)}, got {getattr(env, name)}")
        if env.num_envs != self.n_envs:
            self.n_envs = env.num_envs
            self.rollout_buffer = self._make_buffer()
        super().set_env(env)
        self._state, self._has_trials, self._resume_options = None, False, None

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seeds every generator of the learner, and the environment; None leaves them. Nothing global is touched."""
        if seed is not None:
            self._seed_generators(seed)
            if self.env is not None:
                self.env.seed(seed)

    def _seed_generators(self, seed: int) -> None:
        draws = np.random.SeedSequence(seed).generate_state(4)
        self.policy.generator.manual_seed(int(draws[0]))
        memory_generator = getattr(self.policy.memory, "generator", None)
        if memory_generator is not None:
            memory_generator.manual_seed(int(draws[1]))
        self._order_rng = np.random.default_rng(int(draws[2]))
        self._shuffle_rng = np.random.default_rng(int(draws[3]))
        self.action_space.seed(seed)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if self.env is None:
            raise RuntimeError("learn was called without an environment; pass one to load, or call set_env")
        if reset_num_timesteps or self._last_obs is None:  # these are reset by Stable-Baselines3
            if self._resume_options is not None:
                self.env.set_options(self._resume_options)
                self._resume_options = None
            elif self._has_trials:
                self.env.set_options({"new_trial": True})
            self._begun, self._state = True, None
            self.rollout_buffer.reset()
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    # ------------------------------------------------------------------ collecting

    def collect_rollouts(self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Acts for one segment of c steps (not for `n_rollout_steps`, which is the whole rollout).

        Returns:
            False if the callback asked to stop.

        Raises:
            ValueError: The policy's outputs or a reward are not finite.
        """
        policy, buffer = self.policy, self.rollout_buffer
        policy.set_training_mode(False)
        if buffer.pos in (0, buffer.n_steps):
            self._begin_rollout(env)
        assert self._state is not None
        self._segment_begin, self._segment_state, self._is_segment_kept = buffer.pos, self._state, False
        callback.on_rollout_start()
        for _ in range(self.config.segment):
            observations = obs_as_tensor(self._last_obs, self.device)  # type: ignore[arg-type]
            with torch.no_grad():
                features = policy.features(observations)
                distribution, values, state = policy.step(features, self._state, self._episode_start, self._trial_start)
                actions = distribution.sample(policy.generator)
                log_probs = distribution.log_prob(actions)
            if not math.isfinite(float((log_probs + values).sum())):
                raise ValueError(
                    f"the policy's outputs must be finite, got NaN or infinity after {self.num_timesteps} steps; "
                    "lower learning_rate or max_grad_norm, or look at the observations"
                )
            previous = state[PREVIOUS_ACTION]
            episode_start, trial_start, last_obs = self._episode_start, self._trial_start, observations
            new_obs, rewards, dones, infos = env.step(policy.environment_actions(actions))
            if not np.isfinite(rewards).all():
                raise ValueError(f"rewards must be finite, got {rewards[~np.isfinite(rewards)]}")
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                self._drop_rollout()
                return False
            if dones.any():
                self._update_info_buffer(infos, dones)
            self._state = policy.remember_action(state, actions)
            self._last_obs = new_obs  # type: ignore[assignment]
            self._note_starts(env, dones)
            if self.config.bootstrap_truncated:
                rewards = rewards + self.gamma * self._truncated_values(dones, infos)
            buffer.add(
                last_obs, features, previous, episode_start, trial_start,
                actions, torch.as_tensor(rewards, device=self.device), values, log_probs,
            )  # fmt: skip
        self._last_values = self._value_of(self._last_obs, self._episode_start, self._trial_start)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _begin_rollout(self, env: VecEnv) -> None:
        """Empties the buffer and, where rollouts are trials, the memory and the environment."""
        self.rollout_buffer.reset()
        if self._state is None:
            self._has_trials = all("trial_start" in info for info in env.unwrapped.reset_infos)
            self.policy.resets_with_episode = not self._has_trials
        wanted = self.config.reset_each_rollout
        resets = self._has_trials or self.config.n_updates > 1 or not self.policy.memory.bounded
        if wanted is not None:
            if resets and not wanted and (self.config.n_updates > 1 or not self.policy.memory.bounded):
                raise ValueError(
                    f"reset_each_rollout must be True with n_updates {self.config.n_updates} and memory "
                    f"{self.policy.memory_name!r}, got False"
                )
            resets = wanted
        if self._state is None or resets:
            if not self._begun and not self._trials_are_fresh():
                if self._has_trials:
                    env.set_options({"new_trial": True})
                self._last_obs = env.reset()  # type: ignore[assignment]
            self._state = self.policy.initial_state(env.num_envs, max_steps=self.config.n_steps + 1)
            self._episode_start = torch.ones(env.num_envs, dtype=torch.bool, device=self.device)
            self._trial_start = self._episode_start.clone()
        self._begun = False

    def _drop_rollout(self) -> None:
        """Forgets a rollout that a callback has cut short; learning goes on with a reset."""
        self.rollout_buffer.reset()
        self._last_obs = None

    def _trials_are_fresh(self) -> bool:
        """Whether every environment has just begun a trial by itself."""
        return self._has_trials and self._state is not None and bool(self._trial_start.all())

    def _note_starts(self, env: VecEnv, dones: np.ndarray) -> None:
        """Which environments start an episode, and a trial, with the observation that came last."""
        self._last_episode_starts = dones
        if not dones.any():
            self._episode_start = self._trial_start = torch.zeros(len(dones), dtype=torch.bool, device=self.device)
            return
        trial = dones.copy()
        if self._has_trials:
            for i in np.flatnonzero(dones).tolist():
                trial[i] = env.unwrapped.reset_infos[i]["trial_start"]
        self._episode_start = torch.as_tensor(dones, device=self.device)
        self._trial_start = torch.as_tensor(trial, device=self.device)
        if self.config.prefix_grad == "detach" and trial.any() and not self._is_segment_kept:
            # acting on in a new trial writes over the old one, which the update of this segment still looks back on
            self._segment_state = {key: value.clone() for key, value in self._segment_state.items()}
            self._is_segment_kept = True

    def _value_of(self, observations: Any, episode_start: Tensor, trial_start: Tensor) -> Tensor:
        """Value of the next observation, float (N,), without keeping it in memory: the state's counters stay as they are."""
        with torch.no_grad():
            features = self.policy.features(obs_as_tensor(observations, self.device))
            assert self._state is not None
            return self.policy.step(features, self._state, episode_start, trial_start)[1]

    def _truncated_values(self, dones: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        """Value of the last observation of each episode that the clock cut, float32 (N,), 0 elsewhere."""
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos]) & dones
        if not cut.any():
            return np.zeros(len(cut), np.float32)
        if isinstance(self._last_obs, dict):
            observations: Any = {key: value.copy() for key, value in self._last_obs.items()}
            for i in np.flatnonzero(cut).tolist():
                for key, value in infos[i]["terminal_observation"].items():
                    observations[key][i] = value
        else:
            observations = np.array(self._last_obs)
            for i in np.flatnonzero(cut).tolist():
                observations[i] = infos[i]["terminal_observation"]
        never = torch.zeros(len(cut), dtype=torch.bool, device=self.device)
        return np.where(cut, self._value_of(observations, never, never).cpu().numpy(), 0.0).astype(np.float32)

    # ------------------------------------------------------------------ learning

    def train(self) -> None:
        """One update: partial on the last segment, or full at the end of the rollout."""
        config, buffer = self.config, self.rollout_buffer
        full = buffer.pos == config.n_steps
        begin, end = (0 if full else self._segment_begin), buffer.pos
        learning_rate = config.learning_rate_at(
            self.num_timesteps - self.n_envs * config.segment, self._total_timesteps
        )
        for group in self.policy.optimizer.param_groups:
            group["lr"] = learning_rate
        advantages, returns = buffer.advantages(
            begin, end, self._last_values, self._episode_start, config.gamma, config.gae_lambda
        )
        if config.normalize_advantage:
            advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
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
        self.logger.record(f"train/approx_kl_{kind}", self._approximate_kl(begin, end))
        spread = returns.var(correction=0)
        explained = 1.0 - (returns - targets[..., 1]).var(correction=0) / spread
        self.logger.record("train/explained_variance", float(explained) if float(spread) > 0 else float("nan"))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if not full:
            if config.shuffle_episodes:
                buffer.shuffle_episodes(end, self._shuffle_rng)
            self._refresh(end, last_of_rollout=end + config.segment == config.n_steps)
        if self._log_due is not None:
            super().dump_logs(self._log_due)
            self._log_due = None

    def dump_logs(self, iteration: int = 0) -> None:
        """Asks for a log; `learn` asks before the update and it is written after it, with what the update measured."""
        self._log_due = iteration

    def _all_rows(self) -> Tensor:
        return torch.arange(self.n_envs, device=self.device)

    def _batches(self) -> Iterator[Tensor]:
        """Environments of each optimiser step, int64 (B,), over all epochs."""
        size = min(self.config.batch_size, self.n_envs)
        for _ in range(self.config.n_epochs):
            order = torch.as_tensor(self._order_rng.permutation(self.n_envs), device=self.device)
            yield from order.split(size)

    def _optimise(self, rows: Tensor, begin: int, end: int, targets: Tensor) -> Tensor:
        """One optimiser step on the loss positions `begin` to `end` of some environments.

        Args:
            rows: int64, (B,); environments.
            begin: First position of the loss.
            end: One after the last.
            targets: float32, (N, end - begin, 4); log probability and value when acting, advantage, return.

        Returns:
            float32, one of each of `STATISTICS`.
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
        norm = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        self.policy.optimizer.step()
        return torch.cat([stats, norm[None]])

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
            with torch.no_grad():
                prefix, _ = self._inputs(rows, 0, start)
                _, state = memory.prefill(prefix, memory.initial_state(len(rows), max_steps=end), last=1)
            memory.train(training)
        x, sequences = self._inputs(rows, start, end)
        latent, _ = memory(x, state, last=end - begin)
        distribution, values = self.policy.heads(latent)
        return distribution, values, sequences.actions[:, begin - start :]

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
        x = self.policy.inputs(features, sequences.previous, sequences.episode_start, sequences.trial_start)
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
        policy, buffer = self.policy, self.rollout_buffer
        parts: list[State] = []
        for rows in self._all_rows().split(max(1, self.config.micro_batch_tokens // end)):
            with torch.no_grad():
                x, sequences = self._inputs(rows, 0, end)
                state = policy.memory.initial_state(len(rows), max_steps=self.config.n_steps + 1)
                latent, state = policy.memory.prefill(x, state, last=None if last_of_rollout else 1)
                parts.append(state)
                if last_of_rollout:
                    distribution, values = policy.heads(latent)
                    buffer.write(buffer.values, rows, end, values)
                    if self.config.refresh_log_probs:
                        buffer.write(buffer.log_probs, rows, end, distribution.log_prob(sequences.actions))
        merged = {key: torch.cat([part[key] for part in parts]) for key in parts[0]}
        self._state = merged | {PREVIOUS_ACTION: self._state[PREVIOUS_ACTION]}

    @torch.no_grad()
    def _approximate_kl(self, begin: int, end: int) -> float:
        """KL of the policy that acted from the present one, measured without dropout on a batch: mean of ratio - 1 - log ratio."""
        rows = self._all_rows()[: max(1, min(self.config.batch_size, self.config.micro_batch_tokens // end))]
        distribution, _, actions = self.evaluate(rows, begin, end)
        log_ratio = distribution.log_prob(actions) - self.rollout_buffer.ordered(
            self.rollout_buffer.log_probs, rows, begin, end
        )
        return float((log_ratio.exp() - 1.0 - log_ratio).mean())

    # ------------------------------------------------------------------ use

    def predict(  # type: ignore[override]
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: State | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, State]:
        """Actions and the next state; see `MemoryPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic)

    @property
    def at_rollout_boundary(self) -> bool:
        """Whether the model can be saved so that it resumes exactly: no rollout is half done."""
        return self.rollout_buffer.pos in (0, self.config.n_steps)

    def save(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Writes weights, optimiser, generators and settings to one file, without pickle; see `agents.checkpoint`."""
        checkpoint.save(self, path)

    @classmethod
    def load(  # type: ignore[override]
        cls, path: str | PathLike[str], env: GymEnv | None = None, device: torch.device | str = "auto", **overrides: Any
    ) -> Self:
        """The model of a file; see `agents.checkpoint.load`."""
        return checkpoint.load(cls, path, env, device, **overrides)
