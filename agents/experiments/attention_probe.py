"""Attention of a ReLIC memory, recorded over a trial and classified by pattern."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from memenvs.agents.experiments.attention_figures import attention_figure, goals_figure
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.play import check_map, play_trials
from memenvs.agents.experiments.report import figure_png
from memenvs.agents.memory import State, StepInputs
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.relic import RelicMemory, SinkBlock
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION, MemoryPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int
from memenvs.cli.progress import Progress, no_progress, progress_bar
from memenvs.files import write_file

ON_SINK = 0.9
"""Mass on the sink from which a head is "all-on-sink"."""
OFF_SINK = 0.5
"""Mass on the sink in later episodes below which `sink_at_first` may hold."""
MOSTLY = 0.8
"""Share of the mass off the sink from which a head is "intra-episode" or "inter-episode"."""
UNIFORM = 0.9
"""Overlap with uniform attention from which a head is "uniform", as one that has not been trained is."""
INVARIANT = 0.5
"""Overlap of the attention of different episodes from which a head is "episode-invariant"."""
MIN_MASS = 0.1
"""Mass off the sink that a step must have to be compared with another one."""


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
            "memory are drawn by `memenvs-agents paths`"
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


@dataclass(frozen=True)
class Head:
    """Attention of one head over the recorded steps of a trial.

    Attributes:
        layer: From 0.
        head: From 0.
        sink: Mean mass on the sink.
        sink_first: Mean mass on the sink over the first episode; NaN if no step of it was recorded.
        sink_later: Mean mass on the sink over later episodes; `sink_first` if there are none.
        own: Of the mass off the sink in later episodes, the share on steps of the same episode; 1 if there is
            no such mass.
        earlier: Of the mass off the sink in later episodes, the share on steps of earlier episodes; 1 - `own`.
        evenness: Overlap (sum of minima) with uniform attention to all steps of the trial, both scaled to 1 off the
            sink. Mean over the recorded steps of later episodes with at least `MIN_MASS` off the sink; 0 if there are
            none.
        invariance: Overlap (sum of minima) of the attention of two steps of different episodes, each scaled to 1 off
            the sink. Mean over all pairs of recorded steps with at least `MIN_MASS` off the sink; 0 if there are none.
        pattern: "all-on-sink" if `sink` >= 0.9; else "uniform" if `evenness` >= 0.9; else "episode-invariant" if
            `invariance` >= 0.5; else "intra-episode" if `own` >= 0.8; else "inter-episode" if `earlier` >= 0.8; else
            "mixed".
        sink_at_first: True if the head is on the sink in the first episode only: `sink_first` >= 0.9 and
            `sink_later` < 0.5.

    Source:
        ReLIC, appendix on attention patterns; the paper shows the patterns, the thresholds are ours.
    """

    layer: int
    head: int
    sink: float
    sink_first: float
    sink_later: float
    own: float
    earlier: float
    evenness: float
    invariance: float
    pattern: str
    sink_at_first: bool


def describe_heads(recording: Recording) -> list[Head]:
    """Classify the attention of each head, layer by layer.

    Raises:
        ValueError: No step was recorded.
    """
    if not recording.weights:
        raise ValueError("the recording must have at least one step, got none")
    layers, heads, _ = next(iter(recording.weights.values())).shape
    return [_describe(recording, layer, head) for layer in range(layers) for head in range(heads)]


def describe_uniform(recording: Recording) -> Head:
    """Numbers of a head that attends equally to the sink and every step, for comparison."""
    weights = {t: np.full((1, 1, row.shape[-1]), 1.0 / row.shape[-1]) for t, row in recording.weights.items()}
    return _describe(replace(recording, weights=weights), 0, 0)


def _describe(recording: Recording, layer: int, head: int) -> Head:
    """Classify the attention of one head."""
    episodes = recording.episodes
    sinks = recording.sinks
    rows = {t: weights[layer, head].astype(np.float64) for t, weights in sorted(recording.weights.items())}
    on_sink = {t: float(row[:sinks].sum()) for t, row in rows.items()}
    sink = float(np.mean(list(on_sink.values())))
    first = [mass for t, mass in on_sink.items() if episodes[t] == 0]
    later = [mass for t, mass in on_sink.items() if episodes[t] > 0]
    sink_first = float(np.mean(first)) if first else float("nan")
    sink_later = float(np.mean(later)) if later else sink_first
    inside = sum(row[sinks:][episodes[: t + 1] == episodes[t]].sum() for t, row in rows.items() if episodes[t] > 0)
    outside = sum(row[sinks:][episodes[: t + 1] < episodes[t]].sum() for t, row in rows.items() if episodes[t] > 0)
    total = inside + outside
    own = float(inside / total) if total > 0 else 1.0
    earlier = float(outside / total) if total > 0 else 0.0
    scaled = {t: row[sinks:] / row[sinks:].sum() for t, row in rows.items() if row[sinks:].sum() >= MIN_MASS}
    overlaps = [np.minimum(row, 1.0 / len(row)).sum() for t, row in scaled.items() if episodes[t] > 0]
    evenness = float(np.mean(overlaps)) if overlaps else 0.0
    invariance = _invariance(scaled, episodes)
    if sink >= ON_SINK:
        pattern = "all-on-sink"
    elif evenness >= UNIFORM:
        pattern = "uniform"
    elif invariance >= INVARIANT:
        pattern = "episode-invariant"
    elif own >= MOSTLY:
        pattern = "intra-episode"
    elif earlier >= MOSTLY:
        pattern = "inter-episode"
    else:
        pattern = "mixed"
    sink_at_first = sink_first >= ON_SINK and sink_later < OFF_SINK
    return Head(layer, head, sink, sink_first, sink_later, own, earlier, evenness, invariance, pattern, sink_at_first)


def _invariance(scaled: dict[int, np.ndarray], episodes: np.ndarray) -> float:
    """Mean overlap of the attention of steps of different episodes; `scaled` has the mass off the sink, scaled to 1."""
    overlaps = [
        np.minimum(scaled[early], scaled[late][: early + 1]).sum()
        for early, late in itertools.combinations(scaled, 2)
        if episodes[early] != episodes[late]
    ]
    return float(np.mean(overlaps)) if overlaps else 0.0


def _figures(
    map_image: np.ndarray, pixels: np.ndarray, recording: Recording, heads: Sequence[Head]
) -> dict[str, Figure]:
    """Draw each head, averaged over recorded steps of the last episode; and the head that depends on the goal most.

    For `map_image` and `pixels` see `attention_figure`.
    """
    sinks = recording.sinks
    episodes = recording.episodes
    last = max(recording.weights)
    steps = [t for t in recording.weights if episodes[t] == episodes[last]]
    mean = np.zeros_like(recording.weights[last][..., sinks:])
    for t in steps:
        mean[..., : t + 1] += recording.weights[t][..., sinks:] / len(steps)
    panels = [
        (
            f"layer {each.layer}, head {each.head}: {each.pattern}\nsink {each.sink:.0%}, own episode {each.own:.0%}",
            mean[each.layer, each.head],
        )
        for each in heads
    ]
    title = f"attention in episode {episodes[last] + 1}, recorded steps: {len(steps)}; areas are shares"
    figures = {"attention.png": attention_figure(map_image, pixels, episodes, panels, mean.shape[1], title)}
    if recording.goals:
        goals = {name: weights[..., sinks:-1] for name, weights in recording.goals.items()}
        figures["attention_goals.png"] = goals_figure(map_image, pixels, episodes, goals)
    return figures


def probe_run(
    run: RunDirectory,
    folder: Path,
    *,
    steps: int | None = None,
    count: int = 100,
    layout: int | None = None,
    seed: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Record the attention in one evaluation trial of a run and write it as JSON and figures.

    The files are `attention.json`, `attention.png` and, if observations show a goal, `attention_goals.png`.

    Args:
        run: Folder of a run with a ReLIC memory.
        folder: Folder to write to.
        steps: Steps of the trial; None for the run's `eval_steps`.
        count: Number of steps at which attention is recorded, spread evenly; >= 1.
        layout: Number of the layout; None for a drawn one.
        seed: Seed of the trial and of the actions drawn.
        quiet: Show no progress bar.

    Returns:
        The content of `attention.json`:

        - `steps`: The recorded steps.
        - `episodes`: The episode of each of them.
        - `heads`: See `Head`.
        - `uniform`: The same for a head with uniform attention.
        - `goals`: Name of the goal shown after the trial -> for each head the mass on the sink, and the step with the
          most attention.
        - `files`: Paths of all files.

    Raises:
        FileNotFoundError: The run has no checkpoint.
        ValueError: It has another memory, a number is out of range, or the task has no map on which to place poses.
    """
    total = run.config.eval_steps if steps is None else steps
    check_int("steps", total)
    check_int("count", count)
    policy = trained_policy(run, seed)
    env = evaluation_env(run.config, 1, seed)
    if not isinstance(env, TrialVecEnv):
        raise ValueError(f"env must be a task of memenvs to be probed, got {run.config.env!r}")
    check_map(env, "draw_map", "map_pixels")
    at = np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int)).tolist()
    try:
        with progress_bar("playing the agent", quiet=quiet) as progress:
            recording = record_attention(policy, env, total, set(at), layout=layout, progress=progress)
        heads = describe_heads(recording)
        task = env.env.task
        map_image = task.draw_map(0, recording.poses[-1:])
        pixels = task.map_pixels(0, recording.poses)
    finally:
        env.close()
    figures = _figures(map_image, pixels, recording, heads)
    result = {
        "steps": at,
        "episodes": recording.episodes[at].tolist(),
        "heads": [asdict(head) for head in heads],
        "uniform": asdict(describe_uniform(recording)),
        "goals": {name: _goal_row(weights, recording) for name, weights in recording.goals.items()},
        "files": [str(folder / name) for name in ("attention.json", *figures)],
    }
    write_file(folder / "attention.json", json.dumps(result, indent=1).encode())
    for name, figure in figures.items():
        write_file(folder / name, figure_png(figure))
    return result


def _goal_row(weights: np.ndarray, recording: Recording) -> list[dict[str, Any]]:
    """Mass on the sink and step with the most attention of each head, when a goal is shown."""
    sinks = recording.sinks
    rows = []
    for layer, head in np.ndindex(weights.shape[:2]):
        row = weights[layer, head]
        past = row[sinks : sinks + len(recording.episodes)]
        rows.append(
            {
                "layer": layer,
                "head": head,
                "sink": float(row[:sinks].sum()),
                "most": int(past.argmax()),
                "most_mass": float(past.max()),
                "most_episode": int(recording.episodes[past.argmax()]),
            }
        )
    return rows
