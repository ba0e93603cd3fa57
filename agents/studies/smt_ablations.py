"""Ablations of the Scene Memory Transformer (SMT): points of its studies.

A point is an evaluation of a trained agent. Capacity, number of centres, slip and length of episodes can be changed in
a trained agent. Everything else needs a run of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.studies.layout_evaluation import LayoutEvaluation
from memenvs.exploration.config import MODALITIES

#: Capacities of the memory as shares of an episode's steps: the paper's 50 to 500 of 500, and smaller ones. 0 stands
#: for one step, the current one.
CAPACITIES = (0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: The same for our causal memory.
CAUSAL_CAPACITIES = (0.025, 0.05, 0.1, 0.2, 0.4, 1.0)
#: Steps of the longer episodes of the causal memory, as a multiple of those in training: 500 for a laptop's 200.
LONGER = 2.5
#: Numbers of centres, as multiples of the number in training: 25, 50, 100, 200 where agents are trained with 100.
CENTRES = (0.25, 0.5, 1.0, 2.0)
#: Standard deviations of the wheels' rates, rad/s; agents learn with 0.5.
SLIPS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
#: Encodings of the age of an element.
AGE_CODES = ("none", "sinusoidal", "exponential")


@dataclass(frozen=True)
class Point:
    """One point of an ablation.

    Attributes:
        line: Name of its line in the figure and of its row in the table.
        at: Position on the figure's axis, in the unit of `Ablation.axis`; None in an ablation without an axis.
        method: Method whose preset its run is derived from.
        name: Name of the run, after the method; "" for the preset itself.
        overrides: Overrides of the second stage.
        both_stages: Overrides of both stages; the first stage is then trained again.
        evaluation: Evaluation of the trained agent, with its changes.
    """

    line: str
    at: float | None
    method: str
    name: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    both_stages: dict[str, Any] = field(default_factory=dict)
    evaluation: LayoutEvaluation = field(default_factory=LayoutEvaluation)

    @property
    def run(self) -> str:
        """Method and name, as in the folder of the run."""
        return "-".join(filter(None, (self.method, self.name)))


@dataclass(frozen=True)
class Ablation:
    """A study of one part of the agent.

    Attributes:
        points: Function of the settings of `method` that gives the points.
        method: Method whose settings the points start from.
        title: Title of the table.
        axis: Label of the axis; "" without one.
        note: Sentence about what was trained.
    """

    points: Callable[[RunConfig], list[Point]]
    method: str
    title: str
    axis: str
    note: str


def _centres(config: RunConfig) -> list[Point]:
    """Kinds of centres. Those picked from the elements are also evaluated in other numbers than in training."""
    trained = config.policy["memory_kwargs"]["n_centres"]
    counts = [round(trained * share) for share in CENTRES]
    points = [Point("all elements", count, "smt") for count in counts]  # no centres: a level line to compare with
    for kind, name, overrides in (("fps", "", {}), ("window", "window", {"policy.memory_kwargs.centres": "window"})):
        for count in counts:
            evaluation = LayoutEvaluation()
            if count != trained:
                evaluation = LayoutEvaluation(f"homes_centres_{count}", memory={"n_centres": count})
            points.append(Point(kind, count, "smt-factorized", name, overrides, evaluation=evaluation))
    static = {"policy.memory_kwargs.centres": "static"}
    return [*points, Point("static", trained, "smt-factorized", "static", static)]


def _capacity(config: RunConfig) -> list[Point]:
    """Numbers of steps that the memory keeps."""
    points = []
    for share in CAPACITIES:
        kept = max(1, round(share * config.eval_steps))
        evaluation = LayoutEvaluation()
        if share != 1.0:
            evaluation = LayoutEvaluation(f"homes_capacity_{kept}", memory={"capacity": kept})
        points.append(Point("smt", kept, "smt", evaluation=evaluation))
    return points


def _causal(config: RunConfig) -> list[Point]:
    """Numbers of steps that our causal memory keeps, in episodes as long as those of training and in longer ones."""
    trained = config.eval_steps
    points = []
    for steps in (trained, round(LONGER * trained)):
        for share in CAUSAL_CAPACITIES:
            kept = max(1, round(share * trained))
            name = f"homes_steps_{steps}_capacity_{kept}"
            evaluation = LayoutEvaluation(name, memory={"capacity": kept}, steps=steps)
            points.append(Point(f"{steps} steps", kept, "smt-causal", evaluation=evaluation))
    return points


def _modalities(config: RunConfig) -> list[Point]:
    """All modalities; then without each of them, and without the previous action, in both stages; then no encoder."""
    known = MODALITIES[config.env_kwargs.get("obs_mode", "frames")]
    points = [Point("all", None, "smt")]
    for modality in known:
        without: dict[str, Any] = {"env_kwargs.modalities": [name for name in known if name != modality]}
        if modality == "pose":
            without["policy.memory_kwargs.poses"] = False
        points.append(Point(f"no {modality}", None, "smt", f"no-{modality}", both_stages=without))
    without = {"policy.previous_action_dim": 0}
    points.append(Point("no previous action", None, "smt", "no-previous-action", both_stages=without))
    return [*points, Point("no encoder", None, "smt", "no-encoder", {"policy.memory_kwargs.encoder": False})]


def _noise(config: RunConfig) -> list[Point]:
    """Slips of the wheels, for each encoding of ages. Poses come from dead reckoning that notices collisions."""
    points = []
    for time in AGE_CODES:
        overrides = {
            "env_kwargs.pose_source": "dead_reckoning",
            "env_kwargs.collision_known": True,
            "policy.memory_kwargs.time": time,
        }
        for slip in SLIPS:
            evaluation = LayoutEvaluation(f"homes_slip_{slip}", env={"wheel_noise": slip})
            points.append(Point(time, slip, "smt", f"reckoned-{time}", overrides, evaluation=evaluation))
    return points


ABLATIONS: dict[str, Ablation] = {
    "centres": Ablation(
        _centres,
        "smt-factorized",
        "Kind and number of centres (Table 4)",
        "centres",
        "Each kind of centres was trained with one number of them; other numbers were set in the trained agent, except "
        "for learned (static) ones.",
    ),
    "capacity": Ablation(
        _capacity,
        "smt",
        "Reach of the memory (Fig. 5a)",
        "steps kept",
        "One run: trained with a memory of the whole episode, which was shortened in the trained agent.",
    ),
    "causal": Ablation(
        _causal,
        "smt-causal",
        "Reach of our causal memory, also in longer episodes",
        "steps kept",
        "One run: trained with a memory of the whole episode, which was shortened in the trained agent, and keeps as "
        "much in longer episodes.",
    ),
    "modalities": Ablation(
        _modalities,
        "smt",
        "One modality left out (Fig. 5b)",
        "",
        "Every row is a run of its own, with its own first stage; the last row has the first stage of all modalities.",
    ),
    "noise": Ablation(
        _noise,
        "smt",
        "Slip of the wheels under dead reckoning (Fig. 7)",
        "wheel noise (rad/s)",
        "One run for each encoding of ages, trained with 0.5 rad/s and poses by dead reckoning that notices "
        "collisions; other slips were met in the test homes only. An action lasts D = 1 s, so that 0.5 rad/s is 7.0 "
        "degrees of heading an action (standard deviation).",
    ),
}


def smoke_points(points: list[Point]) -> list[Point]:
    """Select the first and the last point, for a smoke test."""
    return [points[0], points[-1]]
