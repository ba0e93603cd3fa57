"""Pooling over the elements of a scene memory, the simplest readout."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memenvs.agents.memory.scene_memory import SceneConfig, SceneMemory

INITIAL_AGE_WEIGHT = 4.0
"""Initial weight of e^(-age / tau) in half of the features of `PoolingMemory`.

The other terms of a feature differ by about 0.5 between elements, so this one decides the maximum.
"""


class PoolingMemory(SceneMemory):
    r"""Maximum of each feature over all elements.

    Only its age distinguishes the current step from the other elements. So with exponential ages, half of the features
    start with a large weight of e^(-age / tau), which is largest at the current step, and the maximum mostly comes from
    there. Training can change that.

    Idea:
        The elements are those of `smt`, with poses and ages. In place of attention, each feature is its maximum over
        all elements. It shows what attention adds to the same memory.

    Equations:
        .. math::

            f_{t,k} = \max_i \psi_{i,k}

        The elements psi are those of `smt`, from where the agent is at step t.

    State:
        A log with slots for twice the capacity M. A slot has the static part of an element, D numbers, and a pose.

    Cost:
        A decision with M elements takes M R D multiply-adds, with R numbers of pose and age, and M D comparisons.

    When to use:
        As a baseline of the scene memories, or where acting must be cheap.

    When not to use:
        Where the agent must recall an element as a whole: each feature may come from another one.

    Difference from the paper:
        The paper states neither a ReLU nor the initial weights. Presets use a ReLU and three ages, and half of the
        features start with a large weight of the age, as explained above; without both it learned less.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, encoding of ages.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019
        (arXiv:1903.03878), section 4.2 (SM + Pooling).
    """

    def __init__(self, input_dim: int, config: SceneConfig) -> None:
        super().__init__(input_dim, config)
        if config.time == "exponential":
            age = 4 * config.poses  # index of the (first) age in a relative part
            half = config.dim // 2
            with torch.no_grad():  # make the first number of the embedded pose the age itself, then weigh it
                self.pose.weight[0] = 0.0
                self.pose.weight[0, age] = 1.0
                self.pose.bias[0] = 0.0
                self.fusion.weight[:half, input_dim] = INITIAL_AGE_WEIGHT
                self.fusion.weight[half:, input_dim] = 0.0

    def projections(self) -> tuple[nn.Linear, ...]:
        """Return none: a maximum needs no queries, keys or values."""
        return ()

    def read(self, static: Tensor, relative: Tensor, relative_weight: Tensor, absent: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        (psi,) = self.elements(static, relative, relative_weight)
        return (psi if absent is None else psi.masked_fill(absent[..., None], -torch.inf)).amax(1)
