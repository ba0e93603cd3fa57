"""In-context evaluation: how a policy gets better from episode to episode within a trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int, choices_for
from memenvs.task import metric_values


class Policy(Protocol):
    """Anything that acts as a Stable-Baselines3 model does."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Actions and the next state."""


class RandomPolicy:
    """Draws every action uniformly.

    Args:
        action_space: Space of one action.
        seed: Of the draws.
    """

    def __init__(self, action_space: spaces.Space, seed: int = 0) -> None:
        self._space = action_space
        self._space.seed(seed)

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """One action for each row of `episode_start`, of those that the observation's `candidate_mask`, if it has one, allows."""
        count = 1 if episode_start is None else len(episode_start)
        masks = observation.get("candidate_mask") if isinstance(observation, dict) else None
        if masks is not None:
            return np.stack([self._space.sample(mask) for mask in np.asarray(masks, np.int8)]), state
        return np.stack([self._space.sample() for _ in range(count)]), state


class OraclePolicy:
    """Does what the environment's oracle says.

    Args:
        env: The environment that it acts in.
    """

    def __init__(self, env: TrialVecEnv) -> None:
        self._env = env

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """The oracle's actions."""
        return self._env.oracle_actions(), state


@dataclass(frozen=True)
class Curve:
    """A metric by episode index.

    Attributes:
        mean: float64, (E,).
        stderr: float64, (E,); standard error over trials.
        stderr_clustered: float64, (E,); standard error over the means of each layout.
        count: int64, (E,); trials that reached the episode.
    """

    mean: np.ndarray
    stderr: np.ndarray
    stderr_clustered: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class TrialResults:
    """Every metric of every finished episode of every trial.

    Attributes:
        metrics: Name -> float64, (trials, E); NaN where a trial had no such episode. `return` and `length` are always there. Episode 0 is
            the first after the demonstrations.
        demonstrated: The same of the demonstrations, (trials, N); empty without.
        layouts: int64, (trials,); the layout of each trial.
        pictures: Row of the last wave -> pictures of its episodes, uint8 (H, W, 3), first and last first.
    """

    metrics: dict[str, np.ndarray]
    layouts: np.ndarray
    pictures: dict[str, np.ndarray]
    demonstrated: dict[str, np.ndarray] = field(default_factory=dict)

    def curve(self, metric: str, *, complete: bool = True) -> Curve:
        """The curve of a metric.

        Args:
            metric: A key of `metrics`.
            complete: Only episodes that every trial reached, so that short episodes do not select the trials.

        Raises:
            ValueError: No such metric; the message lists all.
        """
        if metric not in self.metrics:
            raise ValueError(f"unknown metric {metric!r}; {choices_for(metric, sorted(self.metrics))}")
        values = self.metrics[metric]
        count = np.isfinite(values).sum(0)
        reached = count == len(values) if complete else count > 0
        last = int(np.argmin(reached)) if not reached.all() else len(reached)
        values, count = values[:, :last], count[:last]
        means = np.array(
            [[_mean(values[self.layouts == one, e]) for e in range(last)] for one in np.unique(self.layouts)]
        )
        return Curve(
            np.array([_mean(values[:, e]) for e in range(last)]),
            np.array([_stderr(values[:, e]) for e in range(last)]),
            np.array([_stderr(means[:, e]) for e in range(last)]) if last else np.zeros(0),
            count,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data: for every metric the complete curve, and its mean in each demonstration."""
        curves = {name: self.curve(name) for name in sorted(self.metrics)}
        return {
            "trials": len(self.layouts),
            "layouts": len(np.unique(self.layouts)),
            "demonstrations": {
                name: [_mean(values[:, e]) for e in range(values.shape[1])]
                for name, values in sorted(self.demonstrated.items())
            },
            "metrics": {
                name: {
                    "mean": curve.mean.tolist(),
                    "stderr": curve.stderr.tolist(),
                    "stderr_clustered": curve.stderr_clustered.tolist(),
                    "count": curve.count.tolist(),
                }
                for name, curve in curves.items()
            },
        }


class TrialEvaluator:
    """Plays trials of a fixed number of steps, each in one layout and with an empty memory, and keeps what every finished episode scored.

    Which trials these are depends on the environments alone: all policies play the same ones, and so does each run.

    With demonstrations the oracle acts in the first episodes of a trial. The policy is called at each of their steps too, so that its memory
    takes in what it would have seen; the oracle's action takes the place of its own, also as the previous action of the step after.

    Args:
        env: N environments. A trial that ends before `n_steps` (`trial_episodes`) has so many episodes; a wave ends when all of its trials have.
        n_steps: Steps of a trial in which the policy acts; may be far beyond the training context; >= 1.
        n_trials: Trials to play, in waves of N; >= 1.
        layouts: Layout of each trial, in turn and from the start again; None takes those of the environment's own trials.
        deterministic: The most likely action instead of a drawn one.
        pictures: Whether to keep maps with the way taken in an early and a late episode of the first environment.
        demonstrations: Episodes at the start of each trial in which the oracle acts, before the `n_steps`; >= 0. Compare with
            as many episodes played by the policy itself.

    Raises:
        ValueError: A number is too small, or demonstrations are asked of an environment without an oracle.

    Source:
        ReLIC, section on evaluation: fresh memory, one layout, sampled actions, records of finished episodes only, mean over trials of the
        i-th finished episode restricted to the i that every trial reached. Demonstrations: section on few-shot imitation.
    """

    def __init__(
        self,
        env: VecEnv,
        n_steps: int,
        n_trials: int,
        *,
        layouts: Sequence[int] | None = None,
        deterministic: bool = False,
        pictures: bool = False,
        demonstrations: int = 0,
    ) -> None:
        check_int("n_steps", n_steps)
        check_int("n_trials", n_trials)
        check_int("demonstrations", demonstrations, 0)
        if demonstrations > 0 and not hasattr(env, "oracle_actions"):
            raise ValueError(
                f"demonstrations must be 0 for an environment without oracle_actions, got {demonstrations} for a {type(env).__name__}"
            )
        if layouts is not None and len(layouts) == 0:
            raise ValueError("layouts must be None or have at least one entry, got none")
        if pictures and not isinstance(env, TrialVecEnv):
            raise ValueError(f"pictures needs a TrialVecEnv, got {type(env).__name__}")
        self.env, self.n_steps, self.n_trials = env, n_steps, n_trials
        self.layouts, self.deterministic, self.pictures = layouts, deterministic, pictures
        self.demonstrations = demonstrations

    def run(self, policy: Policy, progress: Callable[[float], None] | None = None) -> TrialResults:
        """Plays all trials.

        Args:
            policy: What acts. If the action before is part of its state, it has `update_previous_action(state, actions)`, as `MemoryPolicy`.
            progress: Called after each step with the share of all steps that is done, 0 to 1; those of trials that ended early count as done.

        Raises:
            ValueError: The environment has no trials, or one ended within the demonstrations.
        """
        episodes: list[list[dict[str, float]]] = []
        layouts: list[int] = []
        pictures: dict[str, np.ndarray] = {}
        for first in range(0, self.n_trials, self.env.num_envs):
            wave = min(self.env.num_envs, self.n_trials - first)
            records, played, pictures = self._wave(policy, first, progress)
            if progress is not None:
                progress((first + wave) / self.n_trials)
            episodes += records[:wave]
            layouts += played[:wave]
        shown = self.demonstrations
        shortest = min(len(trial) for trial in episodes)
        if shortest < shown:
            raise ValueError(
                f"trials must go on after their {shown} demonstrations, one ended after {shortest} episodes"
            )
        return TrialResults(
            _by_name([trial[shown:] for trial in episodes]),
            np.array(layouts, np.int64),
            pictures,
            _by_name([trial[:shown] for trial in episodes]),
        )

    def _wave(
        self, policy: Policy, first: int, progress: Callable[[float], None] | None
    ) -> tuple[list[list[dict[str, float]]], list[int], dict[str, np.ndarray]]:
        """One trial in every environment."""
        env, count = self.env, self.env.num_envs
        # by number, so that which trials are played does not depend on how many a policy has ended before
        options: list[dict[str, Any]] = [{"trial": first // count} for _ in range(count)]
        if self.layouts is not None:
            for i in range(count):
                options[i]["layout"] = int(self.layouts[(first + i) % len(self.layouts)])
        env.set_options(options)
        observation = env.reset()
        if not all("trial_start" in info for info in env.reset_infos):
            raise ValueError(
                "env must have trials to be evaluated by episode of the trial: `info` at a reset has no 'trial_start'; "
                f"got {env.unwrapped}"
            )
        played = [int(info.get("layout_id", 0)) for info in env.reset_infos]
        records: list[list[dict[str, float]]] = [[] for _ in range(count)]
        running = np.ones(count, bool)  # whose first trial goes on
        left = np.full(count, self.n_steps)  # steps that the policy still has
        update_previous_action = getattr(policy, "update_previous_action", None)
        state, start = None, np.ones(count, bool)
        bare = env.unwrapped
        options_of_task = bare.env.task.option_names if isinstance(bare, TrialVecEnv) else ()
        ways: list[list[np.ndarray]] = [[self._pose()]] if self.pictures else []
        while (running & (left > 0)).any():
            actions, state = policy.predict(observation, state, start, self.deterministic)
            shown = running & (np.array([len(trial) for trial in records]) < self.demonstrations)
            if shown.any():
                actions = _where(shown, env.oracle_actions(), actions)  # type: ignore[attr-defined]
                if update_previous_action is not None:
                    state = update_previous_action(state, actions)
            observation, _, start, infos = env.step(actions)
            left -= ~shown
            for i in np.flatnonzero(start).tolist():
                if running[i] and left[i] >= 0:
                    records[i].append(_measures(infos[i], options_of_task))
                    running[i] = not env.reset_infos[i]["trial_start"]
            if self.pictures and running[0] and left[0] >= 0:
                if start[0]:
                    ways.append([])
                ways[-1].append(self._pose())
            if progress is not None:
                done = count * (1.0 - max(0, int(left.max())) / self.n_steps)  # of the trials of this wave
                progress(min(1.0, (first + done) / self.n_trials))
        return records, played, self._draw(ways[self.demonstrations : len(records[0])])

    def _pose(self) -> np.ndarray:
        """float, (3,); where the first environment is."""
        assert isinstance(self.env, TrialVecEnv)
        return self.env.env.task.info()["pose"][0].copy()

    def _draw(self, ways: list[list[np.ndarray]]) -> dict[str, np.ndarray]:
        """Maps of the first and the last finished episode."""
        if not ways:
            return {}
        assert isinstance(self.env, TrialVecEnv)
        chosen = {1: ways[0], len(ways): ways[-1]}
        return {f"episode {e}": self.env.env.task.draw_map(0, np.stack(way)) for e, way in chosen.items()}


def _measures(info: dict[str, Any], option_names: Sequence[str]) -> dict[str, float]:
    """The numbers of a final info that tell how the episode went, with its return and length."""
    measures = metric_values(info, option_names)
    episode = info.get("episode", {})
    if episode:
        measures |= {"return": float(episode["r"]), "length": float(episode["l"])}
    return measures


def _by_name(trials: list[list[dict[str, float]]]) -> dict[str, np.ndarray]:
    """Name -> float64, (trials, E), of the measures of each episode of each trial; NaN where there is none."""
    longest = max(len(trial) for trial in trials)
    names = sorted({name for trial in trials for episode in trial for name in episode})
    table = {name: np.full((len(trials), longest), np.nan) for name in names}
    for i, trial in enumerate(trials):
        for e, episode in enumerate(trial):
            for name, value in episode.items():
                table[name][i, e] = value
    return table


def _where(rows: np.ndarray, these: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`these` in the rows (bool, (N,)), `others` elsewhere."""
    chosen = others.copy()
    chosen[rows] = these[rows]
    return chosen


def _mean(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _stderr(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
