"""Encoder of the key frames, questions and answers of EpisodicQA."""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

_FRAME = "frame_"
#: Observations that are numbers of symbols.
_SYMBOLS = ("frame_action", "frame_args", "frame_objects")
_GOAL = "frame_goal"
_MASK = "frame_mask"
_NEIGHBOURS = 3


class EpisodicQAEncoder(BaseFeaturesExtractor):
    """Encodes a step of EpisodicQA: key frames, or a question and the answer so far.

    Symbols and words have a vector each. A key frame is a linear layer and a ReLU over its symbols, the mean of its
    goal, its date, states and signals; a step is the mean over its key frames, so that order counts with
    `frames_per_step=1` alone. A question is the mean of a convolution over three neighbouring words. An answer in slots
    is scaled to [0, 1]; of one in words there are the mean and the last word.

    Args:
        observation_space: That of EpisodicQA.
        width: Width of the vectors of symbols and words; >= 1.
        frame_dim: Width of a key frame and of a question; >= 1.

    Raises:
        ValueError: It is not the space of EpisodicQA, or a width is out of range.
    """

    def __init__(self, observation_space: spaces.Dict, width: int = 32, frame_dim: int = 128) -> None:
        for name, value in (("width", width), ("frame_dim", frame_dim)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        keys = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
        for key in (_MASK, "query", "prefix", "phase"):
            if key not in keys:
                raise ValueError(f"observation_space must be that of EpisodicQA, which has {key!r}, got {keys.keys()}")
        slots = sum(_size(keys[key]) for key in _SYMBOLS if key in keys)
        inputs = width * (slots + (_GOAL in keys))
        self.is_structured = len(keys["prefix"].shape or ()) == 2
        answer = _size(keys["prefix"], 0) if self.is_structured else 2 * width
        phases = 3
        super().__init__(observation_space, features_dim=2 * frame_dim + answer + phases)
        self.numbers = [
            key for key in keys if key.startswith(_FRAME) and key not in (*_SYMBOLS, _GOAL, _MASK)
        ]  # dates, states, signals
        self.symbol_keys = [key for key in _SYMBOLS if key in keys]
        self.has_goal = _GOAL in keys
        inputs += sum(_size(keys[key]) for key in self.numbers)
        counts = [int(_high(keys[key]).max()) + 1 for key in (*self.symbol_keys, *[_GOAL] * self.has_goal)]
        self.symbols = nn.Embedding(max(counts, default=1), width, padding_idx=0)
        self.words = nn.Embedding(int(_high(keys["query"]).max()) + 1, width, padding_idx=0)
        self.frame = nn.Sequential(nn.Linear(inputs, frame_dim), nn.ReLU())
        self.phrase = nn.Sequential(nn.Conv1d(width, frame_dim, _NEIGHBOURS, padding=1), nn.ReLU())
        for key in (*self.numbers, "prefix"):
            high = _high(keys[key]).nan_to_num(posinf=1.0)  # signals have no bounds, and are scaled already
            self.register_buffer(f"_scale_{key}", 1.0 / high.clamp(min=1.0), persistent=False)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Encode observations; float, (B, features_dim)."""
        mask = observations[_MASK].float()[..., None]  # (B, F, 1)
        parts = [
            self.symbols(observations[key].long()).view(*mask.shape[:2], -1) for key in self.symbol_keys
        ]  # (B, F, slots width)
        if self.has_goal:
            goal = observations[_GOAL].long()
            count = (goal > 0).sum(-1, keepdim=True).clamp(min=1)
            parts.append(self.symbols(goal).sum(-2) / count)
        for key in self.numbers:
            parts.append((observations[key].float() * self.get_buffer(f"_scale_{key}")).flatten(2))
        frames = (self.frame(torch.cat(parts, -1)) * mask).sum(1) / mask.sum(1).clamp(min=1)
        query = observations["query"].long()
        is_word = (query > 0).float()[:, None]  # (B, 1, W)
        question = (self.phrase(self.words(query).transpose(1, 2)) * is_word).sum(-1) / is_word.sum(-1).clamp(min=1)
        return torch.cat([frames, question, self._answer(observations["prefix"]), observations["phase"].float()], -1)

    def _answer(self, prefix: Tensor) -> Tensor:
        if self.is_structured:
            return (prefix.float() * self.get_buffer("_scale_prefix")).flatten(1)
        count = (prefix > 0).sum(-1, keepdim=True)
        vectors = self.words(prefix.long())
        last = vectors.gather(1, (count - 1).clamp(min=0).long()[..., None].expand(-1, 1, vectors.shape[-1]))[:, 0]
        return torch.cat([vectors.sum(1) / count.clamp(min=1), last], -1)


def _size(space: spaces.Space, first: int = 1) -> int:
    """Numbers of an entry, without its first axes."""
    size = 1
    for length in (space.shape or ())[first:]:
        size *= length
    return size


def _high(space: spaces.Space) -> Tensor:
    """Upper bounds of a space."""
    assert isinstance(space, spaces.Box)
    return torch.as_tensor(space.high).float()
