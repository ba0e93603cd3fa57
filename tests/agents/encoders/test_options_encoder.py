"""`OptionsEncoder`: an option by hand, and the order of options and words."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents.encoders import OptionsEncoder

SPACE = spaces.Dict(
    {
        "candidates": spaces.Box(-np.inf, np.inf, (3, 5), np.float32),
        "instruction": spaces.Box(0, 6, (4,), np.int64),
        "instruction_mask": spaces.MultiBinary(4),
        "candidate_mask": spaces.MultiBinary(3),
        "direction": spaces.Box(-1.0, 1.0, (2,), np.float32),
    }
)
WIDTHS = {"words_dim": 4, "hidden": 6, "width": 2}


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "candidates": torch.randn(2, 3, 5, generator=generator),
        "instruction": torch.tensor([[2.0, 5.0, 5.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),  # as Stable-Baselines3 gives numbers
        "instruction_mask": torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
        "candidate_mask": torch.ones(2, 3),
        "direction": torch.randn(2, 2, generator=generator),
    }


def test_an_option_by_hand() -> None:
    torch.manual_seed(0)
    encoder, observations = OptionsEncoder(SPACE, **WIDTHS), batch()
    features = encoder(observations)
    assert encoder.features_dim == features.shape[1] == 3 * 2 + 2
    table = encoder.words.weight
    for row, text in enumerate([(table[2] + 2 * table[5]) / np.sqrt(3), torch.zeros(4)]):
        for option in range(3):
            first = encoder.option.weight @ observations["candidates"][row, option] + encoder.option.bias
            gate = 1 + encoder.gate.weight @ text + encoder.gate.bias
            second = encoder.out.weight @ (first * gate).relu() + encoder.out.bias
            torch.testing.assert_close(features[row, 2 * option : 2 * option + 2], second.relu())
    torch.testing.assert_close(features[:, 6:], observations["direction"])


def test_masks_are_left_out_and_the_text_is_not() -> None:
    encoder, observations = OptionsEncoder(SPACE, **WIDTHS), batch()
    before = encoder(observations)
    for key in ("instruction_mask", "candidate_mask"):
        torch.testing.assert_close(encoder(observations | {key: 1.0 - observations[key]}), before)
    after = encoder(observations | {"instruction": observations["instruction"].roll(1, 0)})
    assert not torch.allclose(after[:, :6], before[:, :6])


def test_wrong_settings_are_named() -> None:
    for changes, message in (
        ({"options": "option"}, "unknown key 'option' in options; choose from"),
        ({"text": "words"}, "unknown key 'words' in text; choose from"),
        ({"options": "direction"}, r"'direction' in options must be a Box of shape \(options, numbers\), got Box"),
        ({"text": "direction"}, "'direction' in text must be a Box of whole numbers from 0 on with one axis, got Box"),
        *(({name: 0}, f"{name} must be an integer of at least 1, got 0") for name in WIDTHS),
    ):
        with pytest.raises(ValueError, match=message):
            OptionsEncoder(SPACE, **changes)  # type: ignore[arg-type]
