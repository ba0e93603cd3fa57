"""Losses of a memory in trials that lead to other homes and back (`itinerary`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from memenvs.itineraries import visits

INTERFERENCE, RECOVERY, RETENTION = "interference", "recovery", "retention"
MEANINGS = {
    INTERFERENCE: "what a memory that was emptied at the change scores more in the first visit of another home",
    RECOVERY: "by how much this is less in the second half of that visit than in the first",
    RETENTION: "score at the end of a visit, minus that after the return to the same home: 0 if nothing was lost",
}
"""Score -> its meaning, for people."""


def itinerary_scores(carried: np.ndarray, fresh: np.ndarray | None, itinerary: str) -> dict[str, np.ndarray]:
    """Compute what is lost by a change of home, for each trial.

    Args:
        carried: float64, (trials, E); a metric of each episode, with the memory of the whole trial.
        fresh: The same of a memory that is emptied at each change; None where it was not played.
        itinerary: Letters of the E episodes.

    Returns:
        Name -> float64, (trials,). `interference`: mean over the first visits of homes after the first of fresh minus
        carried. `recovery`: this difference in the first half of these visits minus that in the second half (the middle
        episode is left out), for visits of two episodes or more. `retention`: mean over the returns of the last
        episodes of the visit before minus as many episodes after the return. A score that no visit permits is left out.
    """
    scores: dict[str, list[np.ndarray]] = {}
    last_of: dict[str, range] = {}
    for number, (letter, episodes) in enumerate(visits(itinerary)):
        if letter in last_of:
            count = min(len(episodes), len(last_of[letter]))
            before = carried[:, last_of[letter][-count:]].mean(1)
            scores.setdefault(RETENTION, []).append(before - carried[:, episodes[:count]].mean(1))
        elif number > 0 and fresh is not None:
            loss = fresh[:, episodes] - carried[:, episodes]
            scores.setdefault(INTERFERENCE, []).append(loss.mean(1))
            half = len(episodes) // 2
            if half:
                scores.setdefault(RECOVERY, []).append(loss[:, :half].mean(1) - loss[:, -half:].mean(1))
        last_of[letter] = episodes
    return {name: np.mean(scores[name], axis=0) for name in MEANINGS if name in scores}


def score_texts(data: Mapping[str, Any], metric: str) -> list[str]:
    """Format the scores of a metric by visit, and what is lost by the changes.

    Args:
        data: `TrialResults.to_json` of trials with an itinerary.
        metric: Name of the metric.

    Returns:
        One line of the means of each visit, and one of interference, recovery and retention, where there are any.
    """
    itinerary, means = data["itinerary"]["letters"], data["metrics"][metric]["mean"]
    parts = [
        f"{letter} " + " ".join(f"{means[e]:.3g}" for e in episodes if e < len(means))
        for letter, episodes in visits(itinerary)
    ]
    scores = data["itinerary"]["metrics"][metric]
    lost = [f"{name} {scores[name]['mean']:.3g} +- {scores[name]['stderr']:.2g}" for name in MEANINGS if name in scores]
    return ["; ".join(parts), *([", ".join(lost)] if lost else [])]
