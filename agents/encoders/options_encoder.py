"""Encoder for observations that list options, with a text that describes the right one."""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from memenvs.checks import check_int


class OptionsEncoder(BaseFeaturesExtractor):
    """Encodes every option with one network, gated by the text, and concatenates the results.

    An option o becomes ReLU(W2 ReLU(W1 o * (1 + W3 t))). Here t is the sum of the embeddings of the text's n words
    (without padding), in any order, divided by sqrt(n). The product lets a word select a feature of the option; a
    concatenation of o and t would need one more layer for that. Keys that end in "_mask" only mark padding of another
    key and are left out. Every other key is flattened and concatenated as it is.

    Args:
        observation_space: With `options` and `text` among its keys.
        options: Key of the options, float (A, F); zeros where there is no option.
        text: Key of the token ids of the words, integers (L,); 0 is padding.
        words_dim: Width of the embedding of a word.
        hidden: Width of an option where it is gated by the text.
        width: Width of each option in the features.

    Raises:
        ValueError: A key is not in the space, `options` is not a Box with two axes, `text` is not a Box of token ids,
            or a width is below 1.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        options: str = "candidates",
        text: str = "instruction",
        words_dim: int = 64,
        hidden: int = 128,
        width: int = 16,
    ) -> None:
        for name, number in (("words_dim", words_dim), ("hidden", hidden), ("width", width)):
            check_int(name, number)
        for name, key in (("options", options), ("text", text)):
            if key not in observation_space.spaces:
                raise ValueError(f"unknown key {key!r} in {name}; choose from {list(observation_space.spaces)}")
        table = observation_space[options]
        if not isinstance(table, spaces.Box) or len(table.shape) != 2:
            raise ValueError(f"key {options!r} in options must be a Box of shape (options, numbers), got {table}")
        vocabulary = _vocabulary_size(text, observation_space[text])
        rest = {
            key: space
            for key, space in observation_space.spaces.items()
            if key not in (options, text) and not key.endswith("_mask")
        }
        n_options, n_features = table.shape
        super().__init__(observation_space, n_options * width + sum(map(get_flattened_obs_dim, rest.values())))
        self.options = options
        self.text = text
        self.rest = tuple(rest)
        self.words = nn.Embedding(vocabulary, words_dim, padding_idx=0)
        self.option = nn.Linear(n_features, hidden)
        self.gate = nn.Linear(words_dim, hidden)
        self.out = nn.Linear(hidden, width)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Encode observations; float, (B, features_dim), the features of the options first."""
        tokens = observations[self.text].long()  # (B, L)
        count = (tokens > 0).sum(1, keepdim=True).clamp(min=1)
        text = self.words(tokens).sum(1) / count.sqrt()  # (B, words_dim)
        gate = 1.0 + self.gate(text)[:, None]  # (B, 1, hidden)
        gated = (self.option(observations[self.options]) * gate).relu()  # (B, A, hidden)
        rest = [observations[key].flatten(1) for key in self.rest]
        return torch.cat([self.out(gated).relu().flatten(1), *rest], -1)


def _vocabulary_size(key: str, space: spaces.Space) -> int:
    """Return the size of the vocabulary of a text, from the space of its token ids.

    Raises:
        ValueError: The space is not one of token ids.
    """
    if (
        not isinstance(space, spaces.Box)
        or len(space.shape) != 1
        or space.dtype.kind not in "iu"
        or space.low.min() < 0
    ):
        raise ValueError(f"key {key!r} in text must be a Box of whole numbers from 0 on with one axis, got {space}")
    return int(space.high.max()) + 1
