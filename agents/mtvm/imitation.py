"""Imitation and advantage actor-critic in turn: how agents that follow instructions are taught."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor
from torch.nn.functional import cross_entropy

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.memory import State
from memenvs.agents.mtvm.consistency import drop_words, inconsistency
from memenvs.agents.mtvm.imitation_config import ImitationConfig
from memenvs.agents.mtvm.network import DecisionOutput
from memenvs.agents.mtvm.policy import MTVMPolicy
from memenvs.agents.mtvm.prevalent import load_prevalent
from memenvs.agents.mtvm.rollout import Rollout, RolloutStep, discounted_returns
from memenvs.agents.policies.distributions import Categorical
from memenvs.agents.vec_env import TrialVecEnv


class ImitationA2C(MemoryAlgorithm):
    """Teacher forcing and advantage actor-critic, as a Stable-Baselines3 algorithm for `MTVMPolicy`.

    An update is one step of AdamW on the sum of two losses: of a rollout in which the teacher acts, and of one, of other episodes, in which actions
    are drawn. Gradients flow through everything that is remembered. Both rollouts are one episode of each environment; episodes that are over leave
    the batch. Rollout r of a run plays trial r of each environment, so what is played follows from seed and number alone.

    Steps of this learner (`num_timesteps`, `learn(total_timesteps)`, logs) are updates. Everything is one process.

    Args:
        policy: "MTVMPolicy" or a subclass of it.
        env: `memenvs.agents.make_vec_env` of VLN-R2R or VLN-CVDN; its oracle is the teacher.
        config: Settings; None for the defaults.
        policy_kwargs: Settings of the policy.
        tensorboard_log: Folder for TensorBoard; None for none.
        verbose: 0 silent, 1 prints training logs.
        seed: Of everything random. No global generator is seeded for good: draws of an update happen inside `torch.random.fork_rng`.
        device: "auto", "cpu", "cuda".
        processes: This process alone (None), or a launch of one.
        **overrides: Fields of the config to change.

    Attributes:
        decisions: Environment steps that were learned from.

    Raises:
        ValueError: A setting is not allowed, the environment has no teacher, or there are several processes.
        TypeError: A setting does not exist.

    Source:
        MTVM, equation 6. Its release runs three processes that update one network without waiting, clips gradients that are still scaled and only
        the actor's; here there is one, and all gradients are clipped as they are.
    """

    config: ImitationConfig
    config_type = ImitationConfig
    rng_names = ()
    saved_attributes = ("decisions",)
    policy: MTVMPolicy
    default_policy = "MTVMPolicy"
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MTVMPolicy": MTVMPolicy}

    def __init__(
        self,
        policy: str | type[MTVMPolicy],
        env: GymEnv | str | None,
        config: ImitationConfig | None = None,
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
            raise ValueError(f"ImitationA2C learns in one process, got a launch of {self.processes.count}")
        weight_decay = (policy_kwargs or {}).get("weight_decay", self.config.weight_decay)
        if weight_decay != self.config.weight_decay:
            raise ValueError(
                f"weight_decay is a setting of the learner ({self.config.weight_decay}) and not of the policy, got {weight_decay} in policy_kwargs"
            )
        super().__init__(
            policy,
            env,
            self.config.learning_rate,
            policy_kwargs={**(policy_kwargs or {}), "weight_decay": self.config.weight_decay},
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            support_multi_env=True,
            seed=seed,
            supported_action_spaces=(spaces.Discrete,),
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        super()._setup_model()
        self.decisions = 0
        self._is_updating = False
        if self.config.drops_words and not self.policy.network.config.language:
            raise ValueError(
                "text_consistency and cross_consistency must be 0 where network.language is False: no word is read that could be dropped"
            )

    def _fit_env(self) -> None:
        if self.env is None:
            return
        env, config = self.env.unwrapped, self.policy.network.config
        if not isinstance(env, TrialVecEnv):
            raise ValueError(f"env must be of memenvs.agents.make_vec_env and have a teacher, got {env}")
        moves = env.env.task.max_episode_steps  # the last one where the clock cut an episode and what follows is valued
        if config.bank is not None:
            moves = min(config.bank, moves)
        needed = int(env.action_space.n) + (1 if config.history == "state" else moves)  # type: ignore[attr-defined]
        if needed > config.vision_positions:
            raise ValueError(
                f"vision_positions of the network must be at least {needed}, the actions and what can be remembered of an episode, got "
                f"{config.vision_positions}"
            )

    def load_features(self, path: str | PathLike[str]) -> None:
        """Starts with all weights of another learner's checkpoint (.zip), see `checkpoint.load_policy`, or with PREVALENT's, see `load_prevalent`."""
        if Path(path).suffix == ".zip":
            checkpoint.load_policy(self.policy, path)
        else:
            load_prevalent(self.policy.network, Path(path))

    # ------------------------------------------------------------------ learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 10,
        tb_log_name: str = "ImitationA2C",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Makes so many updates; see Stable-Baselines3's `BaseAlgorithm.learn`.

        Raises:
            ValueError: A loss or gradient is not finite; the message says when.
        """
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            callback.on_rollout_start()
            self._is_updating = True
            self.train()
            self._is_updating = False
            callback.on_rollout_end()
            if self.num_timesteps % log_interval == 0 or self.num_timesteps == total_timesteps:
                self.dump_logs()
            if not callback.on_step():
                break
        callback.on_training_end()
        return self

    def train(self) -> None:
        """Makes one update.

        Raises:
            ValueError: Loss or gradient are not finite; the weights are as they were.
        """
        begun, config, policy, update = time.perf_counter(), self.config, self.policy, self.num_timesteps
        assert self.env is not None
        noise = int(torch.randint(2**62, (), generator=policy.generator, device=policy.generator.device))
        policy.set_training_mode(True)
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(noise)
            policy.optimizer.zero_grad(set_to_none=True)
            stats = self._learn_from(self.play(self.env, 2 * update, taught=True), taught=True)
            if update >= config.imitation_updates:
                stats |= self._learn_from(self.play(self.env, 2 * update + 1, taught=False), taught=False)
        policy.set_training_mode(False)
        norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
        stats["grad_norm"] = norm.item()
        self._check_finite(stats)
        for group in policy.optimizer.param_groups:
            group["lr"] = config.learning_rate_at(update, max(self._total_timesteps, 1))
        policy.optimizer.step()
        self._n_updates += 1
        self.num_timesteps += 1
        for name, value in stats.items():
            self.logger.record_mean(f"train/{name}", value)
        self.logger.record_mean("time/seconds_per_update", time.perf_counter() - begun)

    def _learn_from(self, rollout: Rollout, *, taught: bool) -> dict[str, float]:
        """Adds the gradients of a rollout; returns numbers for the log."""
        losses = self.losses(rollout, taught=taught)
        total: Tensor = sum(losses.values())  # type: ignore[assignment]
        if bool(total.isfinite()):
            total.backward()
        self.decisions += rollout.n_decisions
        name = "imitation" if taught else "sampled"
        stats = {f"{name}_{key}": value.item() for key, value in losses.items()}
        agreed = torch.cat([step.teacher_agreement for step in rollout.steps])
        return stats | {f"{name}_agreement": agreed.mean().item()}

    def losses(self, rollout: Rollout, *, taught: bool) -> dict[str, Tensor]:
        """Terms of the loss, weighted, by name."""
        config, steps, episodes = self.config, rollout.steps, len(rollout.bootstrap_value)
        terms: dict[str, Tensor] = {}
        if taught:
            error = torch.cat([step.imitation_loss for step in steps])
            terms["error"] = config.imitation_weight * error.sum() / episodes
        else:
            returns = discounted_returns(steps, rollout.bootstrap_value, config.gamma)
            values = torch.cat([step.values for step in steps]).float()
            log_probs = torch.cat([step.log_probs for step in steps])
            missing = returns - values
            terms["actor"] = -(log_probs * missing.detach()).mean()
            terms["critic"] = config.value_coef * missing.square().mean()
            terms["entropy"] = -config.entropy_coef * torch.cat([step.entropy for step in steps]).mean()
        if config.drops_words:
            terms["text_consistency"] = config.text_consistency * rollout.text_inconsistency.mean()
            apart = torch.cat([step.inconsistency for step in steps])
            terms["cross_consistency"] = config.cross_consistency * apart.mean()
        return terms

    def _check_finite(self, stats: dict[str, float]) -> None:
        broken = ", ".join(f"{name} {value}" for name, value in stats.items() if not math.isfinite(value))
        if broken:
            raise ValueError(
                f"loss and gradient must be finite, got {broken} in update {self.num_timesteps + 1}; lower learning_rate or look at the rewards"
            )

    # ------------------------------------------------------------------ playing

    def play(self, env: VecEnv, number: int, *, taught: bool, episodes: Sequence[int] | None = None) -> Rollout:
        """Plays one episode of each environment, with gradients through all decisions.

        Args:
            env: A `TrialVecEnv`, N environments.
            number: Which trial of each.
            taught: Whether the teacher acts; else actions are drawn.
            episodes: (N,); numbers of the episodes to play; None for those of the trial.

        Raises:
            ValueError: A reward or an output of the policy is not finite.
        """
        assert isinstance(env.unwrapped, TrialVecEnv) and isinstance(self.action_space, spaces.Discrete)
        policy, network, count, device = self.policy, self.policy.network, env.num_envs, self.device
        asked: list[dict[str, int]] = [{}] * count if episodes is None else [{"episode": each} for each in episodes]
        env.set_options([{"trial": number, **options} for options in asked])
        seen: Any = env.reset()
        rows, state = np.arange(count), policy.initial_state(count)
        start = torch.ones(count, dtype=torch.bool, device=device)
        steps: list[RolloutStep] = []
        last, text_apart = torch.zeros(count, device=device), torch.zeros(count, device=device)
        while len(rows):
            observations = self._tensors(seen, rows)
            with self._precision():
                state = network.observe(observations, state, start)
                if not steps:
                    state, text_apart = self._read(observations, state)
                output, apart = self._decide(observations, state)
            distribution = Categorical(output.logits)
            if not bool(torch.isfinite(output.value).all()):
                raise ValueError(f"the policy's outputs must be finite, got NaN or infinity {self._when()}")
            teacher = torch.as_tensor(env.unwrapped.oracle_actions()[rows], device=device)
            actions = teacher if taught else distribution.sample(policy.generator)
            moves = np.full(count, int(self.action_space.n) - 1)  # who has finished goes on stopping
            moves[rows] = actions.cpu().numpy()
            seen, rewards, dones, infos = env.step(moves)
            if not np.isfinite(rewards[rows]).all():
                raise ValueError(f"rewards must be finite, got {rewards[rows]} {self._when()}")
            steps.append(
                RolloutStep(
                    rows=torch.as_tensor(rows, device=device),
                    log_probs=distribution.log_prob(actions),
                    entropy=distribution.entropy(),
                    values=output.value,
                    rewards=torch.as_tensor(rewards[rows], device=device),
                    imitation_loss=cross_entropy(output.logits.float(), teacher, reduction="none"),
                    teacher_agreement=(output.logits.argmax(1) == teacher).float(),
                    inconsistency=apart,
                )
            )
            state = network.record_action(observations, output, actions, state)
            over = dones[rows]
            if not taught and over.any():
                ended = rows[over].tolist()
                self._update_info_buffer([infos[i] for i in ended], np.ones(len(ended), bool))
                self._value_cut(state, rows, infos, last)
            going = torch.as_tensor(~over, device=device)
            if over.any():
                state, rows = self._rows_of(state, going), rows[~over]
            start = torch.zeros(len(rows), dtype=torch.bool, device=device)
        return Rollout(steps, last, text_apart)

    def _read(self, observations: dict[str, Tensor], state: State) -> tuple[State, Tensor]:
        """Prepares what an episode needs of its text, with all words and with dropped ones.

        Returns:
            The state with the two readings of each text, `encoded_texts` (B, 2, L, dim) and `text_masks` (B, 2, L), or one, and if views only hear it what they
            hear of each in each layer, `keys0`, `values0`, ... (B, 2, heads, L, dim / heads); and how far the two are apart, float (B,).
        """
        network, words = self.policy.network, state["text_mask"]
        texts, heard, apart = (
            state["encoded_text"][:, None],
            words[:, None],
            torch.zeros(len(words), device=self.device),
        )
        if self.config.drops_words:
            tokens, _ = network.instruction_tokens(observations)
            kept = drop_words(words, self.config.word_drop)
            other = network.encode_text(tokens, kept)
            apart = inconsistency(state["encoded_text"], other, words, self.config.consistency_axis)
            texts, heard = torch.stack([state["encoded_text"], other], 1), torch.stack([words, kept], 1)
        state |= {"encoded_texts": texts, "text_masks": heard}
        for number, pair in enumerate(network.text_keys_values(texts.flatten(0, 1))):
            for name, each in zip(("keys", "values"), pair, strict=True):
                state[f"{name}{number}"] = each.unflatten(0, (len(words), -1))
        return state, apart

    def _decide(self, observations: dict[str, Tensor], state: State) -> tuple[DecisionOutput, Tensor]:
        """A decision, and how far it is from that with dropped words, float (B,); both look at the same views and memory, in one batch."""
        network, axis, words = self.policy.network, self.config.consistency_axis, state["text_mask"]
        views, passes = network.encode_views(observations, state), state["encoded_texts"].shape[1]
        layers = 0 if network.config.two_way else network.config.cross_layers
        repeated = replace(
            views,
            embedded=views.embedded.repeat_interleave(passes, 0),
            mask=views.mask.repeat_interleave(passes, 0),
        )
        found = network.cross_attend(
            state["encoded_texts"].flatten(0, 1),
            state["text_masks"].flatten(0, 1),
            repeated,
            [(state[f"keys{n}"].flatten(0, 1), state[f"values{n}"].flatten(0, 1)) for n in range(layers)],
        )
        text, vision = (each.unflatten(0, (-1, passes)) for each in found)
        output = network.decide(text[:, 0], words, vision[:, 0], views)
        if passes == 1:
            return output, torch.zeros(len(words), device=self.device)
        apart = inconsistency(vision[:, 0], vision[:, 1], views.mask, axis)
        if network.config.two_way:  # else the text is what was read, which has its own term
            apart = apart + inconsistency(text[:, 0], text[:, 1], words, axis)
        return output, apart

    @staticmethod
    def _rows_of(state: State, which: Tensor) -> State:
        """Some rows of a state, bool (B,), its texts as long as the longest that is left."""
        state = {key: value[which] for key, value in state.items()}
        if not len(state["text_mask"]):
            return state
        length = int(state["text_mask"].any(0).nonzero().max()) + 1
        for key, value in state.items():
            if key in ("encoded_text", "text_mask"):
                state[key] = value[:, :length]
            elif key in ("encoded_texts", "text_masks"):
                state[key] = value[:, :, :length]
            elif key.startswith(("keys", "values")):
                state[key] = value[:, :, :, :length]
        return state

    @torch.no_grad()
    def _value_cut(self, state: State, rows: np.ndarray, infos: list[dict[str, Any]], last: Tensor) -> None:
        """Writes the values of the last observations of episodes that the clock has cut into `last`."""
        cut = np.array([bool(infos[i].get("TimeLimit.truncated", False)) for i in rows])
        if not cut.any():
            return
        ends = [infos[i]["terminal_observation"] for i in rows[cut]]
        observations = self._tensors(
            {key: np.stack([each[key] for each in ends]) for key in ends[0]}, np.arange(len(ends))
        )
        which = torch.as_tensor(cut, device=self.device)
        with self._precision():
            after = self.policy.network.observe(
                observations,
                {key: value[which] for key, value in state.items()},
                torch.zeros(len(ends), dtype=torch.bool, device=self.device),
            )
            last[torch.as_tensor(rows[cut], device=self.device)] = self.policy.decision(observations, after).value.to(
                last.dtype
            )

    def _tensors(self, seen: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, Tensor]:
        """Rows of observations as tensors of their own, decimals in the network's precision."""
        tensors = {key: torch.as_tensor(value[rows], device=self.device) for key, value in seen.items()}
        kind = self.policy.network.see.weight.dtype
        return {key: value.to(kind) if value.is_floating_point() else value for key, value in tensors.items()}

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")

    # ------------------------------------------------------------------ use

    def dump_logs(self) -> None:
        """Writes a log."""
        for key, name in (("r", "rollout/ep_rew_mean"), ("l", "rollout/ep_len_mean")):
            if self.ep_info_buffer:
                self.logger.record(name, safe_mean([info[key] for info in self.ep_info_buffer]))
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        self.logger.record("rollout/decisions", self.decisions)
        self.logger.dump(step=self.num_timesteps)

    @property
    def at_rollout_boundary(self) -> bool:
        """Whether the model can be saved so that it resumes exactly: no update is half done."""
        return not self._is_updating
