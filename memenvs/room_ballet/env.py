"""Room Ballet as environments: a walker goes from room to room, watches dancers, and is asked about one of them at the end."""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np

from memenvs.checks import is_int
from memenvs.grid_viewer import draw_grid, grid_pixels
from memenvs.room_ballet.config import BalletConfig, MultiTaskConfig, RoomsConfig, ScheduleConfig, ShortStayConfig
from memenvs.room_ballet.dances import DANCES
from memenvs.room_ballet.descriptions import CHARACTERS, MAX_CHARACTERS, STRATEGY_TASKS, load_descriptions
from memenvs.room_ballet.episodes import NO_ACTION, NUM_FRAMES
from memenvs.room_ballet.frames import FRAME_PIXELS, empty_room, frame_table
from memenvs.task import BatchTask, Observation, Options

#: Symbol of a frame without a dancer.
EMPTY_FRAME = NUM_FRAMES
#: Pixels of a frame's pixel in pictures for people.
_RENDER_SCALE = 8


class RoomBallet(BatchTask):
    """What all Room Ballets are: the walker is led through T steps, then asked for the dance of one dancer; see the subclasses for which.

    Observation (`Dict`): with `obs="pixels"` `rgb` uint8 (45, 45, 3), the room that the walker is in, without a dancer while it is asked, and
    `query` of the same form, the dancer that is asked about, standing still (black before); with `obs="symbols"` `frame` and `query`,
    `Discrete(2566)`: rows of `memenvs.room_ballet.frames.frame_table()`, 2565 for none. `phase`, `Discrete(2)`: 0 the walker watches, 1 it is asked.
    `move`, `Discrete(5)`: at the first step of a visit the move of the walk that led there, else 4. The place is in `info["place"]`, which
    `PlaceWrapper` shows.
    Action (`Discrete(8)`): a dance; ignored before the question.
    Reward: 1 for the right dance, else 0.
    Ends: terminates with the answer, T + 1 steps after the reset.
    Layout: there is one. Options: `key` (int): the episode of this number, as in `Episodes.key`. `query` (int), together with `key`: the room
    that is asked about or, where dancers change with every visit, the visit.
    Info: `key`, `query`; `label`, the right dance; `query_place` and `query_visit` (-1 where dancers stay in their rooms); who is where:
    `room_dancer` and `room_dance` (rooms,), or `visit_place`, `visit_dancer` and `visit_dance` (V,), dancers numbered shape * 19 + colour;
    `place`, that of the last visit while it is asked; `pose` (column, row from below, 0) of the room on the map; `task_id`, the number in
    `memenvs.room_ballet.descriptions.STRATEGY_TASKS` (0 for other tasks); `success`.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, section 4 and appendix D; frames and dances as in its release.
    """

    config: BalletConfig
    ballet_name: ClassVar[str]
    option_names = ("key", "query")
    action_names = DANCES
    config_type: ClassVar[type[BalletConfig]] = BalletConfig

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = self.config_type(**kwargs)  # type: ignore[arg-type]
        self.ballet = self.config.make_ballet_task(self.ballet_name)
        self.num_envs = num_envs
        self.num_layouts = 1
        self.max_episode_steps = self.ballet.steps + 2  # one more than there are: the task ends its episodes itself
        self.action_space = gym.spaces.Discrete(len(DANCES))
        if self.config.obs == "pixels":
            image = gym.spaces.Box(0, 255, (FRAME_PIXELS, FRAME_PIXELS, 3), np.uint8)
            seen: dict[str, gym.Space] = {"rgb": image, "query": image}
        else:
            symbol = gym.spaces.Discrete(EMPTY_FRAME + 1)
            seen = {"frame": symbol, "query": symbol}
        more = {"phase": gym.spaces.Discrete(2), "move": gym.spaces.Discrete(NO_ACTION + 1)}
        self.observation_space = gym.spaces.Dict({**seen, **more, **self._task_space()})
        self._episodes = self.ballet.make_episodes(np.zeros(num_envs, np.int64))
        self._rows = np.arange(num_envs)
        self._step = np.zeros(num_envs, np.int64)
        self._success = np.zeros(num_envs, bool)

    # ------------------------------------------------------------------ rules

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Nothing stays the same over a trial."""

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draws visits, dancers and the question."""
        episode = self.ballet.sample_batch(1, rng)
        key, query = options.get("key"), options.get("query")
        if key is not None:
            if not is_int(key) or not 0 <= key < 2**63:
                raise ValueError(f"option 'key' must be an integer in 0 ... {2**63 - 1}, got {key!r}")
            episode = self.ballet.make_episodes(np.array([key]))
        if query is not None:
            if key is None:
                raise ValueError(
                    f"option 'query' must come with 'key', which says in which episode it is asked, got {query!r} alone"
                )
            drawn = episode.query_place if self.ballet.queries_rooms else episode.query_visit
            if not is_int(query) or query != drawn[0]:
                episode = self.ballet.with_query(episode, np.array([query]))
        for name, values in vars(episode).items():
            getattr(self._episodes, name)[i] = values[0]
        self._step[i], self._success[i] = 0, False

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Walks on, or takes the answer."""
        terminated = active & (self._step == self.ballet.steps)
        self._success = np.where(terminated, actions == self._episodes.label, self._success)
        self._step += active & ~terminated
        return np.where(terminated & self._success, 1.0, 0.0), terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """What is seen and what is asked."""
        is_asked, t = self._is_query_phase(), self._path_step()
        out["phase"][env_mask] = is_asked[env_mask]
        out["move"][env_mask] = np.where(is_asked, NO_ACTION, self._episodes.action[self._rows, t])[env_mask]
        frame, query = self._episodes.frame[self._rows, t][env_mask], self._episodes.query[env_mask]
        asked = is_asked[env_mask]
        if self.config.obs == "symbols":
            out["frame"][env_mask] = np.where(asked, EMPTY_FRAME, frame)
            out["query"][env_mask] = np.where(asked, query, EMPTY_FRAME)
            return
        rgb, image = frame_table()[frame], np.zeros((len(asked), FRAME_PIXELS, FRAME_PIXELS, 3), np.uint8)
        rgb[asked], image[asked] = empty_room(), frame_table()[query[asked]]
        out["rgb"][env_mask], out["query"][env_mask] = rgb, image

    def info(self) -> dict[str, np.ndarray]:
        """Truth; see the class."""
        episodes, place = self._episodes, self._place()
        if self.ballet.queries_rooms:
            contents = {"room_dancer": episodes.room_dancer, "room_dance": episodes.room_dance}
        else:
            contents = {name: getattr(episodes, name) for name in ("visit_place", "visit_dancer", "visit_dance")}
        return {
            "pose": np.column_stack([self._cells(place), np.zeros(self.num_envs)]).astype(np.float32),
            "place": place,
            "key": episodes.key,
            "query": (episodes.query_place if self.ballet.queries_rooms else episodes.query_visit).astype(np.int64),
            "label": episodes.label,
            "query_place": episodes.query_place,
            "query_visit": episodes.query_visit,
            "task_id": episodes.task_id,
            **contents,
            "success": self._success,
        }

    @property
    def num_places(self) -> int:
        """Rooms."""
        return self.ballet.rooms

    def oracle_actions(self) -> np.ndarray:
        """The right dance."""
        return self._episodes.label.astype(np.int64)

    # ------------------------------------------------------------------ pictures

    def render(self, i: int) -> np.ndarray:
        """The room, the dancer that is asked about, and the map with the way there; 360 x 1080."""
        out = {key: np.zeros((FRAME_PIXELS, FRAME_PIXELS, 3), np.uint8) for key in ("rgb", "query")}
        t, is_asked = int(self._path_step()[i]), bool(self._is_query_phase()[i])
        out["rgb"] = empty_room() if is_asked else frame_table()[self._episodes.frame[i, t]]
        if is_asked:
            out["query"] = frame_table()[self._episodes.query[i]]
        large = [image.repeat(_RENDER_SCALE, 0).repeat(_RENDER_SCALE, 1) for image in out.values()]
        return np.hstack([*large, self.draw_map(i, self._cells(self._episodes.place[i, : t + 1]))])

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """The rooms with the way through them; green, once it is asked, is the room of the dancer that is asked about; 360 x 360."""
        asked = self._cells(self._episodes.query_place[i : i + 1])
        cells = {(int(x), int(y)): (60, 170, 90) for x, y in asked[self._is_query_phase()[i : i + 1]]}
        return draw_grid(self.ballet.side, cells, path, FRAME_PIXELS * _RENDER_SCALE)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """The middles of the rooms."""
        return grid_pixels(self.ballet.side, poses, FRAME_PIXELS * _RENDER_SCALE)

    # ------------------------------------------------------------------ private

    def _task_space(self) -> dict[str, gym.Space]:
        """What an observation says about the task."""
        return {}

    def _is_query_phase(self) -> np.ndarray:
        """bool, (N,); the question is on."""
        return self._step == self.ballet.steps

    def _path_step(self) -> np.ndarray:
        """int64, (N,); the step of the walk, the last one while it is asked."""
        return np.minimum(self._step, self.ballet.steps - 1)

    def _place(self) -> np.ndarray:
        return self._episodes.place[self._rows, self._path_step()].astype(np.int64)

    def _cells(self, places: np.ndarray) -> np.ndarray:
        """int64, (K, 2); column, and row from below, of rooms (K,) on the map."""
        return self.ballet.positions[places] * (1, -1) + (0, self.ballet.side - 1)


class NextBallet(RoomBallet):
    """The dance of the dancer in the next room clockwise: 40 visits on a walk over 3 x 3 rooms, each with its dancer.

    Moves are 0 right, 1 left, 2 up, 3 down. Asked are rooms of the outer ring whose next one was visited too.
    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "Next"


class ShortStay(RoomBallet):
    """The dance of a dancer that was seen in pieces: 1280 steps over 9, 16 or 25 rooms, one move tried at every step, a blocked one stays.

    All dancers follow one clock. Moves are 0 up, 1 down, 2 left, 3 right. Asked is any room.
    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "ShortStay"
    config_type = ShortStayConfig


class FifoBallet(RoomBallet):
    """A dancer of the later 9 of 18 visits, each with a new dancer; a memory of 9 visits that drops the oldest has it.

    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "FIFO"
    config_type = ScheduleConfig


class LifoBallet(RoomBallet):
    """A dancer of the first 9 of 18 visits; a memory of 9 visits that takes in nothing once it is full has it.

    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "LIFO"
    config_type = ScheduleConfig


class LvfoBallet(RoomBallet):
    """A dancer of the room with the most of 18 visits; a memory of 9 visits that drops the oldest of the least visited room has it.

    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "LVFO"
    config_type = ScheduleConfig


class MvfoBallet(RoomBallet):
    """The last dancer of a room; a memory of one visit more than rooms (4 to 12) that drops the oldest of the most visited room has it.

    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "MVFO"
    config_type = RoomsConfig


class MultiTaskBallet(RoomBallet):
    """One of the four tasks `FifoBallet`, `LifoBallet`, `LvfoBallet` and `MvfoBallet` an episode; the observation says which.

    `task` is meant for what chooses the strategy of a memory, not for what answers: float32 (4,), one-hot in the order of
    `memenvs.room_ballet.descriptions.STRATEGY_TASKS`, or with `task_as="language"` a `Text`, one of the descriptions of that task.
    Observation, Action, Reward, Ends, Info and options otherwise as `RoomBallet`.
    """

    config: MultiTaskConfig
    ballet_name = "MultiTask"
    config_type = MultiTaskConfig

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        super().__init__(num_envs, **kwargs)
        self._descriptions = load_descriptions().select(self.config.split, self.config.part)
        self._task_texts = np.full(num_envs, "", object)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draws the episode, and a description of its task."""
        super().begin_episode(i, rng, options)
        texts = self._descriptions[self._episodes.task_id[i]]
        self._task_texts[i] = texts[np.random.default_rng(self._episodes.key[i]).integers(len(texts))]

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """What is seen, what is asked, and the task."""
        super().observe(out, env_mask)
        tasks = (
            self._task_texts
            if self.config.task_as == "language"
            else np.eye(len(STRATEGY_TASKS), dtype=np.float32)[self._episodes.task_id]
        )
        out["task"][env_mask] = tasks[env_mask]

    def _task_space(self) -> dict[str, gym.Space]:
        if self.config.task_as == "language":
            return {"task": gym.spaces.Text(MAX_CHARACTERS, charset=CHARACTERS)}
        return {"task": gym.spaces.Box(0.0, 1.0, (len(STRATEGY_TASKS),), np.float32)}


class OppositeBallet(RoomBallet):
    """The dance of the dancer in the room across: 40 visits on a walk around 8 rooms, all of which are visited.

    Rooms are those of a 3 x 3 grid without the middle one, row by row. Moves are 0 right, 1 left, 2 up, 3 down.
    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "Opposite"


class AbaBallet(RoomBallet):
    """A dancer of the first 7 of 18 visits, each to another room; the other 11 are to an eighth room. There is room for 8 visits.

    Observation, Action, Reward, Ends, Info and options as `RoomBallet`.
    """

    ballet_name = "ABA"
