"""Room-to-Room (R2R)."""

from __future__ import annotations

from memenvs.data import find_vln_folder
from memenvs.vln.config import R2RConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.mp3d import load_r2r
from memenvs.vln.worlds.mp3d_joined import load_joined_r2r
from memenvs.vln.worlds.procedural.rounds import load_rounds
from memenvs.vln.worlds.procedural.world import load_routes


class R2R(GraphNavigation):
    """Follow the path that an English instruction describes, and stop within 3 m of its end.

    The agent moves on a graph of viewpoints. By default the graphs are in our own houses, with instructions that a
    follower has verified, and a path has three legs: places come more than once, and the view does not say which part
    of the text comes next.

    Termination:
        Stop terminates; 15 decisions per leg truncate. Success is the same whether the agent stopped or ran out of
        decisions. With `laps` a move that leaves the path terminates too.

    Options:
        instr_id: Id of the instruction, such as "6939_2" or, in procedural houses, "1003-12_2".

    Variants:
        - `world="mp3d", split="val_unseen"`: the real graphs, from the folder `vln` in `MEMENVS_DATA`, or from
          `data_dir=FOLDER`: that folder or its parent. Splits are train, val_seen and val_unseen; R2R has
          val_train_seen too.
        - `world="mp3d", legs=2`: Room-for-Room (R4R), two published paths one after another, with both texts. A
          success needs to come within 3 m of the end of the first path, of the start of the second and of the goal, in
          this order. `legs=3` joins three.
        - `legs=1`: paths as long as those of R2R, also `legs=2`. They hardly need a memory: the rule `memoryless`,
          which sees the text and the present viewpoint, succeeds in 83, 48 and 4 % of one, two and three legs; the rule
          `ideal`, which remembers what it has passed, in 95, 93 and 87 %. With the last 4 or 16 steps alone it
          succeeds in 38 and 87 % of three legs: the memory is a short one.
        - `laps=5`: to a place and back five times, then one more leg; the text says the number. The last 16 steps are
          the same after each lap from the second on, so only a count shows when to leave. `VLN-R2R-Long-v0` has it.
        - `features="FILE.tsv"`: your image features, as TSV, HDF5 (needs the extra `hdf5`) or `.npy`
          (`memenvs.vln.features.file_features`).
        - `tokenizer="wordpiece"`: texts in BERT's word pieces. `panorama=True`: all 36 views.

    Source:
        Anderson et al., "Vision-and-Language Navigation", CVPR 2018, with the panoramic actions of Fried et al. 2018.
        Rewards, limits and feature layout are those of Lin et al., "Multimodal Transformer with Variable-length Memory
        for Vision-and-Language Navigation" (MTVM), ECCV 2022 (arXiv:2111.05759). R4R: Jain et al., "Stay on the Path",
        ACL 2019.

    See Also:
        `memenvs.vln.env.GraphNavigation`: observation, action, reward and info.
    """

    config_type = R2RConfig
    config: R2RConfig
    _cut = "cut_end"

    def _make_world(self) -> GraphWorld:
        config = self.config
        if config.world == "mp3d":
            folder = find_vln_folder(config.data_dir)
            legs = config.num_legs
            return load_r2r(folder, config.split) if legs == 1 else load_joined_r2r(folder, config.split, legs)
        return load_rounds(config.split, config.laps) if config.laps else load_routes(config.split, config.num_legs)
