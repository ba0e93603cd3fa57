"""Room-to-Room (R2R)."""

from __future__ import annotations

from memenvs.vln.config import R2RConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.make import make_graph_world


class R2R(GraphNavigation):
    """Follow the path that an English instruction describes, and stop within 3 m of its end.

    Observation (`Dict`):
        `instruction`: int64 (L,); tokens, 0 beyond the end. `instruction_mask`: int8 (L,).
        `candidates`: float32 (17, D + 128); for each neighbour the image feature of its view (D numbers, 64 if
            synthetic) and (sin h, cos h, sin e, cos e) of its direction, 32 times; h is relative to the camera, e is
            absolute. Zeros beyond the last candidate and for stop.
        `candidate_mask`: int8 (17,); 1 for possible actions.
        `direction`: float32 (4,); sine and cosine of the camera's heading and of its elevation.
        `panorama`: float32 (36, D + 128); all views, with the setting `panorama=True`.
    Action (`Discrete(17)`): move to that candidate; the last action stops. After a move the camera points along the
    view that showed the candidate. A masked action is an error unless `invalid="stop"`.
    Reward: stopping pays 2 + 2 nDTW for a success, else -2. A move pays 1 if it decreases the distance to the goal, -1
    if it increases it, plus the increase of nDTW. Moving away from d <= 1 m costs 2 (1 - d) more.
    Ends: terminates at stop; truncated after 15 decisions, in tours after 15 per leg.
    Layout: number of the instruction in its split, in the order of the file. Options: `episode_number` (the same
    number) and `instr_id`, such as "6939_2" or, in procedural houses, "1003-12_2".
    Info: `ne` (distance to the goal, m), `sr`, `osr`, `spl`, `tl` (m), `ndtw`, `sdtw`, `cls` and `success` if the agent
    stopped now; `pose` (x m, y m, heading rad, counter-clockwise from +x), `place` (number of the viewpoint in the
    split), `scan`, `viewpoint`, `heading` (rad, clockwise from +y), `elevation` (rad), `episode_number`, `instr_id`,
    `text`, `teacher_action`, `action_mask`.

    Source:
        Anderson et al. 2018, with the panoramic actions of Fried et al. 2018; rewards, limits and feature layout of
        MTVM (2022). Success is the same whether the agent stopped or ran out of decisions.
    """

    config_type = R2RConfig
    config: R2RConfig
    _cut = "cut_end"

    def _make_world(self) -> GraphWorld:
        config = self.config
        return make_graph_world(config.world, "r2r", split=config.split, data_dir=config.data_dir, legs=config.legs)
