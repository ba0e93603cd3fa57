from collections.abc import Callable, Iterator

import gymnasium as gym
import pytest

import memenvs  # noqa: F401  (registers the ids)

#: Name: (id, settings, whether it needs a display). Ours, a dictionary, an array and an image.
ENVS = {
    "darkroom": ("memenvs/Darkroom-v0", {"max_episode_steps": 7, "trial_episodes": 3}, False),
    "home": ("memenvs/ExtObjNav-v0", {"max_episode_steps": 7, "image_size": (12, 16)}, False),
    "minigrid": ("MiniGrid-MemoryS7-v0", {"max_steps": 7}, False),
    "minigrid rooms": ("MiniGrid-KeyCorridorS3R3-v0", {"max_steps": 7}, False),
    "miniworld": ("MiniWorld-FourRooms-v0", {"max_episode_steps": 7}, True),
    "cartpole": ("CartPole-v1", {"max_episode_steps": 7}, False),
}


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., gym.Env]]:
    """Makes an environment of `ENVS` by name; what was made is closed at the end."""
    made: list[gym.Env] = []

    def _make(name: str, **kwargs: object) -> gym.Env:
        id, defaults, needs_display = ENVS[name]
        if needs_display:
            request.getfixturevalue("display")
            pytest.importorskip("miniworld")
        if name.startswith("minigrid"):
            pytest.importorskip("minigrid")
        made.append(gym.make(id, **{**defaults, **kwargs}))
        return made[-1]

    yield _make
    for env in made:
        env.close()
