"""Settings of the Compressive Transformer, with its long-term states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memenvs.agents.memory.compressive.long_term import LongTerm, MergingLevels, RecurrentState
from memenvs.agents.sizes import LARGEST, check_sizes
from memenvs.checks import check_int


@dataclass(frozen=True, kw_only=True)
class CompressiveConfig:
    """Settings of a Compressive Transformer.

    Attributes:
        dim: Width D of vectors and features.
        layers: Layers L; >= 1. All but the first have a memory; a single one has it too.
        heads: Attention heads; divides `dim`.
        mlp_dim: Inner width of the MLP; >= 1.
        block_length: Steps B of a block; >= 1.
        memory_length: Steps K that a layer remembers as they are; a multiple of `block_length`.
        compressed_lengths: Compressed vectors C that a layer remembers, of each level; >= 1. Each is a multiple of the
            vectors that enter the level with a block.
        ratios: Vectors r that become one in each level; >= 1. The first one divides `block_length`, each further one
            the vectors that enter the level before with a block.
    """

    dim: int = 128
    layers: int = 3
    heads: int = 4
    mlp_dim: int = 256
    block_length: int = 8
    memory_length: int = 16
    compressed_lengths: Sequence[int] = (8,)
    ratios: Sequence[int] = (4,)

    def __post_init__(self) -> None:
        check_sizes(self)
        for name in ("compressed_lengths", "ratios"):
            object.__setattr__(self, name, _integers(name, getattr(self, name)))
        if self.dim % self.heads:
            raise ValueError(f"heads must divide dim ({self.dim}), got {self.heads}")
        if self.memory_length % self.block_length:
            raise ValueError(
                f"memory_length must be a multiple of block_length ({self.block_length}), got {self.memory_length}"
            )
        if len(self.ratios) != len(self.compressed_lengths):
            raise ValueError(
                f"ratios must have a number for each of compressed_lengths {self.compressed_lengths}, got {self.ratios}"
            )
        entering = self.block_length
        for level, (length, ratio) in enumerate(zip(self.compressed_lengths, self.ratios, strict=True)):
            if entering % ratio:
                raise ValueError(f"ratios[{level}] must divide the {entering} vectors that leave at once, got {ratio}")
            entering //= ratio
            if length % entering:
                raise ValueError(
                    f"compressed_lengths[{level}] must be a multiple of the {entering} vectors that enter at once "
                    f"(block_length {self.block_length} over ratios {self.ratios[: level + 1]}), got {length}"
                )

    def make_long_term(self) -> LongTerm | None:
        """Make the long-term state of one layer; None where the oldest vectors are dropped."""
        return None


def _integers(name: str, value: Any) -> tuple[int, ...]:
    """Convert a list of integers of at least 1 to a tuple; a ValueError names the setting."""
    if isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a list of integers, at least one, got {value!r}")
    for number in value:
        check_int(f"each of {name}", number, at_most=LARGEST["memory_length"])
    return tuple(value)


@dataclass(frozen=True, kw_only=True)
class LongTermConfig(CompressiveConfig):
    r"""Settings of a Compressive Transformer with a recurrent long-term state.

    Idea:
        As `ct`, and what leaves the compressed queue is not lost: a gated recurrent unit writes it into one vector
        for each layer, to which the layer attends too. So a trace of every step stays, in a state of constant size.

    Equations:
        .. math::

            \Gamma &= c^k_{t-1,\,1:B/r}, \qquad
            \tilde l = \operatorname{softmax}(l^k_{t-1} (\Gamma W_K)^\top / \sqrt{D})\, \Gamma W_V \\
            l^k_t &= \operatorname{GRU}(\text{input } \tilde l,\; \text{hidden } l^k_{t-1}) \\
            h^k_t &= \operatorname{layer}_k \big( h^{k-1}_t;\; [l^k_{t-1}; c^k_{t-1}; m^k_{t-1}; h^{k-1}_t] \big)

        The first time, l is the mean of the rows of Gamma W_V. The queues m and c are those of `ct`.

    State:
        That of `ct`, and one vector of D numbers for each layer with a memory.

    When to use:
        Long or endless trials in which the newest tens of steps matter in detail, and the beginning still counts.

    When not to use:
        Where several old events must be distinguished: one vector keeps mostly the first and the latest of them.
        `ct-log` has several.
    """

    def make_long_term(self) -> LongTerm | None:
        """See `CompressiveConfig.make_long_term`."""
        return RecurrentState(self.dim)


@dataclass(frozen=True, kw_only=True)
class MultiLevelConfig(LongTermConfig):
    r"""Settings of `ct-lt` with several levels of compression.

    Idea:
        As `ct-lt`, with several compressed queues: what leaves one is compressed again and enters the next. Detail
        fades in more steps, and the queues reach farther back at the same size.

    Equations:
        .. math::

            c^{k,0} &= m^k, \qquad
            c^{k,j}_t = [c^{k,j}_{t-1}; \operatorname{conv}^{k,j} (\Gamma^{j-1})]_{\text{newest } C_j} \\
            h^k_t &= \operatorname{layer}_k \big( h^{k-1}_t;\; [l^k; c^{k,J}; \dots; c^{k,1}; m^k; h^{k-1}_t] \big)

        Gamma^j are the oldest vectors of level j, which leave it with this block. Those of the last level are written
        to the long-term state l as in `ct-lt`.

    When to use:
        Trials of hundreds of steps whose middle matters, with little room.

    When not to use:
        Where training is short: in the thesis it lies between `ct` and `ct-lt`, and diverges more often.
    """

    compressed_lengths: Sequence[int] = (4, 4)
    ratios: Sequence[int] = (4, 2)


@dataclass(frozen=True, kw_only=True)
class LogConfig(CompressiveConfig):
    r"""Settings of a Compressive Transformer with levels that merge.

    Idea:
        As `ct`; what leaves the compressed queue enters levels of a few vectors. A full level merges its two oldest
        into one vector, which enters the next level. So of N vectors each is rewritten only about log N times, and
        the past becomes coarser with its age.

    Equations:
        .. math::

            \operatorname{merge}(a, b) &= g \odot a + (1 - g) \odot b + W_2 \operatorname{ReLU}(W_1 [a; b]),
            \qquad g = \sigma(W_g [a; b]) \\
            v \text{ enters level } j:&\quad \text{if it is full, } \operatorname{merge}(\text{its two oldest})
            \text{ enters level } j + 1

        The last level keeps the result of its own merges. A layer attends to all levels; the rest is that of `ct`.

    State:
        That of `ct`, and `levels` times `slots` vectors of D numbers for each layer with a memory.

    When to use:
        Long trials in which old events must be distinguished, in the order in which they came.

    When not to use:
        Trials so long that the last level is always full, with n 2^levels vectors or more: it is then rewritten with
        every merge, as the state of `ct-lt` is.

    Difference from the paper:
        This form is ours; the thesis has one long-term vector. Layers, queues and losses are those of `ct`.

    Attributes:
        levels: Levels; >= 1.
        slots: Vectors of a level; >= 2.
    """

    levels: int = 3
    slots: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("slots", self.slots, 2)

    def make_long_term(self) -> LongTerm | None:
        """See `CompressiveConfig.make_long_term`."""
        return MergingLevels(self.dim, self.levels, self.slots)
