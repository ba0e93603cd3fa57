"""The Scene Memory Transformer, its factorised form, and pooling over the same memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import attend
from memenvs.agents.memory.scene_memory import SceneConfig, SceneMemory
from memenvs.checks import check_int

Centres = Literal["fps", "static", "window"]


@dataclass(frozen=True, kw_only=True)
class SMTConfig(SceneConfig):
    """Settings of the Scene Memory Transformer.

    Attributes:
        heads: Attention heads; divides `dim`.
        encoder: Whether elements attend to each other before they are read; False reads them as they are.
    """

    heads: int = 8
    encoder: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.dim, self.heads)


@dataclass(frozen=True, kw_only=True)
class FactorizedConfig(SceneConfig):
    """Settings of the factorised Scene Memory Transformer.

    Attributes:
        heads: Attention heads; divides `dim`.
        centres: What the elements are summed up by: "fps" (the present one, then again and again the one farthest from all chosen ones),
            "window" (the newest) or "static" (learned vectors).
        n_centres: How many; >= 1. While there are no more elements than that, all of them are centres ("fps" and "window").
    """

    heads: int = 8
    centres: Centres = "fps"
    n_centres: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.dim, self.heads)
        check_int("n_centres", self.n_centres)


def check_heads(dim: int, heads: int) -> None:
    """Raises a ValueError unless the heads divide the width."""
    if heads < 1 or dim % heads:
        raise ValueError(f"heads must divide dim ({dim}), got {heads}")


class AttentionBlock(nn.Module):
    """Attention and a layer, each added and then normalised: H = LN(Att(X, Y, Y) + X), LN(ReLU(FC(H)) + H).

    Args:
        dim: Width.
        heads: Attention heads; divides `dim`.

    Source:
        Fang et al., 2019, section 3.3; scale 1 / sqrt(width of a head) and output projection as in Vaswani et al., 2017.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.mix = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.attention_norm, self.norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
        """What the heads hear, float (G, T, D).

        Args:
            q: float, (G, T, D).
            k: float, (G, L, D).
            v: float, (G, L, D).
            hidden: bool, (G, L); keys that are not there; None if all are.
        """
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        mask = None if hidden is None else ~hidden[:, None, None]
        return attend(q, k, v, causal=False, mask=mask).transpose(1, 2).flatten(2)

    def finish(self, x: Tensor, heard: Tensor) -> Tensor:
        """The block's output, float (..., D), from its input and what its heads hear."""
        h = self.attention_norm(self.mix(heard) + x)
        return self.norm(self.fc(h).relu() + h)

    def forward(self, x: Tensor, y: Tensor, hidden: Tensor | None) -> Tensor:
        """The block's output for X, float (G, T, D), over Y, float (G, L, D); `hidden` as in `attend`."""
        return self.finish(x, self.attend(self.query(x), self.key(y), self.value(y), hidden))

    def look(self, x: Tensor, y: Tensor, hidden: Tensor | None) -> Tensor:
        """`forward` of a single query, float (G, D), without making keys and values.

        Each head's query goes through its keys' weights once (q W^T) and then over Y itself, and what the head hears, a mean over Y, through
        its values' weights: the same numbers from a sixteenth of the products.
        """
        heads, dim = self.heads, y.shape[-1]
        q = self.query(x).unflatten(-1, (heads, -1))  # (G, heads, width)
        q = torch.einsum("ghw,hwd->ghd", q, self.key.weight.view(heads, -1, dim)) * q.shape[-1] ** -0.5
        weights = masked_softmax(q @ y.transpose(1, 2), hidden)  # (G, heads, L)
        heard = torch.einsum("ghd,hwd->ghw", weights @ y, self.value.weight.view(heads, -1, dim))
        return self.finish(x, heard.flatten(1))


def masked_softmax(scores: Tensor, hidden: Tensor | None) -> Tensor:
    """Weights of scores, float (G, heads, L); 0 where `hidden`, bool (G, L)."""
    return (scores if hidden is None else scores.masked_fill(hidden[:, None], -torch.inf)).softmax(-1)


class SMTMemory(SceneMemory):
    """Elements attend to each other (encoder), then the present one attends to all of them (decoder).

    The static parts of queries, keys and values of the first attention are kept, so that at a new step only what the poses add is computed.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, reach, whether there is an encoder.

    Source:
        Fang et al., 2019, section 3.3.
    """

    config: SMTConfig

    def __init__(self, input_dim: int, config: SMTConfig) -> None:
        super().__init__(input_dim, config)
        self.encoder = AttentionBlock(config.dim, config.heads) if config.encoder else None
        self.decoder = AttentionBlock(config.dim, config.heads)

    def projections(self) -> tuple[nn.Linear, ...]:
        """Query, key and value of the encoder; without one, key and value of the decoder, if they can be kept."""
        if self.encoder is None:
            return () if self.config.rectified else (self.decoder.key, self.decoder.value)
        return self.encoder.query, self.encoder.key, self.encoder.value

    def read(self, static: Tensor, view: Tensor, motion: Tensor, hidden: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        if self.encoder is None and not self.config.rectified:
            return self._read_raw(static, view, motion, hidden)
        moved = self.moved(static, view, motion)
        psi, now = moved[0], moved[0][:, -1]
        if self.encoder is None:
            return self.decoder.look(now, psi, hidden)
        q, k, v = moved[1:]
        return self.decoder.look(now, self.encoder.finish(psi, self.encoder.attend(q, k, v, hidden)), hidden)

    def _read_raw(self, static: Tensor, view: Tensor, motion: Tensor, hidden: Tensor | None) -> Tensor:
        """The decoder over elements as they are: a key is k + K v, so q (k + K v) = q k + (q K) v, and values alike."""
        heads, dim = self.config.heads, self.config.dim
        now = static[:, -1, :dim] + view[:, -1] @ motion[:, :dim]
        q = self.decoder.query(now).unflatten(-1, (heads, -1)) * (dim // heads) ** -0.5
        k, v = static[..., dim:].unflatten(-1, (2, heads, -1)).permute(2, 0, 3, 1, 4)  # (G, heads, L, width) each
        of_k, of_v = motion[:, dim:].unflatten(-1, (2, heads, -1)).permute(1, 2, 0, 3)  # (heads, V, width) each
        scores = (k @ q[..., None])[..., 0] + torch.einsum("ghw,hvw->ghv", q, of_k) @ view.transpose(1, 2)
        weights = masked_softmax(scores, hidden)
        heard = (weights[:, :, None] @ v)[:, :, 0] + torch.einsum("ghv,hvw->ghw", weights @ view, of_v)
        return self.decoder.finish(now, heard.flatten(1))


class FactorizedMemory(SceneMemory):
    """Centres attend to all elements, these attend to the centres, then the present element attends to all of them.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, reach, kind and number of centres.

    Source:
        Fang et al., 2019, section 3.4.
    """

    config: FactorizedConfig

    def __init__(self, input_dim: int, config: FactorizedConfig) -> None:
        super().__init__(input_dim, config)
        self.gather, self.spread, self.decoder = (AttentionBlock(config.dim, config.heads) for _ in range(3))
        if config.centres == "static":
            self.static_centres = nn.Parameter(torch.randn(config.n_centres, config.dim))

    def projections(self) -> tuple[nn.Linear, ...]:
        """Key and value of what centres hear, query of what hears centres."""
        return self.gather.key, self.gather.value, self.spread.query

    def read(self, static: Tensor, view: Tensor, motion: Tensor, hidden: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        psi, k, v, q = self.moved(static, view, motion)
        centres, absent = self._centres(psi, hidden)
        heard = self.gather.attend(self.gather.query(centres), k, v, hidden)
        centres = self.gather.finish(centres, heard)
        heard = self.spread.attend(q, self.spread.key(centres), self.spread.value(centres), absent)
        return self.decoder.look(psi[:, -1], self.spread.finish(psi, heard), hidden)

    def _centres(self, psi: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Centres, float (G, C, D), and those that are not there, bool (G, C)."""
        count = self.config.n_centres
        if self.config.centres == "static":
            return self.static_centres.expand(len(psi), -1, -1), None
        if psi.shape[1] <= count:
            return psi, hidden
        if self.config.centres == "window":
            return psi[:, -count:], None if hidden is None else hidden[:, -count:]
        chosen = farthest_points(psi, hidden, count)
        centres = psi.gather(1, chosen[..., None].expand(-1, -1, psi.shape[-1]))
        if hidden is None:
            return centres, None
        there = (~hidden).sum(1, keepdim=True)
        return centres, torch.arange(count, device=psi.device) >= there


@torch.no_grad()
def farthest_points(points: Tensor, hidden: Tensor | None, count: int) -> Tensor:
    """Indices of points spread as far as possible: the last one first, then the one whose nearest chosen one is farthest.

    Args:
        points: float, (G, L, D).
        hidden: bool, (G, L); points that are not there; None if all are. The last one is.
        count: How many, at most L. A row with fewer has all of its own first.

    Returns:
        int64, (G, count); distinct as far as there are points. Of equally far ones the first is taken.

    Source:
        Fang et al., 2019, section 3.4; Qi et al., PointNet++, 2017.
    """
    rows = torch.arange(len(points), device=points.device)
    nearest = points.new_full(points.shape[:2], torch.inf)
    if hidden is not None:
        nearest = nearest.masked_fill(hidden, -torch.inf)
    last = torch.full_like(rows, points.shape[1] - 1)
    if points.device.type == "cpu" and points.dtype == torch.float32:
        from memenvs.agents.memory.kernels.farthest_cpu import select_farthest

        found = last[:, None].repeat(1, count)
        select_farthest(points.transpose(1, 2).contiguous().numpy(), nearest.numpy(), found.numpy())
        return found
    chosen = [last]
    points = points - points[:, -1:]  # or products of large numbers blur the distances of near ones
    distances = torch.cdist(points, points)
    for _ in range(count - 1):
        nearest = torch.minimum(nearest, distances[rows, chosen[-1]])
        nearest[rows, chosen[-1]] = -1.0  # taken again only where no other is left
        chosen.append(nearest.argmax(1))
    return torch.stack(chosen, 1)


PRESENT_WEIGHT = 4.0
"""What half of the features of `PoolingMemory` begin with for being of the present; elements differ by some 0.5."""


class PoolingMemory(SceneMemory):
    """The largest of each feature over all elements.

    The present step is one element of many and has no other way to the decision than its age. So half of the features begin with a large
    weight of an exponential age, where they are mostly the present step's; what becomes of that is learned.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, reach, how age is told.

    Source:
        Fang et al., 2019, section 4.2 (SM + Pooling).
    """

    def __init__(self, input_dim: int, config: SceneConfig) -> None:
        super().__init__(input_dim, config)
        if config.time == "exponential":
            age, half = 4 * config.poses, config.dim // 2
            with torch.no_grad():  # one number of the embedded pose is the age itself
                self.pose.weight[0] = 0.0
                self.pose.weight[0, age] = 1.0
                self.pose.bias[0] = 0.0
                self.fusion.weight[:half, input_dim] = PRESENT_WEIGHT
                self.fusion.weight[half:, input_dim] = 0.0

    def projections(self) -> tuple[nn.Linear, ...]:
        """None."""
        return ()

    def read(self, static: Tensor, view: Tensor, motion: Tensor, hidden: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        (psi,) = self.moved(static, view, motion)
        return (psi if hidden is None else psi.masked_fill(hidden[..., None], -torch.inf)).amax(1)
