"""Tours of ColorRecall: a path to goals through a home, then a stay near where it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memenvs.recall.homes import RecallHome
from memenvs.retention import retained

FORWARD, LEFT, RIGHT, NO_MOVE = range(4)
#: One step (m) and one turn (degrees).
FORWARD_DISTANCE = 0.25
TURN_DEG = 10.0
#: The observer stays within this distance of where the path ended, m.
STAY_RADIUS = 2.0
#: Tours that are drawn for one in which the memory keeps the cue. In homes of two places about half of them do.
MAX_DRAWN = 200


@dataclass(frozen=True, eq=False)
class Tour:
    """Path and stay of an observer in an episode of T steps.

    Attributes:
        pose: float64, (T, 3); x, y (m) and heading (rad).
        move: int8, (T,); the move that led to each step: 0 forward, 1 left, 2 right; 3 at the first step.
        place: int16, (T,); nearest room centre.
    """

    pose: np.ndarray
    move: np.ndarray
    place: np.ndarray


def make_tour(home: RecallHome, key: int, steps: tuple[int, int], capacity: int) -> Tour:
    """Make a tour in which a memory with the strategy MVFO keeps the first step.

    Args:
        home: The home.
        key: Number of the tour, >= 0; it and the other arguments determine the tour.
        steps: Steps of the path and of the stay.
        capacity: Steps that the memory can keep.

    Raises:
        ValueError: The memory keeps the first step in none of `MAX_DRAWN` tours.
    """
    rng = np.random.default_rng(key)
    for _ in range(MAX_DRAWN):
        tour = _draw_tour(home, rng, steps)
        if keeps_cue(tour.place, "mvfo", capacity):
            return tour
    raise ValueError(
        f"house {home.name!r} must have tours of {steps} steps in which a memory of capacity {capacity} keeps the "
        f"first step by the strategy MVFO, got none among {MAX_DRAWN}"
    )


def keeps_cue(place: np.ndarray, strategy: str, capacity: int) -> bool:
    """Return True if a memory has the first step when the query is shown.

    The query is a step in the last place too.

    Args:
        place: int, (T,); place of each step.
        strategy: Its eviction strategy; see `memenvs.retention`.
        capacity: Steps that it can keep.
    """
    return bool(retained(np.append(place, place[-1])[None], strategy, capacity)[0, 0])


def _draw_tour(home: RecallHome, rng: np.random.Generator, steps: tuple[int, int]) -> Tour:
    """Draw a tour, whatever a memory keeps of it."""
    path_steps, stay_steps = steps
    turn = math.radians(TURN_DEG)
    pose = home.random_pose(rng)
    poses, moves = [pose], [NO_MOVE]
    goal_distances = home.distances_to(home.random_pose(rng)[:2])
    while len(poses) < path_steps:
        turns = home.turns_towards(goal_distances, pose, turn, FORWARD_DISTANCE)
        if turns is None:  # arrived; where no other goal is farther than a step, it turns
            goal_distances = home.distances_to(home.random_pose(rng)[:2])
            turns = 1
        move = FORWARD if turns == 0 else LEFT if turns > 0 else RIGHT
        pose = _moved(home, pose, move, turn)
        poses.append(pose)
        moves.append(move)
    end = pose[:2]
    for _ in range(stay_steps):
        move = int(rng.integers(3))
        after = _moved(home, pose, move, turn)
        if math.dist(after[:2], end) > STAY_RADIUS:
            move = int(rng.integers(LEFT, RIGHT + 1))
            after = _moved(home, pose, move, turn)
        pose = after
        poses.append(pose)
        moves.append(move)
    path = np.array(poses)
    return Tour(path, np.array(moves, np.int8), home.places(path).astype(np.int16))


def _moved(home: RecallHome, pose: np.ndarray, move: int, turn: float) -> np.ndarray:
    """Pose after a move."""
    if move == FORWARD:
        return home.forward(pose, FORWARD_DISTANCE)
    return np.array([pose[0], pose[1], pose[2] + (turn if move == LEFT else -turn)])
