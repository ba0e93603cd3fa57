"""Base task of R2R and CVDN: an agent moves between viewpoints and follows a text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.checks import is_int
from memenvs.data import find_vln_folder
from memenvs.poses import wrap_angle
from memenvs.task import BatchTask, Observation, Options
from memenvs.vln.config import VLNConfig
from memenvs.vln.features.base import ANGLE_SIZE, DEFAULT_SIZE, Features, angle_features, view_angles
from memenvs.vln.features.file_features import FileFeatures
from memenvs.vln.features.synthetic import SyntheticFeatures
from memenvs.vln.graph import COLUMNS, NUM_VIEWS, VIEW_STEP, Graphs, nearest_column
from memenvs.vln.metrics import PathMetrics, ReferencePath
from memenvs.vln.rewards import step_rewards
from memenvs.vln.tokenizers import Tokenizer, WordPieceTokenizer, WordTokenizer
from memenvs.vln.viewer import draw_map, draw_text, map_pixels
from memenvs.vln.worlds.base import GraphWorld, VLNEpisode
from memenvs.vln.worlds.mp3d import find_file

#: Candidates of each viewpoint; the action with this number is stop. Matterport3D has at most 13.
MAX_CANDIDATES = 16
#: Episodes that are kept prepared: all of R2R's, at about 4 KB each.
MAX_PREPARED = 16_384
#: BERT's vocabulary in the data folder, under any of these names, gzipped or not.
_VOCABULARIES = ("bert_base_uncased_vocab.txt", "vocab.txt")
_VOCABULARY_HELP = (
    "Tokenizer 'wordpiece' needs BERT's uncased vocabulary as vocab.txt or bert_base_uncased_vocab.txt, gzipped or "
    "not, in a folder vln of the folder that $MEMENVS_DATA names or in data_dir=FOLDER."
)


@dataclass(frozen=True, eq=False)
class _PreparedEpisode:
    """Precomputed data of an episode, kept for the next time it is played."""

    episode: VLNEpisode
    reference: ReferencePath
    tokens: np.ndarray
    view: int  # view that the camera faces at the start, see `GraphNavigation._view`
    scan: str  # name of the house


class GraphNavigation(BatchTask):
    """Moves agents on navigation graphs; subclasses choose the world and the score.

    Observation:
        instruction: int64, (L,); tokens, 0 beyond the end.
        instruction_mask: int8, (L,); 1 for tokens.
        candidates: float32, (17, D + 128); for each neighbour the image feature of its view (D numbers, 64 if
            synthetic) and (sin h, cos h, sin e, cos e) of its direction, 32 times; h is relative to the camera, e is
            absolute. Zeros beyond the last candidate and for stop.
        candidate_mask: int8, (17,); 1 for possible actions.
        direction: float32, (4,); sine and cosine of the camera's heading and of its elevation.
        panorama: With `panorama=True`: float32, (36, D + 128); all views.

    Action:
        `Discrete(17)`: move to that candidate; the last action stops. After a move the camera points along the view
        that showed the candidate. An action without a candidate is an error; with `invalid="stop"` it stops, so that
        you can run Gymnasium's `check_env`. For a random action call `env.action_space.sample(info["action_mask"])`.
        `MaskablePPO` of sb3-contrib finds `action_masks()`.

    Reward:
        Stopping pays 2 + 2 nDTW for a success, else -2. A move pays 1 if it decreases the distance to the goal, -1 if
        it increases it, plus the increase of nDTW. Moving away from d <= 1 m costs 2 (1 - d) more.

    Layout:
        Number of the episode in its split, in the order of the file. `reset()` draws it, with replacement. Letters of
        an itinerary are episodes in different houses.

    Options:
        episode_number: The same number.
        instr_id: Id of the instruction.

    Info:
        ne: Navigation error: distance to the goal, m.
        sr, osr, spl: Success rate, oracle success rate and SPL if the agent stopped now.
        tl: Trajectory length, m.
        ndtw, sdtw, cls: Similarity to the reference path if the agent stopped now.
        success: True if `sr` is 1.
        pose: (x m, y m, heading rad), counter-clockwise from +x.
        place: Number of the viewpoint in the split.
        scan, viewpoint: Ids of house and viewpoint.
        heading: rad, clockwise from +y.
        elevation: rad.
        episode_number, instr_id: As in the options.
        text: The instruction.
        teacher_action: The action of the teacher.
        action_mask: int8, (17,); 1 for possible actions.

    Attributes:
        world: Houses and episodes.
        graphs: The graphs of all houses in one table; `info["place"]` is a node number of this table.
        tokenizer: Converts texts to the token ids of `instruction`.
        stop: Number of the action that ends the episode.
    """

    option_names = ("episode_number", "instr_id")
    observation_settings = ("features", "feature_size", "panorama", "tokenizer", "data_dir", "max_tokens", "too_long")
    config: VLNConfig

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        assert self.config_type is not None
        self.config = config = self.config_type(**kwargs)
        self.world = self._make_world()
        self.graphs = graphs = Graphs(self.world.graphs, MAX_CANDIDATES)
        self.tokenizer = self._make_tokenizer()
        self._features = self._make_features()
        self._image_size = self._features.size if self._features is not None else config.feature_size or DEFAULT_SIZE
        self._max_tokens = self.world.max_tokens if config.max_tokens is None else config.max_tokens
        self.num_envs = num_envs
        self.num_layouts = self.world.num_episodes
        self.max_episode_steps = config.step_limit
        self.stop = MAX_CANDIDATES
        self.action_names = (*(f"candidate {k}" for k in range(MAX_CANDIDATES)), "stop")
        self.action_space = gym.spaces.Discrete(len(self.action_names))
        self.observation_space = self._make_space()
        self._view_angles = view_angles()
        self._path_metrics = PathMetrics(graphs, num_envs)
        self._view = np.zeros(num_envs, np.int64)  # view that the camera faces: 12 columns (headings) x 3 elevations
        self._moves = np.zeros(num_envs, np.int64)  # of the episode
        self._layout_number = np.zeros(num_envs, np.int64)  # episode of the trial
        self._episode_number = np.zeros(num_envs, np.int64)  # episode being played; options may choose another one
        self._tokens = np.zeros((num_envs, self._max_tokens), np.int64)
        self._id, self._text, self._scan = (np.full(num_envs, "", object) for _ in range(3))
        self._trajectories: list[list[tuple[int, int]]] = [[] for _ in range(num_envs)]  # (node, view) per step
        self._prepared: dict[int, _PreparedEpisode] = {}

    @abstractmethod
    def _make_world(self) -> GraphWorld:
        """Make the world that the settings choose."""

    @property
    @abstractmethod
    def _cut(self) -> str:
        """The end that is cut off from a text that is too long: "cut_end" or "cut_start"."""

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Choose the episode of the trial; a layout is an episode number."""
        self._layout_number[i] = layout

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the agent at the start of the episode's path."""
        number = self._choose_episode(i, options)
        prepared = self._prepare(number)
        episode = prepared.episode
        self._path_metrics.begin(i, prepared.reference)
        self._episode_number[i] = number
        self._view[i] = prepared.view
        self._tokens[i] = prepared.tokens
        self._id[i] = episode.id
        self._text[i] = episode.text
        self._scan[i] = prepared.scan
        self._moves[i] = 0
        self._trajectories[i] = [(int(prepared.reference.path[0]), prepared.view)]

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move to the chosen candidates, or stop; see `BatchTask.step`.

        A masked action stops too, or with `invalid="error"` raises a ValueError.
        """
        paths = self._path_metrics
        candidates = self.graphs.candidates
        slot = np.minimum(actions, self.stop - 1)  # a valid index for "stop" too
        chosen = candidates.node[paths.node, slot]  # (N,); -1 where there is no such candidate
        stopped = active & ((actions == self.stop) | (chosen < 0))
        if self.config.invalid == "error":
            self._check_actions(active & (actions != self.stop) & (chosen < 0), actions)
        moved = active & ~stopped
        old_remaining = paths.remaining
        old_ndtw = paths.ndtw
        self._moves += moved
        view = candidates.view[paths.node, slot]
        paths.move(chosen, moved)
        self._view = np.where(moved, view, self._view)
        rows = np.flatnonzero(moved)
        for i, node, new_view in zip(rows.tolist(), paths.node[rows].tolist(), self._view[rows].tolist(), strict=True):
            self._trajectories[i].append((node, new_view))
        rewards = step_rewards(stopped, paths.success, old_remaining, paths.remaining, old_ndtw, paths.ndtw)
        is_off_path = moved & paths.is_off_reference(self._moves) if self.config.ends_off_path else False
        return np.where(active, rewards, 0.0), stopped | is_off_path

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the text, the candidates relative to the camera, and the masks; see `BatchTask`."""
        rows: np.ndarray | slice = slice(None) if env_mask.all() else np.flatnonzero(env_mask)  # a slice is faster
        node = self._path_metrics.node[rows]
        column = self._view[rows] % COLUMNS  # heading of the camera, in steps of 30 degrees
        out["instruction"][rows] = self._tokens[rows]
        out["instruction_mask"][rows] = self._tokens[rows] > 0
        out["candidate_mask"][rows] = self.action_masks()[rows]
        heading, elevation = self._camera()
        heading, elevation = heading[rows], elevation[rows]
        out["direction"][rows] = np.stack([np.sin(heading), np.cos(heading), np.sin(elevation), np.cos(elevation)], 1)
        candidates = self.graphs.candidates
        exists = (candidates.node[node] >= 0)[:, :, None]  # (rows, candidates, 1)
        angles = angle_features(candidates.heading[node] - column[:, None] * VIEW_STEP, candidates.elevation[node])
        # Each row of `candidates` holds image features, then angle features; the last row, "stop", stays 0.
        features = out["candidates"]
        features[rows, : self.stop, self._image_size :] = np.where(exists, angles, np.float32(0.0))
        if self._features is not None:
            images = self._features.view_features(node[:, None], candidates.view[node])
            features[rows, : self.stop, : self._image_size] = np.where(exists, images, np.float32(0.0))
        if self.config.panorama:
            out["panorama"][rows, :, self._image_size :] = self._view_angles[column]
            if self._features is not None:
                out["panorama"][rows, :, : self._image_size] = self._features.view_features(
                    node[:, None], np.arange(NUM_VIEWS)
                )

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; the subclasses describe the keys."""
        paths = self._path_metrics
        heading, elevation = self._camera()
        metrics = paths.metrics()
        position = self.graphs.position[paths.node, :2]
        return {
            # From R2R's heading, clockwise from +y, to one counter-clockwise from +x.
            "pose": np.column_stack([position, wrap_angle(np.pi / 2 - heading)]).astype(np.float32),
            "place": paths.node,
            "scan": self._scan,
            "viewpoint": self.graphs.viewpoints[paths.node],
            "heading": heading,
            "elevation": elevation,
            "episode_number": self._episode_number,
            "layout_id": self._episode_number,  # not that of the trial if an option chose another episode
            "instr_id": self._id,
            "text": self._text,
            "teacher_action": self.oracle_actions(),
            "action_mask": self.action_masks(),
            "success": metrics["sr"] > 0.0,
            **metrics,
        }

    def home_of(self, layout: int) -> int:
        """Number of the house of an episode; see `BatchTask`."""
        return self.world.episode(layout).house

    @property
    def num_homes(self) -> int:
        """Number of houses with episodes."""
        return len(self.world.graphs)

    @property
    def num_places(self) -> int:
        """Number of viewpoints in all houses of the split."""
        return len(self.graphs.position)

    def action_masks(self) -> np.ndarray:
        """Mask of possible actions, int8 (N, actions); 1 for each candidate and for stop."""
        mask = np.ones((self.num_envs, self.stop + 1), np.int8)
        mask[:, : self.stop] = self.graphs.candidates.node[self._path_metrics.node] >= 0
        return mask

    def oracle_actions(self) -> np.ndarray:
        """Return the first step of the shortest path to the target, or stop at the goal; int64 (N,).

        The target is the end of the current leg. At the end of a leg the next one begins at once. So the present node
        is the target at the goal only.
        """
        paths = self._path_metrics
        return np.where(paths.node == paths.target, self.stop, self.graphs.next_candidate(paths.node, paths.target))

    def trajectory(self, i: int) -> list[tuple[str, float, float]]:
        """Path of environment `i` as (viewpoint, heading rad, elevation rad) tuples."""
        return [
            (str(self.graphs.viewpoints[node]), view % COLUMNS * VIEW_STEP, (view // COLUMNS - 1) * VIEW_STEP)
            for node, view in self._trajectories[i]
        ]

    def render(self, i: int) -> np.ndarray:
        """Draw the map with annotated and own path, and the text; uint8, (640, 512, 3)."""
        positions = self.graphs.position[[node for node, _ in self._trajectories[i]]]
        return np.concatenate([self.draw_map(i, positions), draw_text(self._text[i])])

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the graph with the annotated path, the goals and `path`; uint8, (512, 512, 3)."""
        episode = self._prepare(int(self._episode_number[i])).episode
        return draw_map(
            self.world.graphs[episode.house], episode.path, (*episode.leg_ends, *episode.region), np.asarray(path)
        )

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert positions to pixels of the map; see `BatchTask.map_pixels`."""
        return map_pixels(self.world.graphs[self._prepare(int(self._episode_number[i])).episode.house], poses)

    def _make_features(self) -> Features | None:
        """Make the image features that the settings choose; None for "none", whose image part is zero."""
        features, size = self.config.features, self.config.feature_size
        if features == "none":
            return None
        if features == "synthetic":
            return SyntheticFeatures(self.world, self.graphs, DEFAULT_SIZE if size is None else size)
        return FileFeatures(features, self.graphs, size)

    def _make_tokenizer(self) -> Tokenizer:
        if self.config.tokenizer == "words":
            return WordTokenizer(self.world.words)
        folder = find_vln_folder(self.config.data_dir, _VOCABULARY_HELP)
        return WordPieceTokenizer.from_file(find_file(folder, *_VOCABULARIES, help_text=_VOCABULARY_HELP))

    def _make_space(self) -> gym.spaces.Dict:
        length, width = self._max_tokens, self._image_size + ANGLE_SIZE
        tokens, actions = len(self.tokenizer.tokens), len(self.action_names)
        spaces: dict[str, gym.Space] = {
            "instruction": gym.spaces.Box(0, tokens - 1, (length,), np.int64),
            "instruction_mask": gym.spaces.MultiBinary(length),
            "candidates": gym.spaces.Box(-np.inf, np.inf, (actions, width), np.float32),
            "candidate_mask": gym.spaces.MultiBinary(actions),
            "direction": gym.spaces.Box(-1.0, 1.0, (4,), np.float32),
        }
        if self.config.panorama:
            spaces["panorama"] = gym.spaces.Box(-np.inf, np.inf, (NUM_VIEWS, width), np.float32)
        return gym.spaces.Dict(spaces)

    def _prepare(self, number: int) -> _PreparedEpisode:
        """Prepare an episode when it is first played."""
        if number not in self._prepared:
            episode = self.world.episode(number)
            reference = ReferencePath.from_episode(self.graphs, episode)
            too_long = "error" if self.config.too_long == "error" else self._cut
            try:
                tokens = self.tokenizer.encode(episode.text, self._max_tokens, too_long=too_long)
            except ValueError as error:
                raise ValueError(
                    f"episode {episode.id!r}: {error}; a larger max_tokens holds it, too_long='cut' cuts it"
                ) from None
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.pop(next(iter(self._prepared)))  # the oldest one
            self._prepared[number] = _PreparedEpisode(
                episode,
                reference,
                tokens,
                view=COLUMNS + int(nearest_column(episode.heading)),  # middle row: level
                scan=self.world.graphs[episode.house].name,
            )
        return self._prepared[number]

    def _choose_episode(self, i: int, options: Options) -> int:
        """Return the number of the episode that begins: the one that options choose, else that of the trial."""
        number = self._requested_number(options)
        return int(self._layout_number[i]) if number is None else number

    def _requested_number(self, options: Options) -> int | None:
        """Find the number of the episode that options choose; None if they choose none.

        Raises:
            ValueError: An option has a wrong value, or two options choose different episodes.
        """
        number, id = options.get("episode_number"), options.get("instr_id")
        if number is not None and (not is_int(number) or not 0 <= number < self.world.num_episodes):
            raise ValueError(
                f"option 'episode_number' must be an integer in 0 ... {self.world.num_episodes - 1}, got {number!r}"
            )
        if id is not None and not isinstance(id, str):
            raise ValueError(f"option 'instr_id' must be a string, got {id!r}")
        chosen = {name: int(options[name]) for name in ("layout", "episode_number") if options.get(name) is not None}
        if id is not None:
            try:
                chosen["instr_id"] = self.world.episode_number(id)
            except ValueError as error:
                raise ValueError(f"option 'instr_id': {error}") from None
        if len(set(chosen.values())) > 1:
            choices = ", ".join(f"{name!r} {options[name]!r} (episode {number})" for name, number in chosen.items())
            raise ValueError(f"options {choices} do not agree")
        return next(iter(chosen.values()), None)

    def _check_actions(self, wrong: np.ndarray, actions: np.ndarray) -> None:
        """Raise a ValueError if any action is `wrong`, bool (N,)."""
        if not wrong.any():
            return
        i = int(wrong.argmax())
        count = int(self.action_masks()[i, : self.stop].sum())
        viewpoint = self.graphs.viewpoints[self._path_metrics.node[i]]
        raise ValueError(
            f"action {actions[i]} of environment {i} is masked: {viewpoint} has "
            f"candidates 0 ... {count - 1}, and {self.stop} stops; invalid='stop' lets masked actions stop too"
        )

    def _camera(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute heading and elevation of the camera, float64, (N,) each, rad."""
        return self._view % COLUMNS * VIEW_STEP, (self._view // COLUMNS - 1) * VIEW_STEP
