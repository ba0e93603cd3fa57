"""Room-to-Room: follow a description of a way."""

from __future__ import annotations

from memenvs.vln.config import R2RConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.make import make_graph_world


class R2R(GraphNavigation):
    """Walk the way that an English instruction describes, and stop within 3 m of its end.

    Observation (`Dict`): `instruction` int64 (L,), tokens, 0 beyond the end, and `instruction_mask` int8 (L,); `candidates` float32 (17, D + 128),
    for each neighbour the image feature of the view that shows it (D numbers, 64 if synthetic) and the angles (sin h, cos h, sin e, cos e) of its
    direction 32 times, h relative to the camera, e absolute, zeros beyond the last and for stop; `candidate_mask` int8 (17,), which actions there
    are; `direction` float32 (4,), sine and cosine of the camera's heading and of its elevation; `panorama` float32 (36, D + 128) if asked for.
    Action (`Discrete(17)`): walk to that candidate; the last one stops. After a move the camera looks along the view that showed the candidate.
    A masked action is an error unless `invalid="stop"`.
    Reward: to stop pays 2 + 2 nDTW in success and else -2; a move pays 1 if it comes nearer and -1 if it goes away, plus what nDTW gains, and costs
    2 (1 - d) more if it goes away from d <= 1 m.
    Ends: at stop; truncated after 15 decisions, in tours of several legs 15 for each.
    Layout: number of the instruction in its split, in the order of the file. Options: `episode` (the same number) and `instr_id`, such as "6939_2"
    or, in procedural houses, "1003-12_2".
    Info: `ne` (distance to the goal, m), `sr`, `osr`, `spl`, `tl` (m), `ndtw`, `sdtw`, `cls` and `success` as if it stopped here; `pose` (x m, y m,
    heading rad, counter-clockwise from +x), `place` (number of the viewpoint in the split), `scan`, `viewpoint`, `heading` (rad, clockwise from
    +y), `elevation` (rad), `episode`, `instr_id`, `text`, `teacher_action`, `action_mask`.

    Source:
        Anderson et al. 2018 with the panoramic actions of Fried et al. 2018; rewards, limits and layout of features as MTVM (2022) has them.
        Success is the same whether the agent stopped or ran out of decisions.
    """

    config_type = R2RConfig
    config: R2RConfig
    _cut = "cut_end"

    def _make_world(self) -> GraphWorld:
        config = self.config
        return make_graph_world(config.world, "r2r", split=config.split, data_dir=config.data_dir, legs=config.legs)
