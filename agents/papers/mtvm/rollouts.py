"""Rollouts for `ImitationA2C`: whole episodes, with gradients through all decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor
from torch.nn.functional import cross_entropy

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.memory import State
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.papers.mtvm.consistency import drop_words, inconsistency
from memenvs.agents.papers.mtvm.model import DecisionOutput
from memenvs.agents.papers.mtvm.policy import MTVMPolicy
from memenvs.agents.policies.distributions import Categorical
from memenvs.agents.vec_env import TrialVecEnv


@dataclass
class RolloutStep:
    """One decision of each of the B episodes, out of N, that are not over.

    Attributes:
        rows: int64, (B,); indices of their environments, 0 to N - 1.
        log_probs: float, (B,); log probabilities of the actions taken.
        entropy: float, (B,); entropies of the action distributions.
        values: float, (B,); values.
        rewards: float, (B,); rewards.
        imitation_loss: float, (B,); cross-entropies to the teacher's actions.
        teacher_agreement: float, (B,); 1 where the most likely action is the teacher's.
        inconsistency: float, (B,); distances to the pass with dropped words.
    """

    rows: Tensor
    log_probs: Tensor
    entropy: Tensor
    values: Tensor
    rewards: Tensor
    imitation_loss: Tensor
    teacher_agreement: Tensor
    inconsistency: Tensor


@dataclass
class Rollout:
    """One episode of each of N environments.

    Attributes:
        steps: Decisions in order.
        bootstrap_value: float, (N,); value of the last observation of episodes that the time limit truncated, else 0;
            without gradient.
        text_inconsistency: float, (N,); distance between the text encoded with all words and with dropped ones.
    """

    steps: list[RolloutStep]
    bootstrap_value: Tensor
    text_inconsistency: Tensor

    @property
    def n_decisions(self) -> int:
        """Number of decisions in all episodes."""
        return sum(len(step.rows) for step in self.steps)


class ImitationRolloutAlgorithm(MemoryAlgorithm):
    """A `MemoryAlgorithm` that plays episodes with `MTVMPolicy`; a teacher or the policy acts.

    With a consistency loss each decision is computed in two passes, one batch of 2 B sequences: pass 0 reads all words
    of an instruction, pass 1 reads it with dropped words. The decision is that of pass 0.
    """

    config: ImitationConfig
    config_type = ImitationConfig
    policy: MTVMPolicy
    default_policy = "MTVMPolicy"
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MTVMPolicy": MTVMPolicy}

    def play(
        self, env: VecEnv, number: int, *, teacher_forcing: bool, episodes: Sequence[int] | None = None
    ) -> Rollout:
        """Play one episode of each environment, with gradients through all decisions.

        Episodes that are over leave the batch: a decision is one of the B <= N episodes that still go on.

        Args:
            env: A `TrialVecEnv` of N environments.
            number: Number of the trial that each environment plays.
            teacher_forcing: If True, the teacher's actions are taken; otherwise actions are drawn.
            episodes: (N,); numbers of the episodes to play. None: those of the trial.

        Raises:
            ValueError: A reward or an output of the policy is not finite.
        """
        assert isinstance(env.unwrapped, TrialVecEnv) and isinstance(self.action_space, spaces.Discrete)
        network = self.policy.network
        n_envs = env.num_envs
        stop_action = int(self.action_space.n) - 1
        chosen: list[dict[str, int]] = [{}] * n_envs
        if episodes is not None:
            chosen = [{"episode_number": episode} for episode in episodes]
        env.set_options([{"trial": number, **options} for options in chosen])
        latest: Any = env.reset()
        rows = np.arange(n_envs)  # (B,); environments whose episode goes on
        state = self.policy.initial_state(n_envs)
        episode_start = torch.ones(n_envs, dtype=torch.bool, device=self.device)
        steps: list[RolloutStep] = []
        bootstrap_value = torch.zeros(n_envs, device=self.device)
        text_inconsistency = torch.zeros(n_envs, device=self.device)
        while len(rows):
            observations = self._rows_as_tensors(latest, rows)
            with self._autocast():
                state = network.observe(observations, state, episode_start)
                if not steps:
                    state, text_inconsistency = self._encode_instructions(observations, state)
                output, decision_inconsistency = self._decide(observations, state)
            distribution = Categorical(output.logits)
            self._check_outputs(bool(torch.isfinite(output.value).all()))
            teacher_actions = torch.as_tensor(env.unwrapped.oracle_actions()[rows], device=self.device)
            actions = teacher_actions if teacher_forcing else distribution.sample(self.policy.generator)
            env_actions = np.full(n_envs, stop_action)  # environments whose episode is over get the stop action
            env_actions[rows] = actions.cpu().numpy()
            latest, rewards, dones, infos = self._step_env(env, env_actions)
            steps.append(
                RolloutStep(
                    rows=torch.as_tensor(rows, device=self.device),
                    log_probs=distribution.log_prob(actions),
                    entropy=distribution.entropy(),
                    values=output.value,
                    rewards=torch.as_tensor(rewards[rows], device=self.device),
                    imitation_loss=cross_entropy(output.logits.float(), teacher_actions, reduction="none"),
                    teacher_agreement=(output.logits.argmax(1) == teacher_actions).float(),
                    inconsistency=decision_inconsistency,
                )
            )
            state = network.record_action(observations, output, actions, state)
            over = dones[rows]
            if not teacher_forcing and over.any():
                ended = rows[over].tolist()
                self._update_info_buffer([infos[i] for i in ended], np.ones(len(ended), bool))
                self._add_bootstrap_values(state, rows, infos, bootstrap_value)
            if over.any():
                state = self._select_rows(state, torch.as_tensor(~over, device=self.device))
                rows = rows[~over]
            episode_start = torch.zeros(len(rows), dtype=torch.bool, device=self.device)
        return Rollout(steps, bootstrap_value, text_inconsistency)

    def _encode_instructions(self, observations: dict[str, Tensor], state: State) -> tuple[State, Tensor]:
        """Encode the instructions for all passes of an episode, P = 1 or, with a consistency loss, 2.

        Returns:
            The state with `texts_by_pass` (B, P, L, D), `masks_by_pass` (B, P, L) and, for each cross layer in which
            views attend to a fixed text, `keys0`, `values0`, ... (B, P, heads, L, D / heads); and the inconsistency of
            the encoded instructions of the two passes, float (B,).
        """
        network = self.policy.network
        text = state["encoded_text"]  # (B, L, D)
        mask = state["text_mask"]  # (B, L)
        texts = text[:, None]
        masks = mask[:, None]
        difference = torch.zeros(len(mask), device=self.device)
        if self.config.drops_words:
            tokens, _ = network.instruction_tokens(observations)
            dropped_mask = drop_words(mask, self.config.word_drop)
            dropped_text = network.encode_text(tokens, dropped_mask)
            difference = inconsistency(text, dropped_text, mask, self.config.consistency_axis)
            texts = torch.stack([text, dropped_text], 1)  # (B, 2, L, D)
            masks = torch.stack([mask, dropped_mask], 1)  # (B, 2, L)
        state |= {"texts_by_pass": texts, "masks_by_pass": masks}
        for layer, (keys, values) in enumerate(network.text_keys_values(texts.flatten(0, 1))):
            state[f"keys{layer}"] = keys.unflatten(0, (len(mask), -1))  # (B * P, ...) -> (B, P, ...)
            state[f"values{layer}"] = values.unflatten(0, (len(mask), -1))
        return state, difference

    def _decide(self, observations: dict[str, Tensor], state: State) -> tuple[DecisionOutput, Tensor]:
        """Compute a decision in all passes.

        Returns:
            The decision of pass 0, and the inconsistency of the passes after the cross layers, float (B,).
        """
        network = self.policy.network
        axis = self.config.consistency_axis
        mask = state["text_mask"]  # (B, L)
        passes = state["texts_by_pass"].shape[1]
        views = network.encode_views(observations, state)
        repeated_views = replace(  # all passes attend to the same views: (B, ...) -> (B * P, ...)
            views,
            embedded=views.embedded.repeat_interleave(passes, 0),
            mask=views.mask.repeat_interleave(passes, 0),
        )
        fixed_layers = 0 if network.config.two_way else network.config.cross_layers
        text, vision = network.cross_attend(
            state["texts_by_pass"].flatten(0, 1),
            state["masks_by_pass"].flatten(0, 1),
            repeated_views,
            [(state[f"keys{n}"].flatten(0, 1), state[f"values{n}"].flatten(0, 1)) for n in range(fixed_layers)],
        )
        text = text.unflatten(0, (-1, passes))  # (B, P, L, D)
        vision = vision.unflatten(0, (-1, passes))  # (B, P, views, D)
        output = network.decide(text[:, 0], mask, vision[:, 0], views)
        if passes == 1:
            return output, torch.zeros(len(mask), device=self.device)
        difference = inconsistency(vision[:, 0], vision[:, 1], views.mask, axis)
        if network.config.two_way:  # else the text does not change in the cross layers
            difference = difference + inconsistency(text[:, 0], text[:, 1], mask, axis)
        return output, difference

    @staticmethod
    def _select_rows(state: State, selected: Tensor) -> State:
        """Select rows of a state, bool (B,); texts are cut to the longest one that is left."""
        state = {key: value[selected] for key, value in state.items()}
        if not len(state["text_mask"]):
            return state
        length = int(state["text_mask"].any(0).nonzero().max()) + 1
        for key, value in state.items():
            if key in ("encoded_text", "text_mask"):  # (B, L, ...)
                state[key] = value[:, :length]
            elif key in ("texts_by_pass", "masks_by_pass"):  # (B, P, L, ...)
                state[key] = value[:, :, :length]
            elif key.startswith(("keys", "values")):  # (B, P, heads, L, ...)
                state[key] = value[:, :, :, :length]
        return state

    @torch.no_grad()
    def _add_bootstrap_values(
        self, state: State, rows: np.ndarray, infos: list[dict[str, Any]], bootstrap_value: Tensor
    ) -> None:
        """Write the value of the last observation of each episode that the time limit truncated.

        Args:
            state: State after the last decision, B rows.
            rows: int64, (B,); environments of these rows.
            infos: Infos of the last step, N of them.
            bootstrap_value: float, (N,); written in place.
        """
        truncated = np.array([bool(infos[i].get("TimeLimit.truncated", False)) for i in rows])
        if not truncated.any():
            return
        last = [infos[i]["terminal_observation"] for i in rows[truncated]]
        stacked = {key: np.stack([observation[key] for observation in last]) for key in last[0]}
        observations = self._rows_as_tensors(stacked, np.arange(len(last)))
        selected = torch.as_tensor(truncated, device=self.device)
        with self._autocast():
            last_state = self.policy.network.observe(
                observations,
                {key: value[selected] for key, value in state.items()},
                torch.zeros(len(last), dtype=torch.bool, device=self.device),
            )
            values = self.policy.decision(observations, last_state).value
            bootstrap_value[torch.as_tensor(rows[truncated], device=self.device)] = values.to(bootstrap_value.dtype)

    def _rows_as_tensors(self, observations: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, Tensor]:
        """Rows of observations as tensors of their own, floats in the precision of the network's weights."""
        tensors = {key: torch.as_tensor(value[rows], device=self.device) for key, value in observations.items()}
        dtype = self.policy.network.see.weight.dtype
        return {key: value.to(dtype) if value.is_floating_point() else value for key, value in tensors.items()}

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")


def discounted_returns(steps: list[RolloutStep], bootstrap_value: Tensor, gamma: float) -> Tensor:
    """Compute the discounted return of each decision, in their order; without gradient.

    Args:
        steps: Decisions of each episode; an episode that is over has no more.
        bootstrap_value: float, (N,); value of what follows the last decision of each episode.
        gamma: Discount.

    Returns:
        float, (total number of decisions,).
    """
    following = bootstrap_value.clone()
    returns = []
    for step in reversed(steps):
        step_returns = step.rewards + gamma * following[step.rows]
        following[step.rows] = step_returns
        returns.append(step_returns)
    return torch.cat(returns[::-1])
