"""Attention of an MTVM agent to the words of its instruction, and a figure of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.experiments.play import play_trials
from memenvs.agents.papers.mtvm.policy import MTVMPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.vln.env import GraphNavigation

#: Words in a row of the figure.
WORDS_PER_ROW = 60


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Attention to words in an episode of T decisions.

    Attributes:
        id: Id of the instruction.
        words: Tokens of the text, L.
        attention: float32, (T, L); attention weights of the chosen option to each word in the last cross layer,
            averaged over heads; each row sums to 1.
        actions: Names of the actions taken, T.
        map: uint8, (512, 512, 3); the graph with the annotated path (blue) and the agent's path (orange).
        metrics: "sr", "sdtw" and "ne" (m) of the episode.
    """

    id: str
    words: tuple[str, ...]
    attention: np.ndarray
    actions: tuple[str, ...]
    map: np.ndarray
    metrics: dict[str, float]


class _WordAttentionRecorder:
    """Takes the most likely actions of a policy and records their attention to words; for one environment.

    Attributes:
        attention: float32, (L,), for each decision; see `WordAttention.attention`.
    """

    def __init__(self, policy: MTVMPolicy) -> None:
        self._policy = policy
        self.attention: list[np.ndarray] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return the most likely action, int64 (1,), and the next state; `deterministic` or not."""
        policy = self._policy
        network = policy.network
        state = policy.initial_state(1) if state is None else state
        tensors, _ = policy.obs_to_tensor(observation)
        assert isinstance(tensors, dict)
        state = network.observe(tensors, state, torch.as_tensor(episode_start, device=policy.device))
        output = policy.decision(tensors, state)
        actions = output.logits.argmax(1)
        available = output.views.available_actions
        # The view of the action taken. Views are V - K tokens of the memory, then the K candidates of `available`.
        view = output.vision.shape[1] - len(available) + int(torch.searchsorted(available, actions)[0])
        weights = network.word_attention(state["encoded_text"], state["text_mask"], output.views)
        self.attention.append(weights[0, view].float().cpu().numpy())
        return actions.cpu().numpy(), network.record_action(tensors, output, actions, state)


@torch.no_grad()
def record_word_attention(policy: MTVMPolicy, env: TrialVecEnv, episode: int) -> WordAttention:
    """Play an episode by the most likely actions and record the attention to words.

    Args:
        policy: Policy that reads the text.
        env: One environment of VLN-R2R or VLN-CVDN.
        episode: Number of the episode in the split, as in the reset option `episode_number`.

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
    env.set_options([{"episode_number": episode}])
    observation = env.reset()
    assert isinstance(observation, dict)
    token_ids = observation["instruction"][0].tolist()
    words = tuple(task.tokenizer.tokens[token] for token in token_ids if token)  # 0 is padding
    poses = [task.info()["pose"][0].copy()]
    recorder = _WordAttentionRecorder(policy)
    actions = []
    for step in play_trials(recorder, env, observation):
        action = int(step.actions[0])
        actions.append("stop" if action == task.stop else f"candidate {action}")
        poses.append(step.infos[0]["pose"] if step.dones[0] else task.info()["pose"][0].copy())
        if step.dones[0]:
            break
    info = step.infos[0]
    env.set_options([{}])
    return WordAttention(
        id=str(info["instr_id"]),
        words=words,
        attention=np.stack(recorder.attention),
        actions=tuple(actions),
        map=task.draw_map(0, np.stack(poses)),
        metrics={name: float(info[name]) for name in ("sr", "sdtw", "ne")},
    )


def word_attention_figure(episode: WordAttention) -> Figure:
    """Draw the map, and below it attention by decision and word, darker for larger weights."""
    rows = -(-len(episode.words) // WORDS_PER_ROW)
    height = 0.25 * len(episode.actions) + 0.9  # inches of a row of words
    figure = Figure(figsize=(12, 5 + rows * height), dpi=100, layout="constrained")
    top, *below = figure.subplots(rows + 1, 1, gridspec_kw={"height_ratios": [5, *[height] * rows]})
    top.imshow(episode.map)
    top.axis("off")
    result = "success" if episode.metrics["sr"] > 0 else f"stopped {episode.metrics['ne']:.1f} m from the goal"
    largest = float(episode.attention.max())
    top.set_title(
        f"{episode.id}: {result}, SDTW {episode.metrics['sdtw']:.2f}; largest attention weight {largest:.2f}, "
        f"uniform {1 / len(episode.words):.2f}"
    )
    for row, axes in enumerate(below):
        part = slice(row * WORDS_PER_ROW, (row + 1) * WORDS_PER_ROW)
        words = episode.words[part]
        weights = np.full((len(episode.actions), WORDS_PER_ROW), np.nan)
        weights[:, : len(words)] = episode.attention[:, part]
        axes.imshow(weights, vmin=0.0, vmax=largest, cmap="Blues", aspect="auto")
        axes.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
        labels = [f"{k + 1}: {action}" for k, action in enumerate(episode.actions)]
        axes.set_yticks(range(len(labels)), labels, fontsize=7)
        axes.spines[:].set_visible(False)
    return figure
