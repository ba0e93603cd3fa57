"""`memenvs play`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.cli.common import UserError, begin, environment_spec, make_env, print_json
from memenvs.core import TrialEnv

#: Keys (as pygame names them) of actions by name; an action without one has its number as a key.
KEYS = {
    "forward": "up",
    "turn left": "left",
    "turn right": "right",
    "look up": "page up",
    "look down": "page down",
    "stop": "space",
    "up": "up",
    "down": "down",
    "left": "left",
    "right": "right",
    "stay": "space",
}
WINDOW = 640  # pixels, the longer side
FPS = 30
#: Drivers that pygame falls back to without a screen.
UNSEEN = ("dummy", "offscreen", "evdev")


def run(arguments: argparse.Namespace) -> None:
    """Opens a window and plays until it is closed."""
    row = environment_spec(arguments.id)
    pygame = _pygame()
    env = make_env(arguments, render_mode="rgb_array")
    keys = action_keys(env)
    if not arguments.json:
        print(row.id)
        for action, names in enumerate(keys):
            print(f"  {' or '.join(names):16} {_name(env, action)}")
        print("  r: next episode, n: next trial, escape: quit")
    try:
        result = play(env, pygame, keys, arguments.seed)
    finally:
        pygame.quit()
        env.close()
    document = {"id": row.id, **result}
    if arguments.json:
        print_json(document)
        return
    print(f"{result['episodes']} episodes, {result['steps']} steps, return {result['return']:.3f}")


def action_keys(env: TrialEnv) -> list[tuple[str, ...]]:
    """Keys of each action: the one that suits its name, and its number from 0 to 9."""
    assert isinstance(env.action_space, gym.spaces.Discrete)
    return [
        tuple(key for key in (KEYS.get(_name(env, action)), str(action) if action < 10 else None) if key is not None)
        for action in range(int(env.action_space.n))
    ]


def play(env: TrialEnv, pygame: Any, keys: list[tuple[str, ...]], seed: int) -> dict[str, float]:
    """Plays until the window is closed.

    Returns:
        `episodes` that were finished, `steps`, and `return`, the sum of all rewards.
    """
    action_of = {key: action for action, names in enumerate(keys) for key in names}
    try:
        pygame.display.init()
        picture = _picture(env, seed)
        scale = max(1, WINDOW // max(picture.shape[:2]))
        size = (picture.shape[1] * scale, picture.shape[0] * scale)
        window = pygame.display.set_mode(size)
    except pygame.error as error:
        raise UserError(f"no window could be opened ({error}); play needs a screen, record does not") from error
    if pygame.display.get_driver() in UNSEEN and "SDL_VIDEODRIVER" not in os.environ:
        raise UserError("no screen was found; play needs one, record does not")
    clock = pygame.time.Clock()
    episodes = steps = 0
    total = reward = 0.0
    is_over = False
    info: dict[str, Any] = {}
    while True:
        pygame.display.set_caption(_caption(info, reward, is_over))
        surface = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        window.blit(pygame.transform.scale(surface, size), (0, 0))
        pygame.display.flip()
        clock.tick(FPS)
        for event in pygame.event.get():
            key = pygame.key.name(event.key) if event.type == pygame.KEYDOWN else ""
            if event.type == pygame.QUIT or key == "escape":
                return {"episodes": episodes, "steps": steps, "return": total}
            if key in ("r", "n"):
                _, info = env.reset(options={"new_trial": key == "n"})
                is_over, reward = False, 0.0
            elif key in action_of and not is_over:
                _, reward, terminated, truncated, info = env.step(action_of[key])
                is_over = terminated or truncated
                episodes, steps, total = episodes + is_over, steps + 1, total + reward
            picture = _picture(env)


def _picture(env: TrialEnv, seed: int | None = None) -> np.ndarray:
    """What is seen now; after a reset if a seed is given."""
    if seed is not None:
        begin(env, seed)
    picture = env.render()
    assert picture is not None, "render_mode is rgb_array"
    return picture


def _caption(info: dict[str, Any], reward: float, is_over: bool) -> str:
    if not info:
        return "memenvs"
    how = f" ({'success' if info['success'] else 'no success'})" if "success" in info else ""
    end = f" - over{how}, r goes on" if is_over else ""
    return f"episode {info['episode_index']}, step {info['num_steps']}, reward {reward:.3f}{end}"


def _name(env: TrialEnv, action: int) -> str:
    names = env.task.action_names
    return names[action] if names else f"action {action}"


def _pygame() -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it greets on import
            import pygame
    except ImportError as error:
        raise UserError("needs pygame; install it with: pip install 'memenvs[play]'") from error
    return pygame
