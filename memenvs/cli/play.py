"""`memenvs play`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.cli.common import (
    UserError,
    as_user_error,
    environment_spec,
    make_env,
    reset_env,
)
from memenvs.core import TrialEnv

ARGUMENTS = """
id ID: the environment, as of `memenvs rollout`
--env_kwargs JSON: settings of the environment
--seed K=0: seed
"""

#: Action name -> key, as pygame names it. An action that is not listed has its number as key.
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
OFFSCREEN_DRIVERS = ("dummy", "offscreen", "evdev")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Open a window and play by keyboard until it is closed."""
    spec = environment_spec(arguments.id)
    pygame = _import_pygame()
    env = make_env(spec, arguments, render_mode="rgb_array")
    if not isinstance(env.action_space, gym.spaces.Discrete):
        raise UserError(f"argument ID: must have Discrete actions, one for each key, got {env.action_space}")
    keys = action_keys(env)
    if not arguments.json:
        print(spec.id)
        for action, names in enumerate(keys):
            print(f"  {' or '.join(names):16} {_action_name(env, action)}")
        print("  r: next episode, n: next trial, escape: quit")
    try:
        result = play_by_keyboard(env, pygame, keys, arguments.seed)
    finally:
        pygame.quit()
        env.close()
    if not arguments.json:
        print(f"{result['episodes']} episodes, {result['steps']} steps, return {result['return']:.3f}")
    return {"id": spec.id, **result}


def action_keys(env: gym.Env) -> list[tuple[str, ...]]:
    """List the keys of each action: the one that suits its name, and its number from 0 to 9."""
    assert isinstance(env.action_space, gym.spaces.Discrete)
    return [
        tuple(
            key
            for key in (KEYS.get(_action_name(env, action)), str(action) if action < 10 else None)
            if key is not None
        )
        for action in range(int(env.action_space.n))
    ]


def play_by_keyboard(env: gym.Env, pygame: Any, keys: list[tuple[str, ...]], seed: int) -> dict[str, float]:
    """Play until the window is closed.

    Args:
        env: The environment, with `render_mode="rgb_array"`.
        pygame: The package.
        keys: Names of the keys of each action.
        seed: Seed of the first reset.

    Returns:
        Number of finished `episodes`, of `steps`, and `return`, the sum of all rewards.
    """
    action_of = {key: action for action, names in enumerate(keys) for key in names}
    try:
        pygame.display.init()
        frame = _render(env, seed)
        scale = max(1, WINDOW // max(frame.shape[:2]))
        size = (frame.shape[1] * scale, frame.shape[0] * scale)
        window = pygame.display.set_mode(size)
    except pygame.error as error:
        raise UserError(f"no window could be opened ({error}); play needs a screen, record does not") from error
    if pygame.display.get_driver() in OFFSCREEN_DRIVERS and "SDL_VIDEODRIVER" not in os.environ:
        raise UserError("no screen was found; play needs one, record does not")
    clock = pygame.time.Clock()
    episodes = 0
    steps = 0
    total = 0.0
    reward = 0.0
    is_over = False
    info: dict[str, Any] = {}
    while True:
        pygame.display.set_caption(_caption(info, reward, is_over))
        surface = pygame.surfarray.make_surface(frame.swapaxes(0, 1))
        window.blit(pygame.transform.scale(surface, size), (0, 0))
        pygame.display.flip()
        clock.tick(FPS)
        for event in pygame.event.get():
            key = pygame.key.name(event.key) if event.type == pygame.KEYDOWN else ""
            if event.type == pygame.QUIT or key == "escape":
                return {"episodes": episodes, "steps": steps, "return": total}
            if key in ("r", "n"):
                _, info = env.reset(options={"new_trial": key == "n"} if isinstance(env, TrialEnv) else None)
                is_over = False
                reward = 0.0
            elif key in action_of and not is_over:
                _, earned, terminated, truncated, info = env.step(action_of[key])
                is_over = terminated or truncated
                episodes += is_over
                steps += 1
                reward = float(earned)
                total += reward
            frame = _render(env)


def _render(env: gym.Env, seed: int | None = None) -> np.ndarray:
    """Draw the environment, after a reset if a seed is given."""
    if seed is not None:
        reset_env(env, seed)
    with as_user_error("ID", NotImplementedError):
        frame: Any = env.render()
    assert frame is not None, "render_mode is rgb_array"
    return np.asarray(frame)


def _caption(info: dict[str, Any], reward: float, is_over: bool) -> str:
    if not info:
        return "memenvs"
    how = f" ({'success' if info['success'] else 'no success'})" if "success" in info else ""
    end = f" - over{how}, r goes on" if is_over else ""
    count = f"episode {info['episode_index']}, step {info['num_steps']}, " if "num_steps" in info else ""
    return f"{count}reward {reward:.3f}{end}"


def _action_name(env: gym.Env, action: int) -> str:
    names = env.task.action_names if isinstance(env, TrialEnv) else ()
    return names[action] if names else f"action {action}"


def _import_pygame() -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it prints a greeting on import
            import pygame
    except ImportError as error:
        raise UserError("needs pygame; install it with: pip install 'memenvs[play]'") from error
    return pygame
