"""The factorised Scene Memory Transformer: attention through a few centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from memenvs.agents.memory.scene_memory import SceneConfig, SceneMemory
from memenvs.agents.memory.smt import AttentionBlock, check_heads

Centres = Literal["fps", "static", "window"]


@dataclass(frozen=True, kw_only=True)
class FactorizedConfig(SceneConfig):
    """Settings of the factorised Scene Memory Transformer.

    Attributes:
        heads: Attention heads; divides `dim`.
        centres: Representatives of the elements: "fps" (farthest point sampling from the current one), "window" (the
            newest ones) or "static" (learned vectors).
        n_centres: Number of centres; >= 1. While there are no more elements than that, all of them are centres ("fps"
            and "window").
    """

    heads: int = 8
    centres: Centres = "fps"
    n_centres: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.dim, self.heads)


class FactorizedMemory(SceneMemory):
    r"""`SMTMemory` whose elements attend to each other through a few centres.

    Idea:
        A few elements represent all: they gather from every element, and every element then attends to them. Attention
        of M elements to C centres takes M C products, not M^2. Centres are chosen by farthest point sampling, so that
        they cover different places.

    Equations:
        .. math::

            C' &= \operatorname{block}(C, \Psi) \\
            E &= \operatorname{block}(\Psi, C') \\
            f_t &= \operatorname{block}(\psi_t, E)

        Psi and block are those of `smt`. C are rows of Psi ("fps", "window") or learned vectors ("static").

    State:
        A log with slots for twice the capacity M. A slot has the static part of the element and of two keys or queries
        and a value, 4 D numbers, and a pose.

    Cost:
        A decision with M elements and C centres takes about 4 M C D + (2 M + 5 C) D^2 + 2 h M D + 4 M R D
        multiply-adds. Farthest point sampling adds the distances between all elements, M^2 D; "window" and "static"
        have none.

    When to use:
        As `smt`, where several hundred elements are kept.

    When not to use:
        As long as there are hardly more elements than centres: it then costs more than `smt`. Where speed matters
        most, `smt-causal` is faster.

    Difference from the paper:
        The first centre is the present element, so that nothing is drawn at random. While there are no more elements
        than centres, all are centres. Otherwise as `smt`.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, kind and number of centres.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019
        (arXiv:1903.03878), section 3.4.
    """

    config: FactorizedConfig

    def __init__(self, input_dim: int, config: FactorizedConfig) -> None:
        super().__init__(input_dim, config)
        self.gather, self.spread, self.decoder = (AttentionBlock(config.dim, config.heads) for _ in range(3))
        if config.centres == "static":
            self.static_centres = nn.Parameter(torch.randn(config.n_centres, config.dim))

    def projections(self) -> tuple[nn.Linear, ...]:
        """Key and value of the elements for the centres, and query of the elements to the centres."""
        return self.gather.key, self.gather.value, self.spread.query

    def read(self, static: Tensor, relative: Tensor, relative_weight: Tensor, absent: Tensor | None) -> Tensor:
        """See `SceneMemory.read`."""
        psi, k, v, q = self.elements(static, relative, relative_weight)  # (G, L, D) each
        centres, absent_centres = self._centres(psi, absent)  # (G, C, D)
        centres = self.gather.finish(centres, self.gather.attend(self.gather.query(centres), k, v, absent))
        attended = self.spread.attend(q, self.spread.key(centres), self.spread.value(centres), absent_centres)
        return self.decoder.read(psi[:, -1], self.spread.finish(psi, attended), absent)

    def _centres(self, psi: Tensor, absent: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Choose centres of the elements psi, (G, L, D): float (G, C, D), and which are absent, bool (G, C) or None."""
        count = self.config.n_centres
        if self.config.centres == "static":
            return self.static_centres.expand(len(psi), -1, -1), None
        if psi.shape[1] <= count:
            return psi, absent
        if self.config.centres == "window":
            return psi[:, -count:], None if absent is None else absent[:, -count:]
        chosen = farthest_points(psi, absent, count)
        centres = psi.gather(1, chosen[..., None].expand(-1, -1, psi.shape[-1]))
        if absent is None:
            return centres, None
        # A row with fewer elements than centres has all of them first; the remaining choices are repetitions.
        existing = (~absent).sum(1, keepdim=True)
        return centres, torch.arange(count, device=psi.device) >= existing


@torch.no_grad()
def farthest_points(points: Tensor, absent: Tensor | None, count: int) -> Tensor:
    """Choose points by farthest point sampling.

    The last point is chosen first. Each next one is the point whose nearest chosen point is farthest.

    Args:
        points: float, (G, L, D).
        absent: bool, (G, L); True for points that do not exist; None if all do. The last one exists.
        count: Number of points to choose, at most L. A row with fewer has all of its own first.

    Returns:
        int64, (G, count); indices, distinct unless a row has fewer points. Ties go to the first point.

    Source:
        Fang et al., 2019, section 3.4; Qi et al., PointNet++, 2017.
    """
    rows = torch.arange(len(points), device=points.device)
    nearest = points.new_full(points.shape[:2], torch.inf)  # distance of each point to the nearest chosen one
    if absent is not None:
        nearest = nearest.masked_fill(absent, -torch.inf)
    points = points - points[:, -1:]  # cdist expands |a - b|^2: far from 0, it loses digits
    points = points.to(torch.promote_types(points.dtype, torch.float32))  # it has no half precision on a CPU
    distances = torch.cdist(points, points)  # (G, L, L)
    distances.diagonal(dim1=1, dim2=2).fill_(-1.0)  # a chosen point is taken again only where no other is left
    chosen = [torch.full_like(rows, points.shape[1] - 1)]
    for _ in range(count - 1):
        nearest = torch.minimum(nearest, distances[rows, chosen[-1]])
        chosen.append(nearest.argmax(1))
    return torch.stack(chosen, 1)
