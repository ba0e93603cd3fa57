"""The seam between worlds and the two tasks: a world gives houses as graphs, and episodes in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.vln.graph import Graph

SUPERVISIONS = ("mixed", "oracle", "navigator")
HISTORIES = ("all", "last_exchange", "last_answer", "target")
#: Words that begin the parts of a dialogue; tokenizers keep each as one token.
NAVIGATOR, ORACLE, TARGET = "[NAV]", "[ORA]", "[TAR]"


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One instruction to follow. Nodes are numbers within its house.

    Attributes:
        id: Its name, such as R2R's "6939_2"; no other episode of the world has it.
        house: Number of its graph in `GraphWorld.graphs`.
        text: What the agent is told.
        path: Annotated path: the first node is the start, the last one the goal; at least one, each a neighbour of the one before.
        heading: At the start, radians clockwise from +y; it is snapped to the nearest 30 degrees.
        leg_ends: Nodes to be visited in this order; the last one is the goal. One for R2R and CVDN, more for tours.
        region: Any of these counts as the target of a dialogue (CVDN); empty otherwise.
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
    """One instance of navigation from dialogue history (NDH), before it is decided how to learn from it.

    Attributes:
        id: Its name, such as "5".
        house: Number of its graph in `GraphWorld.graphs`.
        target: Name of the thing to find.
        turns: (NAVIGATOR or ORACLE, what was said), oldest first; may be empty.
        heading: At the start, radians clockwise from +y.
        region: Nodes of the goal region.
        planner_path: Shortest way towards the region, at most 5 edges, as the human oracle was shown.
        player_path: What the human then walked. Both paths begin at the start.
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
        """The path whose last node is the goal in training.

        Args:
            supervision: "oracle" is the planner's path, "navigator" the player's, "mixed" the player's if it comes by the planner's last node after
                its own first node, and else the planner's.

        Source:
            CVDN's baseline ("trusted path" is "mixed"). Scoring always uses the region.
        """
        reached = self.planner_path[-1] in self.player_path[1:]
        use_player = supervision == "navigator" or (supervision == "mixed" and reached)
        return self.player_path if use_player else self.planner_path

    def text(self, history: str) -> str:
        """The dialogue, each turn begun by its role's word, and then the target.

        Args:
            history: Which turns: "all", "last_exchange" (the last two), "last_answer" (the last one) or "target" (none).
        """
        kept = {"all": self.turns, "last_exchange": self.turns[-2:], "last_answer": self.turns[-1:], "target": ()}
        parts = [*kept[history], (TARGET, self.target)]
        return " ".join(f"{role} {' '.join(said.split())}" for role, said in parts)

    def episode(self, supervision: str, history: str) -> Episode:
        """The episode that this instance is under a supervision and with so much of the dialogue; see the two methods above."""
        path = self.supervised_path(supervision)
        return Episode(
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
    """What the viewpoints of a house look like, for features that are made and not measured.

    Attributes:
        names: For each of V viewpoints, names of what is there; things of the same name look alike in all houses.
        seen: bool, (V, V); [u, v]: v is seen from u.
        height: float64, (V,); above the floor, m; given where views are to show geometry too: how many viewpoints are in them, how far away, and
            this height.
    """

    names: tuple[tuple[str, ...], ...]
    seen: np.ndarray
    height: np.ndarray | None = None


class GraphWorld(ABC):
    """Houses and the episodes of one split in them: all that the two tasks know of where these come from.

    What is the same for the same settings must be equal bit by bit on every machine. A world draws nothing when asked.

    Attributes:
        graphs: The houses.
        max_tokens: Tokens that suit its texts, when no other limit is asked for.
    """

    graphs: Sequence[Graph]
    max_tokens: int

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """Words of the training texts as `tokens.split_words` gives them: the vocabulary of the word tokenizer, the same for all splits."""

    @property
    @abstractmethod
    def num_episodes(self) -> int:
        """Episodes of the split; they are numbered 0 ... num_episodes - 1."""

    @abstractmethod
    def episode(self, number: int) -> Episode:
        """One of them; may be made when it is asked for, and is always the same."""

    @abstractmethod
    def viewpoint_content(self, house: int) -> ViewpointContent:
        """What the viewpoints of one of `graphs` look like."""

    @abstractmethod
    def number(self, id: str) -> int:
        """Number of the episode with this id.

        Raises:
            ValueError: There is none; the message names the id and how ids look.
        """
