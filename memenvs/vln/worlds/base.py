"""Interface between worlds and the two tasks: graphs, and episodes in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.vln.graph import Graph

SUPERVISIONS = ("mixed", "oracle", "navigator")
HISTORIES = ("all", "last_exchange", "last_answer", "target")
#: Markers at the start of each part of a dialogue; tokenizers keep each as one token.
NAVIGATOR, ORACLE, TARGET = "[NAV]", "[ORA]", "[TAR]"


@dataclass(frozen=True, kw_only=True)
class VLNEpisode:
    """One instruction to follow; nodes are numbered within the house.

    Attributes:
        id: Unique id, such as R2R's "6939_2".
        house: Index of its graph in `GraphWorld.graphs`.
        text: The instruction.
        path: Annotated path from the start to the goal, at least one node. Consecutive nodes are neighbours.
        heading: Heading at the start, rad, clockwise from +y; rounded to the nearest 30 degrees.
        leg_ends: Nodes to visit in this order; the last one is the goal. One in R2R and CVDN, more in longer paths.
        region: Nodes that count as the target of a dialogue (CVDN); empty otherwise.
    """

    id: str
    house: int
    text: str
    path: tuple[int, ...]
    heading: float
    leg_ends: tuple[int, ...]
    region: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """One instance of navigation from dialogue history (NDH).

    Supervision and history turn it into an `VLNEpisode`.

    Attributes:
        id: Unique id, such as "5".
        house: Index of its graph in `GraphWorld.graphs`.
        target: Name of the object to find.
        turns: (NAVIGATOR or ORACLE, utterance) pairs, oldest first; may be empty.
        heading: Heading at the start, rad, clockwise from +y.
        region: Nodes of the goal region.
        planner_path: Shortest path towards the region, at most 5 edges, as shown to the human oracle.
        player_path: Path that the human took. Both paths begin at the start.
    """

    id: str
    house: int
    target: str
    turns: tuple[tuple[str, str], ...]
    heading: float
    region: tuple[int, ...]
    planner_path: tuple[int, ...]
    player_path: tuple[int, ...]

    def supervised_path(self, supervision: str) -> tuple[int, ...]:
        """Path whose last node is the goal in training.

        Args:
            supervision: "oracle": the planner's path. "navigator": the player's path. "mixed": the player's path if it
                visits the last node of the planner's path after its own first node, else the planner's.

        Source:
            CVDN's baseline ("trusted path" is "mixed"). Scoring always uses the region.
        """
        reached = self.planner_path[-1] in self.player_path[1:]
        use_player = supervision == "navigator" or (supervision == "mixed" and reached)
        return self.player_path if use_player else self.planner_path

    def text(self, history: str) -> str:
        """Text of the dialogue: each turn after its marker, then the target.

        Args:
            history: Turns to include: "all", "last_exchange" (the last two), "last_answer" (the last one) or "target"
                (none).
        """
        kept = {"all": self.turns, "last_exchange": self.turns[-2:], "last_answer": self.turns[-1:], "target": ()}
        parts = [*kept[history], (TARGET, self.target)]
        return " ".join(f"{role} {' '.join(utterance.split())}" for role, utterance in parts)

    def episode(self, supervision: str, history: str) -> VLNEpisode:
        """Episode of this instance; see `supervised_path` and `text` for the arguments."""
        path = self.supervised_path(supervision)
        return VLNEpisode(
            id=self.id,
            house=self.house,
            text=self.text(history),
            path=path,
            heading=self.heading,
            leg_ends=path[-1:],
            region=self.region,
        )


@dataclass(frozen=True, eq=False)
class ViewpointContent:
    """Visible content of the viewpoints of a house; synthetic features are made from it.

    Attributes:
        names: For each of V viewpoints, the names of the objects there. Objects with the same name have the same
            features in all houses.
        is_visible: bool, (V, V); [u, v]: v is visible from u.
        height: float64, (V,); above the floor, m. If given, features encode geometry too: the number of viewpoints in a
            view, their distances and this height.
    """

    names: tuple[tuple[str, ...], ...]
    is_visible: np.ndarray
    height: np.ndarray | None = None


class GraphWorld(ABC):
    """Graphs of houses and the episodes of one split in them.

    Equal settings give equal bits on every machine. Nothing is drawn when a method is called.

    Attributes:
        graphs: The houses.
        max_tokens: Default limit on the number of tokens of a text.
    """

    graphs: Sequence[Graph]
    max_tokens: int

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """Vocabulary of the word tokenizer: words of the training texts, the same for all splits.

        As `memenvs.vln.tokenizers.split_words` returns them.
        """

    @property
    @abstractmethod
    def num_episodes(self) -> int:
        """Number of episodes of the split; they are numbered from 0."""

    @abstractmethod
    def episode(self, number: int) -> VLNEpisode:
        """Episode with this number; may be made on demand, and is always the same."""

    @abstractmethod
    def paths(self, house: int) -> list[Sequence[int]]:
        """Numbers of the episodes of each path in one of `graphs`; they differ in their text only."""

    @abstractmethod
    def viewpoint_content(self, house: int) -> ViewpointContent:
        """Visible content of the viewpoints of one of `graphs`."""

    @abstractmethod
    def episode_number(self, id: str) -> int:
        """Number of the episode with this id.

        Raises:
            ValueError: There is none; the message shows the id and the format of ids.
        """
