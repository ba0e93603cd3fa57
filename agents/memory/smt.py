"""The Scene Memory Transformer, and the block of attention that its forms share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import attend, masked_softmax
from memenvs.agents.memory.scene_memory import SceneConfig, SceneMemory


@dataclass(frozen=True, kw_only=True)
class SMTConfig(SceneConfig):
    """Settings of the Scene Memory Transformer.

    Attributes:
        heads: Attention heads; divides `dim`.
        encoder: Whether elements attend to each other before the current step reads them.
    """

    heads: int = 8
    encoder: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.dim, self.heads)


def check_heads(dim: int, heads: int) -> None:
    """Raise a ValueError unless the heads divide the width."""
    if dim % heads:
        raise ValueError(f"heads must divide dim ({dim}), got {heads}")


class AttentionBlock(nn.Module):
    """Post-norm block: H = LN(Att(X, Y, Y) + X), output LN(ReLU(FC(H)) + H).

    Shapes: G independent attentions, T queries, L keys.

    Args:
        dim: Width D.
        heads: Attention heads; divides `dim`.

    Source:
        Fang et al., 2019, section 3.3; scale 1 / sqrt(width of a head) and output projection as in Vaswani et al.,
        2017.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # `mix` is the output projection of the attention, W_o.
        self.query, self.key, self.value, self.mix = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.attention_norm, self.norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, absent: Tensor | None) -> Tensor:
        """Multi-head attention without its output projection.

        Args:
            q: float, (G, T, D).
            k: float, (G, L, D).
            v: float, (G, L, D).
            absent: bool, (G, L); True for keys that do not exist; None if all do.

        Returns:
            float, (G, T, D); concatenated outputs of the heads.
        """
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (q, k, v))  # (G, heads, T or L, width)
        mask = None if absent is None else ~absent[:, None, None]
        return attend(q, k, v, causal=False, mask=mask).transpose(1, 2).flatten(2)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Compute the block's output from its input and the outputs of its heads, (..., D) each."""
        h = self.attention_norm(self.mix(attended) + x)
        return self.norm(self.fc(h).relu_() + h)

    def forward(self, x: Tensor, y: Tensor, absent: Tensor | None) -> Tensor:
        """Attend from X to Y.

        Args:
            x: float, (G, T, D).
            y: float, (G, L, D).
            absent: As in `attend`.

        Returns:
            float, (G, T, D).
        """
        return self.finish(x, self.attend(self.query(x), self.key(y), self.value(y), absent))

    def read(self, x: Tensor, y: Tensor, absent: Tensor | None) -> Tensor:
        """Compute `forward` for a single query, without computing keys and values.

        Each head multiplies its query by the key weights, since q^T (W_k y) = (W_k^T q)^T y. The attention weights then
        apply to Y itself, and the value weights to the one weighted sum. So the D x D products are made once for each
        query, not for each of L keys.

        Args:
            x: float, (G, D).
            y: float, (G, L, D).
            absent: As in `attend`.

        Returns:
            float, (G, D).
        """
        heads, dim = self.heads, y.shape[-1]
        q = self.query(x).unflatten(-1, (heads, -1))  # (G, heads, width)
        q = torch.einsum("ghw,hwd->ghd", q, self.key.weight.view(heads, -1, dim)) * q.shape[-1] ** -0.5  # (G, heads, D)
        weights = masked_softmax(q @ y.transpose(1, 2), _existing(absent))  # (G, heads, L)
        attended = torch.einsum(
            "ghd,hwd->ghw", weights @ y, self.value.weight.view(heads, -1, dim)
        )  # (G, heads, width)
        return self.finish(x, attended.flatten(1))


def _existing(absent: Tensor | None) -> Tensor | None:
    """Mask of existing keys for all heads, bool (G, 1, L), from `absent`, bool (G, L)."""
    return None if absent is None else ~absent[:, None]


class SMTMemory(SceneMemory):
    r"""Transformer in which elements attend to each other, then the current one to all of them.

    Idea:
        Every step is stored with the pose at which it was observed. At each decision all elements are expressed in the
        frame of the present pose and attend to each other; then the present one reads all of them. So the agent has a
        map of what it saw, centred on itself, without drawing one.

    Equations:
        .. math::

            \psi_i &= W_f [x_i;\, W_p r_{i,t} + b_p] + b_f \\
            E &= \operatorname{block}(\Psi, \Psi) \\
            f_t &= \operatorname{block}(\psi_t, E) \\
            \operatorname{block}(X, Y) &= \operatorname{LN}(\operatorname{ReLU}(W H + b) + H),
            \quad H = \operatorname{LN}(\operatorname{Att}(X, Y, Y) + X)

        r is the pose of element i in the frame of step t, (x / 5, y / 5, cos, sin), and its age, exp(-age / tau).
        Psi has one row per element. Att is multi-head attention with scale 1 / sqrt(width of a head).

    State:
        A log with slots for twice the capacity M. A slot has the static part of the element and of its query, key and
        value, 4 D numbers, and a pose. Only a product with R numbers is added when the pose changes.

    Cost:
        A decision with M elements takes about 2 M^2 D + 2 M D^2 + 2 h M D + 4 M R D multiply-adds, with h heads and R
        numbers of pose and age. Without the encoder it takes 2 M (D + h R) + (2 R + 5) D^2. Every decision is
        learned from its own elements, so a pass over T steps costs T decisions.

    When to use:
        Exploration and search with a known pose, in episodes of a few hundred steps.

    When not to use:
        Without a pose: ages alone hardly distinguish elements. With a pose from dead reckoning that ignores collisions
        it gains little. In long episodes the encoder grows with the square of the steps; `smt-causal` does not.

    Difference from the paper:
        The time code is of the age; the paper writes exp(-t) and describes it as recency. Elements have no ReLU by
        default (the paper does not state one), so that most of them is computed once. Scale and output projection of
        the attention, which the paper leaves open, are those of Vaswani et al., 2017.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, whether there is an encoder.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019
        (arXiv:1903.03878), section 3.3.
    """

    config: SMTConfig

    def __init__(self, input_dim: int, config: SMTConfig) -> None:
        super().__init__(input_dim, config)
        self.encoder = AttentionBlock(config.dim, config.heads) if config.encoder else None
        self.decoder = AttentionBlock(config.dim, config.heads)

    def projections(self) -> tuple[nn.Linear, ...]:
        """Query, key and value of the encoder; without an encoder, key and value of the decoder."""
        if self.encoder is None:
            return () if self.config.rectified else (self.decoder.key, self.decoder.value)
        return self.encoder.query, self.encoder.key, self.encoder.value

    def read(self, static: Tensor, relative: Tensor, relative_weight: Tensor, absent: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        if self.encoder is None and not self.config.rectified:
            return self._read_without_encoder(static, relative, relative_weight, absent)
        psi, *projected = self.elements(static, relative, relative_weight)  # (G, L, D) each
        now = psi[:, -1]
        if self.encoder is None:
            return self.decoder.read(now, psi, absent)
        q, k, v = projected
        encoded = self.encoder.finish(psi, self.encoder.attend(q, k, v, absent))  # (G, L, D)
        return self.decoder.read(now, encoded, absent)

    def _read_without_encoder(
        self, static: Tensor, relative: Tensor, relative_weight: Tensor, absent: Tensor | None
    ) -> Tensor:
        """Read without an encoder, and without computing elements, keys or values.

        The key of an element is k + K r, with static part k, relative part r and a matrix K. Its score is then
        q (k + K r) = q k + (q K) r. The weighted sum of values splits in the same manner.
        """
        heads, dim = self.config.heads, self.config.dim
        now = static[:, -1, :dim] + relative[:, -1] @ relative_weight[:, :dim]  # (G, D)
        q = self.decoder.query(now).unflatten(-1, (heads, -1)) * (dim // heads) ** -0.5  # (G, heads, width)
        # Static parts are [u, keys, values].
        k, v = static[..., dim:].unflatten(-1, (2, heads, -1)).permute(2, 0, 3, 1, 4)  # (G, heads, L, width) each
        relative_k, relative_v = (
            relative_weight[:, dim:].unflatten(-1, (2, heads, -1)).permute(1, 2, 0, 3)
        )  # (heads, R, width) each
        scores = (k @ q[..., None])[..., 0] + torch.einsum("ghw,hrw->ghr", q, relative_k) @ relative.transpose(1, 2)
        weights = masked_softmax(scores, _existing(absent))  # (G, heads, L)
        attended = (weights[:, :, None] @ v)[:, :, 0] + torch.einsum("ghr,hrw->ghw", weights @ relative, relative_v)
        return self.decoder.finish(now, attended.flatten(1))
