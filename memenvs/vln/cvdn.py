"""Cooperative Vision-and-Dialog Navigation (CVDN)."""

from __future__ import annotations

import numpy as np

from memenvs.data import find_vln_folder
from memenvs.vln.config import CVDNConfig
from memenvs.vln.env import GraphNavigation
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.mp3d import load_cvdn
from memenvs.vln.worlds.procedural.dialogues import load_dialogues
from memenvs.vln.worlds.procedural.errands import load_errands


class CVDN(GraphNavigation):
    """Navigation from dialogue history (NDH): move towards the object that a dialogue is about.

    In procedural houses the dialogue takes place before the agent sets out on an errand of three legs, and each answer
    describes one of them; places come more than once, so that the view does not say which answer comes next. With
    `legs=1`, and on the real graphs, it is as published: the last answer describes the next five edges at most, and
    those before are about what lies behind.

    The observation `instruction` is the dialogue: each turn after [NAV] or [ORA], oldest first, then [TAR] and the
    object. Texts that are too long lose their oldest tokens.

    Reward:
        As in R2R, with the path of the supervision as reference and its end as goal. Stopping pays 2 + 2 nDTW for a
        success, else -2. A move pays 1 if it decreases the distance to the goal, -1 if it increases it, plus the
        increase of nDTW. Moving away from d <= 1 m costs 2 (1 - d) more.

    Termination:
        Stop terminates; 15 decisions per leg truncate, with one leg 20 (supervision "oracle") or 40.

    Options:
        instr_id: `inst_idx` of the instance, as text.

    Info:
        gp: Goal progress, the published score: metres nearer to the region of the object than at the start, whatever
            the supervision. It counts what is walked beyond the goal too, so here the score is `success`, which like
            R2R's metrics refers to the goal of the supervision.

    Variants:
        - `world="mp3d", split="val_unseen"`: the real graphs, from the folder `vln` in `MEMENVS_DATA`, or from
          `data_dir=FOLDER`: that folder or its parent. You can use the splits whose files you have.
        - `legs=1`: dialogues as published. They need next to no memory: the rule `memoryless` has a success of 59 % and
          9.9 m of goal progress, the rule `ideal`, which remembers, 61 % and 9.8 m. With three legs they succeed in 5
          and 89 %; with the last 4 or 16 steps alone `ideal` has 39 and 89 %: the memory is a short one.
        - `supervision="oracle"`: the path that the teacher follows; also "navigator" and "mixed". With one leg only.
        - `history="last_answer"`: the part of the dialogue that is given; also "all", "last_exchange" and "target".
        - `features="FILE.tsv"`: your image features, as TSV, HDF5 (needs the extra `hdf5`) or `.npy`
          (`memenvs.vln.features.file_features`).
        - `tokenizer="wordpiece"`: texts in BERT's word pieces. `panorama=True`: all 36 views.

    Source:
        Thomason et al., "Vision-and-Dialog Navigation", CoRL 2019. Goal progress of the paths to the goals of
        val_unseen: oracle 8.36, navigator 7.99, mixed 9.58.

    See Also:
        `memenvs.vln.env.GraphNavigation`: observation, action and the rest of the info.
    """

    config_type = CVDNConfig
    config: CVDNConfig
    _cut = "cut_start"

    def _make_world(self) -> GraphWorld:
        config = self.config
        if config.world == "mp3d":
            folder = find_vln_folder(config.data_dir)
            return load_cvdn(folder, config.split, config.supervision, config.history)
        if config.num_legs > 1:
            return load_errands(config.split, config.history, config.num_legs)
        return load_dialogues(config.split, config.supervision, config.history)

    def info(self) -> dict[str, np.ndarray]:
        """Truth; see the class."""
        return super().info() | {"gp": self._path_metrics.progress}
