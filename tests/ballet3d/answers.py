"""The best answers to a query of Ballet3D alone."""

from dataclasses import replace

import numpy as np

from memenvs.ballet3d.episodes import DANCES, DanceEpisodes
from memenvs.ballet3d.world import DanceWorld


def mean_answers(world: DanceWorld, episodes: DanceEpisodes) -> np.ndarray:
    """Average the true answers over all dances, float64, (B, 84, 84, 18), 0 to 255."""
    dances = (replace(episodes, dance=np.full_like(episodes.dance, k)) for k in range(len(DANCES)))
    return np.mean([world.answers(world.with_query(danced, episodes.query_dancer)) for danced in dances], 0)
