"""Picture tasks of environments, by id; a task is imported when a run needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memenvs.agents.papers.sat.picture_task import PictureTask
from memenvs.checks import choices_for
from memenvs.plugins import load_class

#: Id -> "module:Class" of the environment's config, and of the task that is made of it.
PICTURE_TASKS = {
    "memenvs/FFHQWorld-v0": ("memenvs.faces.config:FacesConfig", "memenvs.agents.papers.sat.face_task:FaceTask"),
    "memenvs/FFHQWorld-LongStay-v0": (
        "memenvs.faces.config:LongStayConfig",
        "memenvs.agents.papers.sat.face_task:FaceTask",
    ),
    "memenvs/Ballet3D-v0": (
        "memenvs.ballet3d.config:Ballet3DConfig",
        "memenvs.agents.papers.sat.ballet3d_task:Ballet3DTask",
    ),
    "memenvs/ColorRecall-v0": (
        "memenvs.recall.config:ColorRecallConfig",
        "memenvs.agents.papers.sat.recall_tasks:ColorRecallTask",
    ),
    "memenvs/ViewRecall-v0": (
        "memenvs.recall.config:ViewRecallConfig",
        "memenvs.agents.papers.sat.recall_tasks:ViewRecallTask",
    ),
}


def make_picture_task(env: str, env_kwargs: Mapping[str, Any]) -> PictureTask:
    """Make the task of an environment.

    Args:
        env: Its id, one of `PICTURE_TASKS`.
        env_kwargs: Its settings.

    Raises:
        ValueError: There is no such task, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    if env not in PICTURE_TASKS:
        raise ValueError(f"env must be a picture task, got {env!r}; {choices_for(env, PICTURE_TASKS)}")
    config, task = (load_class(path) for path in PICTURE_TASKS[env])
    return task(config(**env_kwargs))
