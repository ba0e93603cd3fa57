"""Settings of Roaming, Coverage and Search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from memenvs.checks import (
    MAX_STEPS,
    MAX_THREADS,
    as_names,
    check_fields,
    check_int,
    check_pair,
    choices_for,
    plain_fields,
)
from memenvs.exploration.carmine import IMAGE_SIZE, frame_camera
from memenvs.exploration.drive import ROBOT_HEIGHT, ROBOT_RADIUS
from memenvs.exploration.nyu40 import NYU40
from memenvs.exploration.task_home import ExplorationCheck
from memenvs.houses.homes_config import HomesConfig
from memenvs.houses.playable import HomeCheck
from memenvs.houses.worlds import HouseWorld

#: Keys that can be observed, for each `obs_mode`.
MODALITIES = {"frames": ("rgb", "depth", "semantic", "pose"), "scan": ("scan", "scan_class", "pose")}
#: Classes to find in the paper's Search.
TARGETS = ("television", "refrigerator", "bookshelf", "table", "sofa", "bed")


@dataclass(frozen=True, kw_only=True)
class ExplorationConfig(HomesConfig):
    """Settings of Roaming and Coverage, beside those of `HomesConfig`.

    Attributes:
        world: As in `HomesConfig`, but the default is "suncg_style". A `HouseWorld` brings maps for a robot of its own
            size; this robot's size is `memenvs.exploration.drive.ROBOT_RADIUS` and `ROBOT_HEIGHT`.
        obs_mode: "frames" (images) or "scan" (row 32 of the 48 x 64 images alone: 64 rays, 8 degrees below level).
        modalities: Keys to observe, any of "rgb", "depth", "semantic", "pose", or in `obs_mode="scan"` of "scan",
            "scan_class", "pose"; None for all.
        image_size: Rows and columns of the images, (480, 640) divided by an integer k: every k-th row and column of the
            sensor. None for 48 x 64. None in `obs_mode="scan"`.
        wheel_noise: Standard deviation of the error of each wheel's rate, rad/s; >= 0. Each action draws one error a
            wheel. With the default the standard deviation of the distance driven is 2.3 cm and that of the turn 7.0
            degrees.
        pose_source: Source of the observed pose: "truth", or "dead_reckoning", which integrates commanded motions.
        collision_known: Whether dead reckoning leaves out steps that collide. In these the robot does not move.
        max_episode_steps: Steps after which an episode is truncated; 1 to 1,000,000.
        threads: Rendering threads; 1 to 1024. Results do not depend on it.

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of range or unknown.
    """

    robot_radius: ClassVar[float] = ROBOT_RADIUS
    robot_height: ClassVar[float] = ROBOT_HEIGHT

    world: str | HouseWorld = "suncg_style"
    obs_mode: Literal["frames", "scan"] = "frames"
    modalities: tuple[str, ...] | None = None
    image_size: tuple[int, int] | None = None
    wheel_noise: float = 0.5
    pose_source: Literal["truth", "dead_reckoning"] = "truth"
    collision_known: bool = False
    max_episode_steps: int = 500
    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "modalities", as_names("modalities", self.modalities))
        if isinstance(self.image_size, list):
            object.__setattr__(self, "image_size", tuple(self.image_size))
        check_fields(self)
        self._check_modalities()
        if self.obs_mode == "scan" and self.image_size is not None:
            raise ValueError(f"image_size must be None in obs_mode 'scan', got {self.image_size!r}")
        if self.obs_mode == "frames":
            size = IMAGE_SIZE
            if self.image_size is not None:
                size = check_pair("image_size", self.image_size, "rows and columns")
            frame_camera(size)  # raises if the sensor has no such images
            object.__setattr__(self, "image_size", size)
        if self.wheel_noise < 0:
            raise ValueError(f"wheel_noise must be at least 0 rad/s, got {self.wheel_noise}")
        if self.collision_known and self.pose_source == "truth":
            raise ValueError("collision_known must be False with pose_source 'truth', got True")
        if self.pose_source != "truth" and "pose" not in (self.modalities or ()):
            raise ValueError(
                "pose_source must be 'truth' where modalities leave the pose out, "
                f"got {self.pose_source!r} with {self.modalities!r}"
            )
        check_int("max_episode_steps", self.max_episode_steps, at_most=MAX_STEPS)
        check_int("threads", self.threads, at_most=MAX_THREADS)

    def home_check(self) -> HomeCheck:
        """Return the check of whether a home can be drawn and has what the task needs."""
        return ExplorationCheck(self._class_modality())

    def _class_modality(self) -> str | None:
        """The observation that shows classes; None if none does."""
        return next((name for name in self.modalities or () if name in ("semantic", "scan_class")), None)

    def _check_modalities(self) -> None:
        choices = MODALITIES[self.obs_mode]
        modalities = choices if self.modalities is None else self.modalities
        for name in modalities:
            if name not in choices:
                where = f"modalities: unknown modality {name!r} in obs_mode {self.obs_mode!r}"
                raise ValueError(f"{where}; {choices_for(name, choices)}")
        if not modalities or len(set(modalities)) < len(modalities):
            raise ValueError(f"modalities must be None or some of {list(choices)}, each once, got {self.modalities!r}")
        object.__setattr__(self, "modalities", tuple(modalities))


@dataclass(frozen=True, kw_only=True)
class SearchConfig(ExplorationConfig):
    """Settings of Search, beside those of `ExplorationConfig`.

    Attributes:
        targets: Classes of NYU40 to find, at least one, each once; each must be in some home of the world. None for the
            six of the paper, of which a world may lack some (ProcTHOR's homes have no bookshelf).
    """

    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        plain_fields(self)
        object.__setattr__(self, "targets", as_names("targets", self.targets))
        super().__post_init__()
        targets = TARGETS if self.targets is None else self.targets
        for name in targets:
            if name not in NYU40[1:]:
                raise ValueError(f"unknown class {name!r} in targets; {choices_for(name, NYU40[1:])}")
        if not targets or len(set(targets)) < len(targets):
            raise ValueError(f"targets must be at least one class, each once, got {self.targets!r}")

    def home_check(self) -> HomeCheck:
        """Return the check, for which a home must also have one of the targets."""
        return ExplorationCheck(self._class_modality(), TARGETS if self.targets is None else self.targets)
