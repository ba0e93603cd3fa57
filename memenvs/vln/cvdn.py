"""Cooperative Vision-and-Dialog Navigation (CVDN)."""

from __future__ import annotations

import numpy as np

from memenvs.vln.config import CVDNConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.make import make_graph_world


class CVDN(GraphNavigation):
    """Navigation from dialogue history (NDH): move towards the object that a dialogue is about.

    Observation (`Dict`): as `R2R`. `instruction` is the dialogue: each turn after [NAV] or [ORA], oldest first, then
    [TAR] and the object. Texts that are too long lose their oldest tokens.
    Action (`Discrete(17)`): as `R2R`.
    Reward: as `R2R`, with the path of the supervision as reference and its end as goal.
    Ends: terminates at stop; truncated after 20 decisions (supervision "oracle") or 40.
    Layout: number of the instance in its split, in the order of the file. Options: `episode_number` (the same
    number) and `instr_id` (its `inst_idx` as text).
    Info: as `R2R`, and the score `gp`, goal progress: metres nearer to the region of the object than at the start,
    whatever the supervision. `success` and R2R's metrics refer to the goal of the supervision.

    Source:
        Thomason et al. 2019. Goal progress of the paths to the goals of val_unseen: oracle 8.36, navigator 7.99, mixed
        9.58.
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
        return super().info() | {"gp": self._path_metrics.progress}
