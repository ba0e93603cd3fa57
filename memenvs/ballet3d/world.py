"""Ballet3D in batches: episodes from keys, and the pictures that they show."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from memenvs.ballet3d.episodes import (
    BACK,
    DANCE_POSITIONS,
    DANCES,
    FRONT,
    LEFT,
    LOOP,
    NUM_DANCERS,
    NUM_STEPS,
    NUM_VIEWS,
    POSITIONS,
    REST,
    RIGHT,
    START_HEADING_DEG,
    TURN_DEG,
    TURNING,
    WALL_HEADINGS_DEG,
    WALLS,
    WATCHING,
    DanceEpisodes,
    position_numbers,
)
from memenvs.ballet3d.room import DanceRoom
from memenvs.box_rooms.worlds import explain_miniworld
from memenvs.episode_keys import KeyedEpisodes, check_keys
from memenvs.random import random_words
from memenvs.retention import STRATEGIES

if TYPE_CHECKING:
    from memenvs.ballet3d.miniworld import MiniworldDanceRoom

StrategyTask = Literal["fifo", "lifo", "lvfo", "mvfo", "multi"]
#: Position number after t % 6 moves of each dance, int64, (5, 6).
_POSE = position_numbers(np.roll(DANCE_POSITIONS, 1, axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class DanceWorld(KeyedEpisodes[DanceEpisodes]):
    """Rules of Ballet3D.

    Attributes:
        strategy_task: "fifo", "lifo", "lvfo" or "mvfo": queries are about dancers that a memory of 72 steps with this
            strategy keeps; "multi": episodes have these four in turn.
        n_south: Dancers before the back (south) wall, 3 or 4.
        room: What draws the pictures.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, section 4.4 and its appendix; dancers, dances and times
        as in an earlier environment of one of the authors.
    """

    strategy_task: StrategyTask = "multi"
    n_south: int = 4
    room: DanceRoom | MiniworldDanceRoom = field(default_factory=DanceRoom)

    @property
    def num_dancers(self) -> int:
        """Dancers of an episode, S."""
        return self.n_south + 3

    @cached_property
    def back_dancer(self) -> np.ndarray:
        """int64, (T,); number of the dancer who is before the back wall at each step."""
        changes = np.array([54, 72, 90]) if self.n_south == 4 else np.array([63, 81])
        return 2 + (np.arange(NUM_STEPS)[:, None] >= changes).sum(1)

    @cached_property
    def queried(self) -> np.ndarray:
        """bool, (4, S); dancers that each task of `memenvs.retention.STRATEGIES` queries.

        The last three or four that the robot faces (fifo), the first (lifo), those before the back wall (lvfo), the
        last one before each wall (mvfo).
        """
        number = np.arange(self.num_dancers)
        by_task = {
            "fifo": number >= 3,
            "lifo": number < self.n_south,
            "lvfo": (number >= 2) & (number < self.num_dancers - 1),
            "mvfo": (number < 2) | (number >= self.num_dancers - 2),
        }
        return np.stack([by_task[name] for name in STRATEGIES])

    @property
    def num_keyed_tasks(self) -> int:  # type: ignore[override]
        """Number of tasks of which the remainder of a key chooses one."""
        return len(STRATEGIES) if self.strategy_task == "multi" else 1

    def make_episodes(self, keys: np.ndarray) -> DanceEpisodes:
        """Make the episodes of these keys.

        Args:
            keys: int64, (B,), >= 0; with "multi" the remainder by 4 chooses the task.

        Raises:
            ValueError: Keys have another type, shape or range.
        """
        keys = check_keys(keys)
        count = self.num_dancers
        num_turns = NUM_STEPS - WATCHING
        words = random_words(keys.astype(np.uint64), num_turns + NUM_DANCERS + count + 1)
        turns, order, dances, query = np.split(words, np.cumsum([num_turns, NUM_DANCERS, count]), axis=1)
        low, high = TURN_DEG
        drawn = np.zeros((len(keys), NUM_STEPS))
        is_turn = np.ones(NUM_STEPS, bool)
        is_turn[TURNING : TURNING + WATCHING] = False
        drawn[:, is_turn] = low + (high - low) * (turns >> np.uint64(11)) * 2.0**-53
        heading = (START_HEADING_DEG - drawn.cumsum(1)) % 360.0
        apart = np.abs((heading[..., None] - WALL_HEADINGS_DEG + 180.0) % 360.0 - 180.0)
        names = STRATEGIES if self.strategy_task == "multi" else (self.strategy_task,)
        task = np.array([STRATEGIES.index(name) for name in names])
        episodes = DanceEpisodes(
            heading=np.radians(heading),
            place=apart.argmin(-1).astype(np.int16),
            dancer=order.argsort(1, kind="stable")[:, :count].astype(np.int8),
            dance=_below(dances, len(DANCES)).astype(np.int8),
            task_id=task[keys % len(task)].astype(np.int8),
            query_dancer=np.zeros(len(keys), np.int8),
            query=np.zeros(len(keys), np.int16),
            answer=np.zeros((len(keys), LOOP), np.int16),
            key=keys,
        )
        candidates = self.queried[episodes.task_id]  # (B, S)
        rank = _below(query[:, 0], candidates.sum(1))
        return self.with_query(episodes, (candidates.cumsum(1) > rank[:, None]).argmax(1))

    def with_query(self, episodes: DanceEpisodes, query_dancer: np.ndarray) -> DanceEpisodes:
        """Return the same episodes with other queries.

        Args:
            episodes: B episodes.
            query_dancer: int, (B,); the queried dancers, 0 ... S - 1. The task itself need not ask for them.

        Raises:
            ValueError: There is no such dancer.
        """
        number = np.asarray(query_dancer)
        is_valid = number.dtype.kind in "iu" and not ((number < 0) | (number >= self.num_dancers)).any()
        if number.shape != (len(episodes),) or not is_valid:
            raise ValueError(
                f"query must be the number of a dancer, 0 ... {self.num_dancers - 1}, for each of {len(episodes)} "
                f"episodes, got {query_dancer}"
            )
        rows = np.arange(len(episodes))
        first = episodes.dancer[rows, number].astype(np.int16) * len(POSITIONS)
        answer = first[:, None] + position_numbers(DANCE_POSITIONS[episodes.dance[rows, number]])
        fields = vars(episodes) | {
            "query_dancer": number.astype(np.int8),
            "query": first + np.int16(REST),
            "answer": answer.astype(np.int16),
        }
        return DanceEpisodes(**fields)

    def draw(self, episodes: DanceEpisodes, steps: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw what steps show, each picture once.

        While the robot stands still, steps repeat: of 126 steps 95 show different pictures.

        Args:
            episodes: B episodes.
            steps: bool, (B, T); the steps to draw, such as those in a memory; None for all.

        Returns:
            uint8, (P, 84, 84, 3), the pictures, and int64, (B, T), the row of each step; -1 for steps that are not
            drawn.
        """
        steps = np.ones(episodes.place.shape, bool) if steps is None else np.asarray(steps, bool)
        b, t = np.nonzero(steps)
        # A step shows the same as another with its heading, its dancer before the back wall and its part of the loop.
        view = np.where((t >= TURNING) & (t < TURNING + WATCHING), TURNING - 1, t)
        signature = ((b * NUM_STEPS + view) * self.num_dancers + self.back_dancer[t]) * LOOP + t % LOOP
        _, first, inverse = np.unique(signature, return_index=True, return_inverse=True)
        rows = np.full(steps.shape, -1)
        rows[b, t] = inverse
        return self.room.draw(episodes.heading[b, t][first], *self.on_stage(episodes, b[first], t[first])), rows

    def on_stage(self, episodes: DanceEpisodes, b: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the dancers before the four walls, in the order of `WALLS`.

        Args:
            episodes: The episodes.
            b: int, (K,); numbers of episodes.
            t: int, (K,); steps.

        Returns:
            Dancers, int64 (K, 4), and their positions, int64 (K, 4), rows of `POSITIONS`.
        """
        number = np.zeros((len(b), len(WALLS)), np.int64)
        number[:, RIGHT], number[:, BACK], number[:, LEFT] = 1, self.back_dancer[t], self.num_dancers - 1
        dancer = episodes.dancer[b[:, None], number].astype(np.int64)
        return dancer, _POSE[episodes.dance[b[:, None], number], t[:, None] % LOOP]

    @cached_property
    def front_views(self) -> np.ndarray:
        """uint8, (72, 84, 84, 3), read-only; each dancer alone, in each position.

        They show the front wall, and are what queries and answers show: row = dancer * 6 + position.
        """
        number, at_front = np.divmod(np.arange(NUM_VIEWS), len(POSITIONS))
        dancer = (number[:, None] + np.arange(len(WALLS))) % NUM_DANCERS  # those before other walls are out of view
        position = np.full(dancer.shape, REST)
        position[:, FRONT] = at_front
        heading = np.full(NUM_VIEWS, np.radians(WALL_HEADINGS_DEG[FRONT]))
        views = self.room.draw(heading, dancer, position)
        views.flags.writeable = False
        return views

    def answers(self, episodes: DanceEpisodes) -> np.ndarray:
        """Return the pictures to produce.

        Returns:
            uint8, (B, 84, 84, 18); six colour images one behind the other.
        """
        pictures = self.front_views[episodes.answer]  # (B, 6, 84, 84, 3)
        return np.moveaxis(pictures, 1, 3).reshape(len(episodes), *pictures.shape[2:4], -1)


def make_room(world: str, threads: int) -> DanceRoom | MiniworldDanceRoom:
    """Make what draws the pictures of a world.

    Args:
        world: "builtin" or "miniworld".
        threads: Rendering threads of world "builtin".

    Raises:
        ImportError: Miniworld is not installed, or there is no display.
    """
    if world == "builtin":
        return DanceRoom(threads=threads)
    with explain_miniworld():
        from memenvs.ballet3d.miniworld import MiniworldDanceRoom
    return MiniworldDanceRoom()


def _below(words: np.ndarray, count: int | np.ndarray) -> np.ndarray:
    """Convert random words to integers below `count`, int64."""
    return ((words >> np.uint64(32)) * np.asarray(count, np.uint64) >> np.uint64(32)).astype(np.int64)
