"""Which words an agent heeds at each decision of an episode, drawn beside the way it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.experiments.play import play_trials
from memenvs.agents.mtvm.policy import MTVMPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.vln.env import GraphNavigation

#: Words in a row of the picture.
ROW = 60


@dataclass(frozen=True, eq=False)
class WordAttention:
    """An episode and what was heeded of its text.

    Attributes:
        id: Of the instruction.
        words: The tokens of the text, L.
        attention: float32, (T, L); by decision, how much the option that was taken heard of each word in the last cross layer, a mean over
            heads; each row adds up to 1.
        moves: What was done at each decision, T.
        map: uint8, (512, 512, 3); the graph with annotated path (blue) and walk (orange).
        metrics: Of the episode, by name.
    """

    id: str
    words: tuple[str, ...]
    attention: np.ndarray
    moves: tuple[str, ...]
    map: np.ndarray
    metrics: dict[str, float]


class _WordAttentionRecorder:
    """A policy that takes its most likely actions and records the attention of the chosen option to each word.

    Attributes:
        attention: float32, (L,), of each decision.
    """

    def __init__(self, policy: MTVMPolicy) -> None:
        self._policy = policy
        self.attention: list[np.ndarray] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """The most likely actions and the next state."""
        policy = self._policy
        network = policy.network
        state = policy.initial_state(1) if state is None else state
        tensors, _ = policy.obs_to_tensor(observation)
        assert isinstance(tensors, dict)
        state = network.observe(tensors, state, torch.as_tensor(episode_start, device=policy.device))
        output = policy.decision(tensors, state)
        actions = output.logits.argmax(1)
        available = output.views.available_actions
        view = output.vision.shape[1] - len(available) + int(torch.searchsorted(available, actions)[0])
        weights = network.word_attention(state["encoded_text"], state["text_mask"], output.views)
        self.attention.append(weights[0, view].float().cpu().numpy())
        return actions.cpu().numpy(), network.record_action(tensors, output, actions, state)


@torch.no_grad()
def record_word_attention(policy: MTVMPolicy, env: TrialVecEnv, episode: int) -> WordAttention:
    """Plays an episode by the most likely actions.

    Args:
        policy: What plays; it must read the text.
        env: One environment of VLN-R2R or VLN-CVDN.
        episode: Its number in the split.

    Raises:
        ValueError: The policy does not read the text, or there are several environments.
    """
    task = env.env.task
    assert isinstance(task, GraphNavigation)
    if not policy.network.config.language:
        raise ValueError("policy must read the text, got one with language off")
    if env.num_envs != 1:
        raise ValueError(f"env must be one environment, got {env.num_envs}")
    policy.set_training_mode(False)
    env.set_options([{"episode": episode}])
    observation = env.reset()
    assert isinstance(observation, dict)
    numbers = observation["instruction"][0]
    words = tuple(task.tokenizer.tokens[number] for number in numbers.tolist() if number)
    poses = [task.info()["pose"][0].copy()]
    recorder = _WordAttentionRecorder(policy)
    moves = []
    for step in play_trials(recorder, env, observation):
        action = int(step.actions[0])
        moves.append("stop" if action == task.stop else f"candidate {action}")
        poses.append(step.infos[0]["pose"] if step.dones[0] else task.info()["pose"][0].copy())
        if step.dones[0]:
            break
    info = step.infos[0]
    env.set_options([{}])
    return WordAttention(
        id=str(info["instr_id"]),
        words=words,
        attention=np.stack(recorder.attention),
        moves=tuple(moves),
        map=task.draw_map(0, np.stack(poses)),
        metrics={name: float(info[name]) for name in ("sr", "sdtw", "ne")},
    )


def word_attention_figure(found: WordAttention) -> Figure:
    """The map, and under it words by decision, darker where more is heard."""
    rows = -(-len(found.words) // ROW)
    high = 0.25 * len(found.moves) + 0.9  # inches of a row of words
    figure = Figure(figsize=(12, 5 + rows * high), dpi=100, layout="constrained")
    top, *below = figure.subplots(rows + 1, 1, gridspec_kw={"height_ratios": [5, *[high] * rows]})
    top.imshow(found.map)
    top.axis("off")
    done = "arrived" if found.metrics["sr"] > 0 else f"{found.metrics['ne']:.1f} m off"
    most = float(found.attention.max())
    top.set_title(
        f"{found.id}: {done}, SDTW {found.metrics['sdtw']:.2f}; the darkest word has {most:.2f} of the attention, evenly each would have "
        f"{1 / len(found.words):.2f}"
    )
    for row, axes in enumerate(below):
        part = slice(row * ROW, (row + 1) * ROW)
        words = found.words[part]
        shown = np.full((len(found.moves), ROW), np.nan)
        shown[:, : len(words)] = found.attention[:, part]
        axes.imshow(shown, vmin=0.0, vmax=most, cmap="Blues", aspect="auto")
        axes.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
        axes.set_yticks(range(len(found.moves)), [f"{k + 1}: {move}" for k, move in enumerate(found.moves)], fontsize=7)
        axes.spines[:].set_visible(False)
    return figure
