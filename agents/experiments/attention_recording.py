"""Attention of a ReLIC memory, recorded over a trial."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.experiments.play import play_trials
from memenvs.agents.memory import State, StepInputs
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.relic import RelicMemory, SinkBlock
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION, MemoryPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int
from memenvs.progress import Progress, no_progress


@torch.no_grad()
def attention_weights(memory: RelicMemory, x: StepInputs, state: State) -> Tensor:
    """Compute the attention weights of the next step in each layer; the state stays unchanged.

    Args:
        memory: The memory; dropout is off.
        x: Inputs of the step, B = T = 1.
        state: State before the step.

    Returns:
        float, (layers, heads, sinks + S); first the sink if there is one, then the S steps of the trial, the last of
        them this one. Each row sums to 1.
    """
    clock = StepClock.count(x.episode_start, x.trial_start, state)
    past = int(-clock.trial_first[0, 0].clamp(max=0))
    filled = memory.sinks + past
    rotation = memory.rotation(clock.episode_index) if memory.config.inter_episode else None
    unseen = 0 if memory.config.inter_episode else past + int(clock.episode_first[0, 0])  # steps of earlier episodes
    h = memory.input(x.embedding) + F.embedding(1 + clock.episode_step, memory.positions)
    layers = []
    for i, block in enumerate(memory.blocks):
        assert isinstance(block, SinkBlock)
        q, new = block.project(h, rotation, 1)
        kept = state["cache"][:, i, :, :, :filled]
        keys, values = torch.cat([kept.to(new.dtype), new.to(kept.dtype).to(new.dtype)], dim=3).unbind(1)
        scores = q @ keys.transpose(-1, -2) / memory.config.head_dim**0.5
        scores[..., memory.sinks : memory.sinks + unseen] = -torch.inf
        weights = scores.softmax(-1)
        layers.append(weights[0, :, 0])
        h = block.finish(h, weights @ values, None)
    return torch.stack(layers)


@dataclass(frozen=True)
class Recording:
    """Attention at some steps of one trial.

    Attributes:
        sinks: Leading entries of each attention that are no steps: 1 or 0.
        episodes: int64, (T,); the episode of each step, from 0.
        poses: float, (T, 3); pose before each step.
        weights: Step -> float, (layers, heads, sinks + step + 1); see `attention_weights`.
        goals: Name of a goal -> attention after the last step, as `weights`, with this goal in place of the real one;
            empty if observations show none.
    """

    sinks: int
    episodes: np.ndarray
    poses: np.ndarray
    weights: dict[int, np.ndarray]
    goals: dict[str, np.ndarray]


class _AttentionRecorder:
    """A policy with a ReLIC memory that records its attention before it acts, in one environment."""

    def __init__(self, policy: MemoryPolicy, env: TrialVecEnv, n_steps: int, at: Collection[int]) -> None:
        self._policy = policy
        self._task = env.env.task
        self._at = at
        self.episodes = np.zeros(n_steps, np.int64)
        self.poses = np.zeros((n_steps, 3))
        self.weights: dict[int, np.ndarray] = {}
        self._step = 0
        self._episode = -1

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Actions of the policy."""
        assert episode_start is not None
        if state is None:
            state = self._policy.initial_state(1, max_steps=len(self.episodes))
        t = self._step
        self._episode += int(episode_start[0])
        self.episodes[t] = self._episode
        self.poses[t] = self._task.info()["pose"][0]
        if t in self._at:
            self.weights[t] = _attention(self._policy, observation, state, episode_start)
        self._step += 1
        return self._policy.predict(observation, state, episode_start, deterministic, np.array([t == 0]))


def record_attention(
    policy: ActingPolicy,
    env: TrialVecEnv,
    n_steps: int,
    at: Collection[int],
    *,
    layout: int | None = None,
    progress: Progress = no_progress,
) -> Recording:
    """Play one trial and record the attention at some of its steps.

    Args:
        policy: Policy with a ReLIC memory.
        env: One environment whose trials do not end before `n_steps`.
        n_steps: Steps of the trial; >= 1.
        at: Steps at which attention is recorded, counted from 0.
        layout: Number of the layout; None takes that of the environment's own trial.
        progress: Called after each step.

    Raises:
        ValueError: Another memory, several environments, or a trial that ended early.
    """
    name = policy.memory_name if isinstance(policy, MemoryPolicy) else type(policy).__name__
    if not isinstance(policy, MemoryPolicy) or not isinstance(policy.memory, RelicMemory):
        raise ValueError(
            f"memory must be 'relic' to have its attention recorded, got {name!r}; the paths of an agent with any "
            "memory are drawn by `memenvs paths`"
        )
    if env.num_envs != 1:
        raise ValueError(f"env must be one environment, got {env.num_envs}")
    check_int("n_steps", n_steps)
    policy.set_training_mode(False)
    env.set_options({"new_trial": True} if layout is None else {"new_trial": True, "layout": layout})
    recorder = _AttentionRecorder(policy, env, n_steps, at)
    for t, step in enumerate(play_trials(recorder, env, env.reset()), 1):
        progress(t / n_steps)
        if t == n_steps:
            break
        if step.dones[0] and env.reset_infos[0]["trial_start"]:
            raise ValueError(f"the trial must go on for {n_steps} steps, it ended after {t}")
    goals = {}
    for number, name in env.env.task.goal_names.items():
        goal = np.zeros_like(step.observation["goal"])
        goal[0, number] = 1.0
        goals[name] = _attention(policy, {**step.observation, "goal": goal}, step.state, step.dones)
    return Recording(policy.memory.sinks, recorder.episodes, recorder.poses, recorder.weights, goals)


def _attention(policy: MemoryPolicy, observation: dict[str, np.ndarray], state: State, start: np.ndarray) -> np.ndarray:
    """Attention of the step that this observation begins, (layers, heads, sinks + S)."""
    assert isinstance(policy.memory, RelicMemory)
    tensors, _ = policy.obs_to_tensor(observation)
    episode = torch.as_tensor(start, device=policy.device)
    previous = torch.where(episode, 0, state[PREVIOUS_ACTION])
    no_trial_start = torch.zeros_like(episode)  # the trial goes on, or `state` is empty and thereby begins one
    with torch.no_grad():
        x = policy.memory_inputs(
            policy.features(tensors)[:, None], previous[:, None], episode[:, None], no_trial_start[:, None]
        )
    return attention_weights(policy.memory, x, state).cpu().numpy()
