"""Room Ballet environments: watch dancers in rooms, then answer a query about one of them."""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np

from memenvs.grid_viewer import draw_grid, grid_pixels
from memenvs.room_ballet.config import BalletConfig, RoomsConfig, ScheduleConfig, ShortStayConfig
from memenvs.room_ballet.dances import DANCES
from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.episodes import NO_ACTION, NUM_FRAMES
from memenvs.room_ballet.frames import FRAME_PIXELS, empty_room, frame_table
from memenvs.task import Observation, Options
from memenvs.watch_task import WatchTask

#: Symbol of a frame without a dancer, the one after the rows of the frame table.
EMPTY_FRAME = NUM_FRAMES
#: Frames are enlarged by this factor in images for people.
_RENDER_SCALE = 8


class RoomBallet(WatchTask):
    """Answer a query about a dancer after a path through rooms with dancers.

    The path is given and has T steps, independent of actions. In each room a dancer performs one of 8 dances. At step T
    a query shows one dancer; the next action is the answer. Subclasses define the path and the query.

    Observation:
        rgb: With `obs="pixels"`: uint8, (45, 45, 3); the current room, the empty room in the query phase.
        frame: With `obs="symbols"`, in place of `rgb`: `Discrete(2566)`; row of
            `memenvs.room_ballet.frames.frame_table()`, 2565 for none, as in the query phase.
        query: As `rgb` or `frame`. In the query phase the queried dancer, standing still; before, black or 2565.
        phase: `Discrete(2)`; 1 in the query phase, else 0.
        move: `Discrete(5)`; at the first step of a visit the move that led to the room, else 4.

    Action:
        `Discrete(8)`: a dance. Actions before the query phase have no effect.

    Reward:
        1 for the correct dance, else 0.

    Termination:
        At the answer, T + 1 steps after the reset. T is 576, and 1280 in Next, ShortStay and Opposite.

    Layout:
        There is one.

    Options:
        key: int; number of the episode, as in `BalletEpisodes.key`.
        query: int, only together with `key`; the queried room or, where every visit has a new dancer, the queried
            visit.

    Info:
        key, query: As in the options.
        label: The correct dance.
        query_place: Room of the queried dancer.
        query_visit: Visit of the queried dancer; -1 where dancers stay in their rooms.
        room_dancer, room_dance: (rooms,), where dancers stay in their rooms; dancers are numbered shape * 19 + colour.
        visit_place, visit_dancer, visit_dance: (V,), where every visit has a new dancer.
        place: The current room; in the query phase that of the last visit. `PlaceWrapper` adds it to observations.
        pose: Column, row from below, and 0, of the room on the map.
        task_id: Index in `memenvs.room_ballet.descriptions.STRATEGY_TASKS`; 0 for other tasks.
        success: True if the answer was correct.

    Batches:
        `make_query_task("memenvs/RoomBallet-LVFO-v0", {}).sample_batch(32, np.random.default_rng(0))` of
        `memenvs.query_task` has the same episodes in integers, for supervised learning; `.episodes` of it has dancers,
        dances and visits.

    Without memory:
        One answer for all queries is right in 12.5 %, the ideal observer always: it takes all frames and moves since
        the reset. Below are the right answers in percent, of 1,000 episodes (95 % CI at most ± 3), when it has the last
        k observations (window) or its memory is wiped every k steps; and how many steps back the needed frames are.

        | | Next | ShortStay | FIFO | LIFO | MVFO | LVFO | MultiTask | Opposite | ABA |
        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
        | window 4 | 22 | 21 | 22 | 12 | 22 | 13 | 15 | 22 | 11 |
        | window 16 | 24 | 52 | 23 | 12 | 24 | 14 | 16 | 24 | 11 |
        | window 64 | 28 | 75 | 33 | 14 | 33 | 17 | 24 | 25 | 12 |
        | wiped 256 | 40 | 85 | 58 | 15 | 53 | 29 | 38 | 28 | 12 |
        | steps back | 323 | 38 | 131 | 419 | 162 | 356 | 259 | 449 | 451 |

        A window of 16 has the end of the last visit, under .15 of the way from 12.5 to 100 %. In ShortStay it has
        pieces of several rooms, .45 of the way, so that a short memory is enough to begin with; .17 with `size=5`.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), section 4
        and appendix D; frames and dances as in its release. After the Ballet of Lampinen et al., "Towards mental time
        travel", NeurIPS 2021.
    """

    config: BalletConfig
    ballet_name: ClassVar[str]
    option_names = ("key", "query")
    action_names = DANCES
    config_type: ClassVar[type[BalletConfig]] = BalletConfig
    observation_settings: ClassVar[tuple[str, ...]] = ("obs",)
    query_task = "memenvs.room_ballet.queries:BalletQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = self.config_type(**kwargs)  # type: ignore[arg-type]
        self.ballet = self.config.make_ballet_task(self.ballet_name)
        super().__init__(num_envs, self.ballet.steps, episodes=self.ballet.make_episodes(np.zeros(num_envs, np.int64)))
        self.action_space = gym.spaces.Discrete(len(DANCES))
        if self.config.obs == "pixels":
            image = gym.spaces.Box(0, 255, (FRAME_PIXELS, FRAME_PIXELS, 3), np.uint8)
            frame_spaces: dict[str, gym.Space] = {"rgb": image, "query": image}
        else:
            symbol = gym.spaces.Discrete(EMPTY_FRAME + 1)
            frame_spaces = {"frame": symbol, "query": symbol}
        other_spaces = {"phase": gym.spaces.Discrete(2), "move": gym.spaces.Discrete(NO_ACTION + 1)}
        self.observation_space = gym.spaces.Dict({**frame_spaces, **other_spaces, **self._task_space()})

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw visits, dancers and the query."""
        self._begin(i, self.ballet.draw_episode(rng, options))

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the next step of the path, or check the answer."""
        return self._compare(actions, self._episodes.label, active)

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write frame, query, phase and move."""
        in_query_phase = self._in_query()
        t = self._path_step()
        move = np.where(in_query_phase, NO_ACTION, self._episodes.action[self._rows, t])
        out["phase"][env_mask] = in_query_phase[env_mask]
        out["move"][env_mask] = move[env_mask]
        frame = self._episodes.frame[self._rows, t][env_mask]  # (K,) with K environments to write
        query = self._episodes.query[env_mask]
        in_query_phase = in_query_phase[env_mask]
        if self.config.obs == "symbols":
            out["frame"][env_mask] = np.where(in_query_phase, EMPTY_FRAME, frame)
            out["query"][env_mask] = np.where(in_query_phase, query, EMPTY_FRAME)
            return
        rgb = frame_table()[frame]  # (K, 45, 45, 3)
        rgb[in_query_phase] = empty_room()
        query_image = np.zeros_like(rgb)
        query_image[in_query_phase] = frame_table()[query[in_query_phase]]
        out["rgb"][env_mask] = rgb
        out["query"][env_mask] = query_image

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        episodes = self._episodes
        place = episodes.place[self._rows, self._path_step()].astype(np.int64)
        if self.ballet.queries_rooms:
            query, names = episodes.query_place, ["room_dancer", "room_dance"]
        else:
            query, names = episodes.query_visit, ["visit_place", "visit_dancer", "visit_dance"]
        return {
            "pose": np.column_stack([self._cells(place), np.zeros(self.num_envs)]).astype(np.float32),
            "place": place,
            "key": episodes.key,
            "query": query.astype(np.int64),
            "label": episodes.label,
            "query_place": episodes.query_place,
            "query_visit": episodes.query_visit,
            "task_id": episodes.task_id,
            **{name: getattr(episodes, name) for name in names},
            "success": self._success,
        }

    @property
    def num_places(self) -> int:
        """Number of rooms."""
        return self.ballet.rooms

    def oracle_actions(self) -> np.ndarray:
        """Return the correct dances."""
        return self._episodes.label.astype(np.int64)

    def render(self, i: int) -> np.ndarray:
        """Render the room, the queried dancer, and the map with the path so far; 360 x 1080."""
        t = int(self._path_step()[i])
        if self._in_query()[i]:
            room = empty_room()
            query = frame_table()[self._episodes.query[i]]
        else:
            room = frame_table()[self._episodes.frame[i, t]]
            query = np.zeros_like(room)
        enlarged = [image.repeat(_RENDER_SCALE, 0).repeat(_RENDER_SCALE, 1) for image in (room, query)]
        return np.hstack([*enlarged, self.draw_map(i, self._cells(self._episodes.place[i, : t + 1]))])

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the rooms with a path, and the queried room green in the query phase; 360 x 360."""
        highlighted: dict[tuple[int, int], tuple[int, int, int]] = {}  # cell -> colour
        if self._in_query()[i]:
            x, y = self._cells(self._episodes.query_place[i : i + 1])[0].tolist()
            highlighted = {(x, y): (60, 170, 90)}  # green
        return draw_grid(self.ballet.side, highlighted, path, FRAME_PIXELS * _RENDER_SCALE)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map, the centres of the rooms."""
        return grid_pixels(self.ballet.side, poses, FRAME_PIXELS * _RENDER_SCALE)

    def _task_space(self) -> dict[str, gym.Space]:
        """Space of the observation `task`, if there is one."""
        return {}

    def _cells(self, places: np.ndarray) -> np.ndarray:
        """Column, and row from below, of rooms (K,) on the map; int64, (K, 2)."""
        return self.ballet.positions[places] * (1, -1) + (0, self.ballet.side - 1)


class NextBallet(RoomBallet):
    """Name the dance of the next room clockwise.

    The path has 40 visits, a random walk over 3 x 3 rooms; dancers stay in their rooms. Moves are 0 right, 1 left, 2
    up, 3 down. The query is the dancer of a visited outer room whose next room was visited too.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "Next"


class ShortStay(RoomBallet):
    """Name the dance of a dancer that was seen a few steps at a time.

    The path has 1280 steps over 9, 16 or 25 rooms with a random move at each step; after a blocked move the agent
    stays. Dancers stay in their rooms and dance in step with each other. Moves are 0 up, 1 down, 2 left, 3 right.
    The query is the dancer of any room. A short memory helps: see `RoomBallet`.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "ShortStay"
    config_type = ShortStayConfig


class FifoBallet(RoomBallet):
    """Name the dance of one of the later 9 of 18 visits, each with a new dancer.

    A memory of 9 visits that evicts the oldest has the answer.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "FIFO"
    config_type = ScheduleConfig


class LifoBallet(RoomBallet):
    """Name the dance of one of the first 9 of 18 visits, each with a new dancer.

    A memory of 9 visits that stores nothing once it is full has the answer.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "LIFO"
    config_type = ScheduleConfig


class LvfoBallet(RoomBallet):
    """Name the dance of one visit to the most visited room.

    There are 18 visits, each with a new dancer. A memory of 9 visits has the answer if it evicts the oldest visit of
    the least visited room.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "LVFO"
    config_type = ScheduleConfig


class MvfoBallet(RoomBallet):
    """Name the dance of the last visit to some room.

    There are 18 visits to R = 4 ... 12 rooms, each with a new dancer. A memory of R + 1 visits has the answer if it
    evicts the oldest visit of the most visited room.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "MVFO"
    config_type = RoomsConfig


class MultiTaskBallet(RoomBallet):
    """Solve one of the tasks FIFO, LIFO, LVFO and MVFO per episode.

    Observation:
        task: One-hot float32, (4,), in the order of `memenvs.room_ballet.descriptions.STRATEGY_TASKS`. It is for the
            part of an agent that chooses the memory's strategy, not for the part that answers.

    See Also:
        `RoomBallet`: the other observations, action, reward and the rest.
    """

    ballet_name = "MultiTask"
    config_type = ScheduleConfig

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write frame, query, phase, move and task."""
        super().observe(out, env_mask)
        tasks = np.eye(len(STRATEGY_TASKS), dtype=np.float32)[self._episodes.task_id]
        out["task"][env_mask] = tasks[env_mask]

    def _task_space(self) -> dict[str, gym.Space]:
        return {"task": gym.spaces.Box(0.0, 1.0, (len(STRATEGY_TASKS),), np.float32)}


class OppositeBallet(RoomBallet):
    """Name the dance of the opposite room.

    The path has 40 visits, a random walk around the 8 outer rooms of a 3 x 3 grid that visits all of them; dancers stay
    in their rooms. Rooms are numbered row by row without the middle. Moves are 0 right, 1 left, 2 up, 3 down.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "Opposite"


class AbaBallet(RoomBallet):
    """Name the dance of one of the first 7 of 18 visits, each to another room.

    The other 11 visits are to an eighth room, each with a new dancer. The published memory stores 8 visits.

    See Also:
        `RoomBallet`: observation, action, reward and the rest.
    """

    ballet_name = "ABA"
