"""Vector environments for Stable-Baselines3: no copied observations, final ones in infos."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_util import make_vec_env as make_sb3_vec_env
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.encoders import FrozenEncoder, make_encoder
from memenvs.checks import check_int
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.registry import SINGLE, entry_path, find_environment
from memenvs.resets import stream_seed
from memenvs.wrappers import PlaceWrapper, TrialWrapper

#: Arguments of `make_vec_env` that only change what is observed.
OBSERVATION_ARGUMENTS = ("encoder", "encoder_kwargs", "place")


class TrialVecEnv(VecEnv):
    """A batch-native environment as a Stable-Baselines3 `VecEnv`.

    Observations are not copied; they stay valid until the step after the next. `infos[i]` is empty except where an
    episode ended: there it is the final info with `terminal_observation`, `TimeLimit.truncated` and `episode` (return
    `r`, length `l`), so no `Monitor` is needed. `reset_infos[i]` is the info of the latest reset, automatic ones
    included; its `trial_start` is True if that reset began a new trial.

    Args:
        env: Batch-native environment with `autoreset_mode` "SameStep".
        encoder: Frozen encoder that replaces the images `rgb` by features, under its `feature_key`; None leaves
            observations as they are.
        place: Add the key `place` to observations, int64 (N,), from `info`, as `PlaceWrapper` does for single
            environments.

    Raises:
        ValueError: Another autoreset mode, an encoder without images, or a place where the task does not number its
            places or observations are no `Dict`.
    """

    def __init__(self, env: TrialVectorEnv, encoder: FrozenEncoder | None = None, place: bool = False) -> None:
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode must be 'SameStep', got {env.autoreset_mode.value!r}")
        self.env = env
        self.render_mode = env.render_mode
        self.encoder = encoder
        self.shows_place = place
        space = env.single_observation_space if encoder is None else encoder.encoded_space(env.single_observation_space)
        if place:
            count = env.task.num_places
            if count is None or not isinstance(space, spaces.Dict):
                raise ValueError(f"place must be False where there are {count} places and observations are {space}")
            space = spaces.Dict({**space.spaces, "place": spaces.Discrete(count)})
        super().__init__(env.num_envs, space, env.single_action_space)
        self._actions: np.ndarray | None = None
        self._returns = np.zeros(env.num_envs)

    def reset(self) -> Any:
        """Reset all environments; seeds of `seed` and options of `set_options` are used once."""
        seeds: Any = None if all(seed is None for seed in self._seeds) else self._seeds
        observations, infos = self.env.reset(seed=seeds, options=self._options if any(self._options) else None)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self.reset_infos = [self._info_of(infos, i) for i in range(self.num_envs)]
        return self._with_places(self._encode(observations, [])[0], infos)

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; ended episodes are reset in the same step."""
        if self._actions is None:
            raise RuntimeError("step_wait was called before step_async")
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        done = terminated | truncated
        self._returns += rewards
        step_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(done).tolist()
        observations, last = self._encode(observations, [infos["final_obs"][i] for i in ended])
        if ended:
            for i, observation in zip(ended, last, strict=True):
                info = self._info_of(infos["final_info"], i)
                place = {"place": np.int64(info["place"])} if self.shows_place else {}
                info["terminal_observation"] = {**observation, **place} if place else observation
                info["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
                info["episode"] = {"r": float(self._returns[i]), "l": info["num_steps"]}
                step_infos[i] = info
                self.reset_infos[i] = self._info_of(infos, i)
            self._returns[done] = 0.0
        return self._with_places(observations, infos), rewards.astype(np.float32), done, step_infos

    def oracle_actions(self) -> np.ndarray:
        """Actions of a policy that knows the true state, (N,), or for a `Box` (N, A)."""
        return self.env.oracle_actions()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """The attribute of the batch, once per index."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of the batch; it is shared, so `indices` must be None.

        Raises:
            ValueError: `indices` is given.
        """
        if indices is not None:
            raise ValueError(f"indices must be None: the environments of a batch share their attributes, got {indices}")
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call `new_trial` or `action_masks` for some environments, another method for the batch.

        Raises:
            ValueError: `indices` is given for any other method.
        """
        rows = list(self._get_indices(indices))
        if method_name == "action_masks":  # of sb3-contrib
            return list(self.env.action_masks()[rows])
        if method_name == "new_trial":
            mask = np.zeros(self.num_envs, bool)
            mask[rows] = True
            self.env.new_trial(mask)
            return [None] * len(rows)
        if indices is not None:
            raise ValueError(f"indices must be None for {method_name!r}: the batch has one method, got {indices}")
        return [getattr(self.env, method_name)(*method_args, **method_kwargs)] * len(rows)

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """True for `Monitor`, whose record is in the info; there are no single environments to wrap."""
        return [wrapper_class.__name__ == "Monitor"] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """One rendered image per environment."""
        return self.env.render() or [None] * self.num_envs

    def _encode(self, observations: Any, last: list[Any]) -> tuple[Any, list[Any]]:
        """Encode the images of all observations and of the last ones of ended episodes, if there is an encoder."""
        if self.encoder is None:
            return observations, last
        batches = [{key: value[None] for key, value in observation.items()} for observation in last]  # batches of one
        current, *encoded = self.encoder.encode_observations([observations, *batches])
        return current, [{key: value[0] for key, value in observation.items()} for observation in encoded]

    def _with_places(self, observations: Any, infos: dict[str, Any]) -> Any:
        """Add places to the observations, if they have them."""
        return {**observations, "place": infos["place"].astype(np.int64)} if self.shows_place else observations

    @staticmethod
    def _info_of(infos: dict[str, Any], i: int) -> dict[str, Any]:
        """Info of environment `i`: Python scalars and texts, and arrays for vectors."""
        return {
            key: value.item(i) if value.ndim == 1 else value[i]
            for key, value in infos.items()
            if not key.startswith(("_", "final_"))
        }


_NUMERIC = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def check_observation_space(space: spaces.Space) -> None:
    """Raise a ValueError if a policy cannot read the observations of a space, such as texts."""
    keys = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
    for key, part in keys.items():
        if not isinstance(part, _NUMERIC):
            others = [name for name in keys if isinstance(keys[name], _NUMERIC)]
            remove = f"remove it, as with gymnasium.wrappers.FilterObservation(env, {others}), or " if others else ""
            raise ValueError(
                "observations must be numbers, of a Box, Discrete, MultiDiscrete or MultiBinary space or a Dict of "
                f"such; {key!r} is of {part}; {remove}replace texts by token ids or an embedding of the sentence"
            )


def episode_horizon(env: VecEnv) -> int | None:
    """Largest time limit of an episode over all copies, steps; None if there is none."""
    unwrapped = env.unwrapped
    if isinstance(unwrapped, TrialVecEnv):
        return unwrapped.env.max_episode_steps
    limits = [spec.max_episode_steps for spec in env.get_attr("spec") if spec is not None]
    return max((limit for limit in limits if limit is not None), default=None)


def check_encoder(expected: str | None, env: VecEnv) -> None:
    """Raise a ValueError if another frozen encoder makes the observations of an environment.

    What was learned from exact observations may act on estimates of them.

    Args:
        expected: `encoder_fingerprint` of the encoder; None for none.
        env: The environment.
    """
    bare = env.unwrapped
    if expected is None and isinstance(bare, TrialVecEnv) and bare.encoder is not None and bare.encoder.estimates:
        return
    got = encoder_fingerprint(env)
    if got != expected:
        raise ValueError(
            f"encoder must be the one that was learned with, of weights {expected}, got one of weights {got}"
        )


def encoder_fingerprint(env: VecEnv) -> str | None:
    """Fingerprint of the frozen encoder of an environment; None without one."""
    bare = env.unwrapped
    return bare.encoder.fingerprint if isinstance(bare, TrialVecEnv) and bare.encoder is not None else None


def check_vocabulary(expected: str | None, env: VecEnv) -> None:
    """Raise a ValueError if the token ids of an environment's texts stand for other words.

    Args:
        expected: `vocabulary_fingerprint` in training; None if it is unknown.
        env: The environment.
    """
    got = vocabulary_fingerprint(env)
    if expected is not None and got != expected:
        raise ValueError(
            f"vocabulary must be the one that was learned with, {expected}, got {got}: "
            "token ids would mean other words (world, tokenizer or files of the environment differ)"
        )


def vocabulary_fingerprint(env: VecEnv) -> str | None:
    """Fingerprint of the vocabulary of an environment; None if it has no texts."""
    bare = env.unwrapped
    tokenizer = getattr(bare.env.task, "tokenizer", None) if isinstance(bare, TrialVecEnv) else None
    return None if tokenizer is None else tokenizer.fingerprint


def episode_is_trial(env: VecEnv) -> bool:
    """Return True if every episode of an environment, from reset to its end, is a whole trial."""
    if all(env.env_is_wrapped(TrialWrapper)):
        return True
    return env.has_attr("trial_episodes") and all(limit == 1 for limit in env.get_attr("trial_episodes"))


def _takes(creator: Any, argument: str) -> bool:
    """True if a class or function takes an argument of this name."""
    parameters = inspect.signature(creator).parameters
    return argument in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def make_vec_env(
    id: str,
    num_envs: int,
    *,
    seed: int | None = None,
    encoder: str | None = None,
    encoder_kwargs: Mapping[str, Any] | None = None,
    place: bool = False,
    **kwargs: Any,
) -> VecEnv:
    """Make N copies of any Gymnasium id as a Stable-Baselines3 `VecEnv`.

    Ids of `memenvs.register`, and others whose environment is `TrialEnv` or whose `vector_entry_point` makes a
    `TrialVectorEnv`, are batch-native: one object steps all copies. Other ids get one object per copy.

    Args:
        id: Gymnasium id; "module:id" imports the module that registers it. The namespace may be left out.
        num_envs: N, >= 1.
        seed: Environment i gets `memenvs.resets.stream_seed(seed)` + i, so that batches of different seeds share no
            trial; None draws one.
        encoder: Name of a frozen encoder (`memenvs.agents.encoders.make_encoder`) that turns `rgb` into features;
            None for none.
        encoder_kwargs: Settings of the encoder.
        place: Add the key `place` to observations, as `PlaceWrapper` does.
        **kwargs: Settings of the environment.

    Raises:
        ValueError: An unknown id or encoder, `num_envs` below 1, an encoder for an id that is not batch-native or whose
            observations have no images of its size, a place in an environment without places, or observations that are
            no numbers.
    """
    id = find_environment(id).id
    check_int("num_envs", num_envs)
    spec = gym.registry[id]
    batch = _make_batch(spec, num_envs, {"autoreset_mode": "SameStep", "copy": False, **kwargs})
    if batch is not None:
        frozen = None if encoder is None else make_encoder(encoder, **(encoder_kwargs or {}))
        env: VecEnv = TrialVecEnv(batch, frozen, place)
        if seed is not None:  # Stable-Baselines3 would draw one from NumPy's global generator, here and below
            env.seed(stream_seed(seed))
        return env
    if encoder is not None:
        raise ValueError(f"encoder must be None for {id!r}, which is not batch-native, got {encoder!r}")
    seed = int(np.random.default_rng().integers(2**31)) if seed is None else stream_seed(seed)
    creator = _load(spec.entry_point)
    if isinstance(creator, type) and issubclass(creator, TrialEnv):
        warnings.warn(
            f"{spec.id} steps its copies one by one: only a TrialEnv without wrappers, not a subclass, has a batched "
            "form; register the task with memenvs.register, or a vector_entry_point",
            stacklevel=2,
        )
    modes = getattr(creator, "metadata", {}).get("render_modes") or ()
    if "rgb_array" in modes and _takes(creator, "render_mode"):
        kwargs = {"render_mode": "rgb_array", **kwargs}  # the default of Stable-Baselines3

    def make(**settings: Any) -> gym.Env:
        return gym.make(id, **settings)

    def prepared(env: gym.Env) -> gym.Env:
        check_observation_space(env.observation_space)
        return PlaceWrapper(env) if place else env

    return make_sb3_vec_env(make, num_envs, seed=seed, env_kwargs=kwargs, wrapper_class=prepared)


def _make_batch(spec: EnvSpec, num_envs: int, settings: dict[str, Any]) -> TrialVectorEnv | None:
    """Make the batch-native form of an id; None if it has none."""
    creator = _load(spec.vector_entry_point)
    if spec.additional_wrappers:
        return None
    if spec.vector_entry_point is None and entry_path(spec.entry_point) == SINGLE:
        limit = {} if spec.max_episode_steps is None else {"max_episode_steps": spec.max_episode_steps}
        return TrialVectorEnv(num_envs=num_envs, **{**limit, **spec.kwargs, **settings})
    if creator is None or (isinstance(creator, type) and not issubclass(creator, TrialVectorEnv)):
        return None
    try:
        signature(creator).bind(num_envs=num_envs, **{**spec.kwargs, **settings})
    except (TypeError, ValueError):  # a function without our settings makes another kind of batch
        return None
    made = gym.make_vec(spec, num_envs, vectorization_mode="vector_entry_point", **settings)
    if isinstance(made, TrialVectorEnv):
        return made
    made.close()
    return None


def _load(entry_point: Any) -> Any:
    """The class or function of an entry point; None if there is none or it cannot be imported."""
    if not isinstance(entry_point, str):
        return entry_point
    try:
        return load_env_creator(entry_point)
    except (ImportError, AttributeError):  # Gymnasium raises it where the form is needed
        return None
