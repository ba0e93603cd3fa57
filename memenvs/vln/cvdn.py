"""Cooperative Vision-and-Dialog Navigation: go on from a dialogue towards a thing."""

from __future__ import annotations

import numpy as np

from memenvs.vln.config import CVDNConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.make import make_graph_world


class CVDN(GraphNavigation):
    """Navigation from dialogue history (NDH): come nearer to a thing that a dialogue and a word are about.

    Observation (`Dict`): as `R2R`; `instruction` is the dialogue, each turn begun by [NAV] or [ORA], oldest first, then [TAR] and the thing. What is
    too long loses its oldest tokens.
    Action (`Discrete(17)`): as `R2R`.
    Reward: as `R2R`, with the end of the supervision's path as goal and that path as reference.
    Ends: at stop; truncated after 20 decisions (supervision "oracle") or 40.
    Layout: number of the instance in its split, in the order of the file. Options: `episode` (the same number) and `instr_id` (its `inst_idx` as
    text).
    Info: as `R2R`, and `gp`, the goal progress: how many metres nearer to the region of the thing than at the start, which is the score whatever
    the supervision. `success` and the metrics of R2R are about the goal of the supervision.

    Source:
        Thomason et al. 2019. Goal progress of walking to the goals of val_unseen: oracle 8.36, navigator 7.99, mixed 9.58.
    """

    config_type = CVDNConfig
    config: CVDNConfig
    _cut = "cut_start"

    def _make_world(self) -> GraphWorld:
        config = self.config
        return make_graph_world(
            config.world,
            "cvdn",
            split=config.split,
            data_dir=config.data_dir,
            supervision=config.supervision,
            history=config.history,
        )

    def info(self) -> dict[str, np.ndarray]:
        """Truth; see the class."""
        return super().info() | {"gp": self._paths.progress}
