"""An encoder for observations that list what can be chosen, beside a text that says what to choose."""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from memenvs.checks import check_int


class OptionsEncoder(BaseFeaturesExtractor):
    """Reads every option with the same network, gated by the words of the text, and concatenates what it makes of them.

    An option o becomes ReLU(W2 ReLU(W1 o * (1 + W3 t))), where t is the sum of the embeddings of the text's words over the root of their number,
    whatever their order. Products let a word ask for what an option shows; a sum, as of two parts of a concatenation, does not before a layer more.
    Keys that end in "_mask" only say what of another key is there and are left out; every other key is taken flattened as it is.

    Args:
        observation_space: With `options` and `text` among its keys.
        options: Key of what can be chosen, float (A, F); zeros where there is no option.
        text: Key of the numbers of words, (L,); 0 is padding.
        words_dim: Width of the embedding of a word.
        hidden: Width of an option that hears the text.
        width: Width of each option in the features.

    Raises:
        ValueError: A key is not in the space, `options` is no table of numbers, `text` is not numbers of words, or a width is below 1.
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
        words = _vocabulary_size(text, observation_space[text])
        rest = {
            key: space
            for key, space in observation_space.spaces.items()
            if key not in (options, text) and not key.endswith("_mask")
        }
        count, numbers = table.shape
        super().__init__(observation_space, count * width + sum(map(get_flattened_obs_dim, rest.values())))
        self.options, self.text, self.rest = options, text, tuple(rest)
        self.words = nn.Embedding(words, words_dim, padding_idx=0)
        self.option = nn.Linear(numbers, hidden)
        self.gate = nn.Linear(words_dim, hidden)
        self.out = nn.Linear(hidden, width)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """float, (B, features_dim); the features of the options, one after the other, come first."""
        numbers = observations[self.text].long()
        count = (numbers > 0).sum(1, keepdim=True).clamp(min=1)
        said = self.words(numbers).sum(1) / count.sqrt()
        heard = (self.option(observations[self.options]) * (1.0 + self.gate(said))[:, None]).relu()
        rest = [observations[key].flatten(1) for key in self.rest]
        return torch.cat([self.out(heard).relu().flatten(1), *rest], -1)


def _vocabulary_size(key: str, space: spaces.Space) -> int:
    """How many words a text of numbers can have.

    Raises:
        ValueError: It is none.
    """
    if (
        not isinstance(space, spaces.Box)
        or len(space.shape) != 1
        or space.dtype.kind not in "iu"
        or space.low.min() < 0
    ):
        raise ValueError(f"key {key!r} in text must be a Box of whole numbers from 0 on with one axis, got {space}")
    return int(space.high.max()) + 1
