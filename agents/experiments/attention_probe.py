"""Where the attention of a relic memory goes: recorded over a trial, told apart by pattern; `probe_figures.py` draws it."""

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
from memenvs.agents.experiments.report import figure_png
from memenvs.agents.memory import State, StepInputs
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.relic import RelicMemory, SinkBlock
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION, MemoryPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int
from memenvs.files import write_file

#: Mass on the sink from which a head is "all-on-sink", and under which it is not any more.
ON_SINK, OFF_SINK = 0.9, 0.5
#: Share of what is not on the sink that lies within the episode, or before it.
MOSTLY = 0.8
#: Overlap with uniform attention from which a head is "uniform", as one that has not been trained is.
EVEN = 0.9
#: Overlap of the attention of different episodes from which a head is "episode-invariant".
SAME = 0.5
#: Mass off the sink that a step must have to be compared with another one.
ENOUGH = 0.1


@torch.no_grad()
def attention_weights(memory: RelicMemory, x: StepInputs, state: State) -> Tensor:
    """Attention that the next step would pay, layer by layer; the state stays as it is.

    Args:
        memory: The memory; dropout is off.
        x: The step, B = T = 1.
        state: What came before.

    Returns:
        float, (layers, heads, sinks + S); first the sink if there is one, then the S steps of the trial, the last of them this one;
        sums to 1.
    """
    clock = StepClock.read(x.episode_start, x.trial_start, state)
    past = int(-clock.trial_first[0, 0].clamp(max=0))
    filled = memory.sinks + past
    rotation = memory._rotation(clock.episode_index) if memory.config.inter_episode else None
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
        sinks: Entries of each attention that are no steps: 1 or 0, at the front.
        episodes: int64, (T,); the episode of each step, from 0.
        poses: float, (T, 3); where each step was.
        weights: Step -> float, (layers, heads, sinks + step + 1); see `attention_weights`.
        goals: Name of a goal -> the same after the last step, with this goal in place of the real one; empty if observations show none.
    """

    sinks: int
    episodes: np.ndarray
    poses: np.ndarray
    weights: dict[int, np.ndarray]
    goals: dict[str, np.ndarray]


def record(
    policy: ActingPolicy, env: TrialVecEnv, n_steps: int, at: Collection[int], *, layout: int | None = None
) -> Recording:
    """Plays one trial and records the attention at some of its steps.

    Args:
        policy: With a relic memory.
        env: One environment whose trials do not end before `n_steps`.
        n_steps: Steps of the trial; >= 1.
        at: Steps at which attention is recorded, counted from 0.
        layout: Number of the layout; None takes that of the environment's own trial.

    Raises:
        ValueError: Another memory, several environments, or a trial that ended early.
    """
    name = policy.memory_name if isinstance(policy, MemoryPolicy) else type(policy).__name__
    if not isinstance(policy, MemoryPolicy) or not isinstance(policy.memory, RelicMemory):
        raise ValueError(
            f"memory must be 'relic' to have its attention recorded, got {name!r}; what an agent with any memory does, "
            "step by step on the map, is drawn by `python -m memenvs.agents paths`"
        )
    if env.num_envs != 1:
        raise ValueError(f"env must be one environment, got {env.num_envs}")
    check_int("n_steps", n_steps)
    policy.set_training_mode(False)
    env.set_options({"new_trial": True} if layout is None else {"new_trial": True, "layout": layout})
    observation, start = env.reset(), np.ones(1, bool)
    state = policy.initial_state(1, max_steps=n_steps)
    episodes, poses, weights = np.zeros(n_steps, np.int64), np.zeros((n_steps, 3)), {}
    episode = -1
    for t in range(n_steps):
        episode += int(start[0])
        episodes[t], poses[t] = episode, env.env.task.info()["pose"][0]
        if t in at:
            weights[t] = _attention(policy, observation, state, start)
        actions, state = policy.predict(observation, state, start)
        observation, _, start, _ = env.step(actions)
        if start[0] and env.reset_infos[0]["trial_start"] and t + 1 < n_steps:
            raise ValueError(f"the trial must go on for {n_steps} steps, it ended after {t + 1}")
    goals = {}
    for number, name in env.env.task.goal_names.items():
        goal = np.zeros_like(observation["goal"])
        goal[0, number] = 1.0
        goals[name] = _attention(policy, {**observation, "goal": goal}, state, start)
    return Recording(policy.memory.sinks, episodes, poses, weights, goals)


def _attention(policy: MemoryPolicy, observation: dict[str, np.ndarray], state: State, start: np.ndarray) -> np.ndarray:
    """Attention of the step that this observation begins."""
    assert isinstance(policy.memory, RelicMemory)
    tensors, _ = policy.obs_to_tensor(observation)
    episode = torch.as_tensor(start, device=policy.device)
    previous = torch.where(episode, 0, state[PREVIOUS_ACTION])
    with torch.no_grad():
        x = policy.memory_inputs(
            policy.features(tensors)[:, None], previous[:, None], episode[:, None], torch.zeros_like(episode)[:, None]
        )
    return attention_weights(policy.memory, x, state).cpu().numpy()


@dataclass(frozen=True)
class Head:
    """What one head attends to, over the recorded steps of a trial.

    Attributes:
        layer: From 0.
        head: From 0.
        sink: Mean mass on the sink.
        sink_first: The same over the first episode.
        sink_later: The same over the later episodes; as `sink_first` if there are none.
        own: Of the mass off the sink in later episodes, the share on steps of the same episode; `own` and `earlier` leave the sink out.
        earlier: The rest of it: on steps of earlier episodes.
        evenness: Overlap (sum of minima) with attention that pays every step of the trial the same, both scaled to 1 off the sink; mean
            over the recorded steps of later episodes that have a tenth off the sink; 0 without any.
        invariance: How much of their attention steps of different episodes pay to the very same steps: overlap (sum of minima) of two
            distributions, each scaled to 1 off the sink; mean over all pairs of recorded steps that have a tenth off the sink; 0 without any.
        pattern: "all-on-sink" if `sink` >= 0.9; else "uniform" if `evenness` >= 0.9; else "episode-invariant" if `invariance` >= 0.5; else
            "intra-episode" if `own` >= 0.8; else "inter-episode" if `earlier` >= 0.8; else "mixed".
        sink_at_first: Whether everything is on the sink in the first episode only: `sink_first` >= 0.9 and `sink_later` < 0.5.

    Source:
        ReLIC, appendix on attention patterns; the article shows the patterns, the numbers are ours.
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
    """What each head attends to, layer by layer.

    Raises:
        ValueError: No step was recorded.
    """
    if not recording.weights:
        raise ValueError("the recording must have at least one step, got none")
    layers, heads, _ = next(iter(recording.weights.values())).shape
    return [_describe(recording, layer, head) for layer in range(layers) for head in range(heads)]


def describe_uniform(recording: Recording) -> Head:
    """The same numbers of a head that pays the sink and every step alike: what the others are to be compared with."""
    weights = {t: np.full((1, 1, row.shape[-1]), 1.0 / row.shape[-1]) for t, row in recording.weights.items()}
    return _describe(replace(recording, weights=weights), 0, 0)


def _describe(recording: Recording, layer: int, head: int) -> Head:
    episodes, sinks = recording.episodes, recording.sinks
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
    own, earlier = (float(inside / total), float(outside / total)) if total > 0 else (1.0, 0.0)
    scaled = {t: row[sinks:] / row[sinks:].sum() for t, row in rows.items() if row[sinks:].sum() >= ENOUGH}
    even = [np.minimum(row, 1.0 / len(row)).sum() for t, row in scaled.items() if episodes[t] > 0]
    evenness = float(np.mean(even)) if even else 0.0
    invariance = _invariance(scaled, episodes)
    if sink >= ON_SINK:
        pattern = "all-on-sink"
    elif evenness >= EVEN:
        pattern = "uniform"
    elif invariance >= SAME:
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
    """Mean overlap of the attention of steps of different episodes; `scaled` has what is off the sink by step, scaled to 1."""
    overlaps = [
        np.minimum(scaled[early], scaled[late][: early + 1]).sum()
        for early, late in itertools.combinations(scaled, 2)
        if episodes[early] != episodes[late]
    ]
    return float(np.mean(overlaps)) if overlaps else 0.0


def _figures(picture: np.ndarray, pixels: np.ndarray, recording: Recording, heads: Sequence[Head]) -> dict[str, Figure]:
    """A panel for each head (mean over the recorded steps of the last episode) and, of the head that heeds the goal most, for each goal."""
    sinks, episodes = recording.sinks, recording.episodes
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
    figures = {"attention.png": attention_figure(picture, pixels, episodes, panels, mean.shape[1], title)}
    if recording.goals:
        goals = {name: weights[..., sinks:-1] for name, weights in recording.goals.items()}
        figures["attention_goals.png"] = goals_figure(picture, pixels, episodes, goals)
    return figures


def probe_run(
    run: RunDirectory,
    folder: Path,
    *,
    steps: int | None = None,
    count: int = 100,
    layout: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Plays one evaluation trial of a run and writes `attention.json`, `attention.png` and, if observations show a goal, `attention_goals.png`.

    Args:
        run: The folder of a run with a relic memory.
        folder: Where to write.
        steps: Steps of the trial; None for the run's `eval_steps`.
        count: Steps at which attention is recorded, spread evenly; >= 1.
        layout: Number of the layout; None for a drawn one.
        seed: Of the trial and of the actions drawn.

    Returns:
        What `attention.json` holds: `steps` (recorded), `episodes` of these steps, `heads` (see `Head`), `uniform` (the
        same of uniform attention), `goals` (for each goal shown after the trial, by name: the masses of each head, and the step attended to most) and
        `files`.

    Raises:
        FileNotFoundError: The run has no checkpoint.
        ValueError: It has another memory, or a number is out of range.
        NotImplementedError: The environment cannot place a pose on its map.
    """
    total = run.config.eval_steps if steps is None else steps
    check_int("steps", total)
    check_int("count", count)
    policy = trained_policy(run, seed)
    env = evaluation_env(run.config, 1, seed)
    if not isinstance(env, TrialVecEnv):
        raise ValueError(f"env must be one of this project to be probed, got {run.config.env!r}")
    at = np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int)).tolist()
    try:
        recording = record(policy, env, total, set(at), layout=layout)
        heads = describe_heads(recording)
        task = env.env.task
        picture, pixels = task.draw_map(0, recording.poses[-1:]), task.map_pixels(0, recording.poses)
    finally:
        env.close()
    figures = _figures(picture, pixels, recording, heads)
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
    """Of each head, what it attends to when a goal is shown."""
    sinks, rows = recording.sinks, []
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
