"""Inputs of steps, their checks, and the calls that a memory inherits."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import torch

from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.base import check_inputs, n_last_steps, step_ranges

B, T, D = 2, 5, 3


def inputs(**changed: Any) -> StepInputs:
    """Numbered inputs of all kinds."""
    number = torch.arange(B * T).view(B, T)
    embedding, pose = (number[..., None] + 0.25 * torch.arange(width) for width in (D, 3))
    x = StepInputs(embedding, number % 2 == 0, number % 4 == 0, pose, number + 100, number + 200)
    return replace(x, **changed)


def test_steps_are_sliced_in_every_field() -> None:
    x = inputs()
    for begin, end in ((0, 5), (1, 4), (4, 5)):
        part = x.steps(begin, end)
        for name in ("embedding", "episode_start", "trial_start", "pose", "place", "move"):
            assert torch.equal(getattr(part, name), getattr(x, name)[:, begin:end])
    assert inputs(pose=None, move=None).steps(0, 2).pose is None
    with pytest.raises(FrozenInstanceError):
        x.pose = None  # type: ignore[misc]


def test_last_steps_and_segments_by_hand() -> None:
    assert [n_last_steps(4, last) for last in (None, 1, 3, 4)] == [4, 1, 3, 4]
    for last in (0, -1, 5):
        with pytest.raises(ValueError, match=rf"^last must be between 1 and the number of steps \(4\), got {last}$"):
            n_last_steps(4, last)
    assert step_ranges(7, None) == step_ranges(7, 7) == step_ranges(7, 9) == [(0, 7)]
    assert step_ranges(7, 3) == [(0, 3), (3, 6), (6, 7)]
    assert step_ranges(4, 2) == [(0, 2), (2, 4)]


def test_inputs_of_a_wrong_shape_or_type_are_named() -> None:
    assert check_inputs(inputs(), D, uses_pose=True, uses_place=True, uses_move=True) == (B, T)
    assert check_inputs(inputs(pose=None, place=None, move=None), D) == (B, T)
    odd = torch.zeros(B, T + 1)
    assert check_inputs(inputs(pose=odd, place=odd, move=odd), D) == (B, T)  # what is not used may be anything
    one = torch.zeros(1, 1, dtype=torch.bool)
    assert check_inputs(StepInputs(torch.zeros(1, 1, D), one, one), D) == (1, 1)

    x = inputs()
    assert x.pose is not None and x.place is not None and x.move is not None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"embedding": x.embedding[..., :2]}, r"embedding must be \(B, T, 3\) with T >= 1, got \(2, 5, 2\)"),
        ({"embedding": x.embedding[:, :0]}, r"embedding must be \(B, T, 3\) with T >= 1, got \(2, 0, 3\)"),
        ({"embedding": x.embedding[0]}, r"embedding must be \(B, T, 3\) with T >= 1, got \(5, 3\)"),
        ({"episode_start": x.episode_start[:, 1:]}, r"episode_start must be bool \(2, 5\), got torch.bool \(2, 4\)"),
        ({"trial_start": x.trial_start.float()}, r"trial_start must be bool \(2, 5\), got torch.float32 \(2, 5\)"),
        ({"pose": None}, r"pose must be \(2, 5, 3\), got None"),
        ({"pose": x.pose[..., :2]}, r"pose must be \(2, 5, 3\), got \(2, 5, 2\)"),
        ({"place": None}, r"place must be int64 \(2, 5\), got None"),
        ({"place": x.place.int()}, r"place must be int64 \(2, 5\), got torch.int32 \(2, 5\)"),
        ({"move": x.move[:, 1:]}, r"move must be int64 \(2, 5\), got torch.int64 \(2, 4\)"),
    ]
    for changed, message in wrong:
        with pytest.raises(ValueError, match=message):
            check_inputs(inputs(**changed), D, uses_pose=True, uses_place=True, uses_move=True)
