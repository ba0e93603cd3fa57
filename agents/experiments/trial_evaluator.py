"""In-context evaluation: metrics of a policy from episode to episode within a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, is_vecenv_wrapped

from memenvs.agents.experiments.itinerary import itinerary_scores
from memenvs.agents.experiments.play import (
    DemonstratedPolicy,
    Policy,
    play_trials,
    takes_trial_start,
    trial_options,
)
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import OBSERVATION_ARGUMENTS, TrialVecEnv, make_vec_env
from memenvs.certificates.test_sets import TrialSet, find_test_set, playable_test_set
from memenvs.checks import check_int, choices_for
from memenvs.core import TrialVectorEnv
from memenvs.identity import changed_settings
from memenvs.itineraries import visits
from memenvs.progress import no_progress, part_of
from memenvs.registry import find_environment
from memenvs.resets import below_limit, stream_seed
from memenvs.task import metric_values

ENDLESS = 2**62
"""Steps of a trial that ends by itself."""
NUM_ENVS = 64
"""Environments that `evaluate` makes; the results do not depend on their number, but for the actions drawn."""


@dataclass(frozen=True)
class Curve:
    """Mean of a metric over trials, for each episode index.

    Attributes:
        mean: float64, (E,).
        stderr: float64, (E,); standard error of the mean over trials.
        stderr_clustered: float64, (E,); the same, clustered by home: the standard error over the means of homes, or of
            layouts in tasks without homes.
        count: int64, (E,); trials that reached the episode.
    """

    mean: np.ndarray
    stderr: np.ndarray
    stderr_clustered: np.ndarray
    count: np.ndarray


@dataclass(frozen=True, eq=False)  # arrays have no truth of being equal
class TrialResults:
    """Every metric of every finished episode of every trial.

    Attributes:
        metrics: Name -> float64, (trials, E); NaN where a trial had no such episode. `return` and `length` are always
            there. Episode 0 is the first after the demonstrations.
        layouts: int64, (trials,); the layout of each trial.
        maps: "episode NUMBER" -> map, uint8, (H, W, 3), of the first and the last finished episode that the first
            environment played in the last batch of trials. NUMBER is 1 for the first after the demonstrations. Empty
            without `maps`, or if the task has no pose or draws no map.
        demonstrated: As `metrics`, of the demonstrations, (trials, demonstrations); empty without demonstrations.
        homes: (trials,); name of the home of each trial, which several layouts may share; None without homes.
        test_set: Test set of the trials; None for others.
        observed: Settings of what is observed that differ from those of the test set, name -> value.
        actions: Actions of each trial, (T,) or (T, A); empty if they are not kept.
        itinerary: Letters of the episodes; None for trials in one layout.
        fresh: As `metrics`, of the same trials with a memory that is emptied at each change of the layout; empty where
            they were not played.
    """

    metrics: dict[str, np.ndarray]
    layouts: np.ndarray
    maps: dict[str, np.ndarray]
    demonstrated: dict[str, np.ndarray] = field(default_factory=dict)
    homes: np.ndarray | None = None
    test_set: TrialSet | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    actions: Sequence[np.ndarray] = ()
    itinerary: str | None = None
    fresh: dict[str, np.ndarray] = field(default_factory=dict)

    def trial_means(self, metric: str) -> np.ndarray:
        """Mean of a metric over the finished episodes of each trial with one, float64, (trials,)."""
        values = self.metrics[metric]
        return np.nanmean(values[np.isfinite(values).any(1)], axis=1)

    def curve(self, metric: str) -> Curve:
        """Average a metric over trials, by episode index.

        Only indices that every trial reached: later ones would average over the trials with short episodes, which are
        mostly the good ones.

        Args:
            metric: A key of `metrics`.

        Returns:
            The curve, with E cut after the last such index; E may be 0.

        Raises:
            ValueError: No such metric; the message lists all.
        """
        if metric not in self.metrics:
            raise ValueError(f"unknown metric {metric!r}; {choices_for(metric, sorted(self.metrics))}")
        values = self.metrics[metric]
        count = np.isfinite(values).sum(0)
        reached = count == len(values)
        num_episodes = int(np.argmin(reached)) if not reached.all() else len(reached)  # E: up to the first gap
        values = values[:, :num_episodes]
        episodes = range(num_episodes)
        clusters = self.layouts if self.homes is None else self.homes
        cluster_means = np.array(
            [[_mean(values[clusters == cluster, e]) for e in episodes] for cluster in np.unique(clusters)]
        )  # (clusters, E)
        return Curve(
            mean=np.array([_mean(values[:, e]) for e in episodes]),
            stderr=np.array([_stderr(values[:, e]) for e in episodes]),
            stderr_clustered=np.array([_stderr(cluster_means[:, e]) for e in episodes]) if episodes else np.zeros(0),
            count=count[:num_episodes],
        )

    def __str__(self) -> str:
        """A table of means with their standard errors over trials: of the first episode, those after it, and the last.

        With an itinerary it is a table by visit, and of what is lost by the changes. Of a test set the score is marked,
        and the hash and what is observed otherwise are named.
        """
        title = f"{len(self.layouts)} trials"
        names, score, notes = sorted(self.metrics), None, []
        if self.test_set is not None:
            title = f"{self.test_set.id}, test set {self.test_set.name}: {title}"
            score = find_environment(self.test_set.id).score_key
            names.sort(key=lambda name: name != score)  # the score first
            notes = [f"hash: {self.test_set.hash}"]
        if self.observed:
            notes.insert(0, observed_text(self.observed))
        episodes = max((len(self.curve(name).mean) for name in names), default=0)
        if episodes == 0:
            return f"{title}, no episode has ended in all of them"
        parts = {"episode 1": range(1), f"episodes 2 to {episodes}": range(1, episodes)}
        if episodes > 2:
            parts[f"episode {episodes}"] = range(episodes - 1, episodes)
        if self.itinerary is not None:
            parts = {
                f"{visit.letter} {visit.episodes[0] + 1} to {visit.episodes[-1] + 1}": visit.episodes
                for visit in visits(self.itinerary)
            }
        parts = {title: part for title, part in parts.items() if part and part[-1] < episodes}
        lost = self.itinerary_scores(names[0])
        rows = [["", *parts, *lost]]
        for name in names:
            means = [np.array([_mean(trial) for trial in self.metrics[name][:, part]]) for part in parts.values()]
            values = [(_mean(part), _stderr(part)) for part in means] + [*self.itinerary_scores(name).values()]
            rows.append(
                [name + " (score)" * (name == score), *(f"{mean:.4g} +- {error:.2g}" for mean, error in values)]
            )
        width = max(len(row[0]) for row in rows)
        lines = [f"{row[0]:{width}}" + "".join(f"{cell:>20}" for cell in row[1:]) for row in rows]
        return "\n".join([title, *lines, *notes])

    def itinerary_scores(self, metric: str) -> dict[str, tuple[float, float]]:
        """Compute what is lost by changes of the layout; empty without an itinerary.

        Args:
            metric: A key of `metrics`.

        Returns:
            Name -> mean and standard error over trials; see `memenvs.agents.experiments.itinerary.itinerary_scores`.
        """
        if self.itinerary is None:
            return {}
        scores = itinerary_scores(self.metrics[metric], self.fresh.get(metric), self.itinerary)
        return {name: (_mean(values), _stderr(values)) for name, values in scores.items()}

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON data: curves, means of demonstrations, scores of an itinerary."""
        curves = {name: self.curve(name) for name in sorted(self.metrics)}
        return self._itinerary_json() | {
            "trials": len(self.layouts),
            "layouts": len(np.unique(self.layouts)),
            "test_set": None if self.test_set is None else self.test_set.to_json(),
            "observed": dict(self.observed),
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

    def _itinerary_json(self) -> dict[str, Any]:
        """The part of `to_json` about the itinerary; empty without one."""
        if self.itinerary is None:
            return {}
        metrics: dict[str, dict[str, Any]] = {}
        for name in sorted(self.metrics):
            scores = self.itinerary_scores(name)
            metrics[name] = {key: {"mean": mean, "stderr": stderr} for key, (mean, stderr) in scores.items()}
            if name in self.fresh:
                episodes = self.fresh[name].T
                metrics[name]["fresh"] = {
                    "mean": [_mean(values) for values in episodes],
                    "stderr": [_stderr(values) for values in episodes],
                }
        return {"itinerary": {"letters": self.itinerary, "metrics": metrics}}


class TrialEvaluator:
    """Play trials of a fixed number of steps and keep the metrics of every finished episode.

    Each trial is in one layout and starts with an empty memory. The trials depend on the environments alone: all
    policies, and all calls of `run`, play the same ones. In environments without trials each episode is a trial.

    With demonstrations the oracle acts in the first episodes of a trial; see `DemonstratedPolicy`.

    With an itinerary all episodes of a trial are played. With `fresh_visits` the same trials are then played once more
    by a policy whose memory is emptied at each change of the layout, to measure what the old memory costs.

    Difference from the paper:
        None in the protocol. Standard errors over trials come with others that are clustered by home, since trials in
        one home are correlated, also with other objects in it.

    Args:
        env: N environments. They play the trials in batches of N: one trial each, until all N have ended. The
            environments may end a trial before `n_steps`, for example after `trial_episodes`.
        n_steps: Steps of a trial in which the policy acts; may be far beyond the training context; >= 1. None with
            `test_set`, or with an itinerary.
        n_trials: Trials to play, N at a time; >= 1. None with `test_set`.
        layouts: Layouts of the trials in order, cycled; None for those of the environment's own trials.
        deterministic: Take the most likely action instead of a sampled one.
        maps: Keep maps with the path of an early and a late episode of the first environment.
        demonstrations: Episodes at the start of each trial in which the oracle acts, before the `n_steps`; >= 0.
            Compare with as many episodes played by the policy itself.
        seed: In environments without trials, trial k is the episode after a reset with
            `memenvs.resets.stream_seed(seed)` + k; >= 0. The trials of others follow from the seeds of the
            environments.
        fresh_visits: With an itinerary: play the trials once more as above, if `predict` of the policy has an argument
            `trial_start`. Without it no memory outlasts an episode. Nor does a rule without a memory play them.
        test_set: Name of a test set of the id (`memenvs test-set ID`), such as "v0", or the set: its trials are played,
            to their ends. The settings of the environments must be those of the test set, but for those that only
            change what is observed (`TrialSet.free_settings`).
        keep_actions: Keep all actions.

    Raises:
        ValueError: A number is too small, the environment has no oracle to demonstrate, or it cannot play the test set.

    Source:
        Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for Embodied AI", 2024
        (arXiv:2410.02751), section on evaluation: fresh memory, one layout, sampled actions, records of finished
        episodes only, mean over trials of the i-th finished episode restricted to the i that every trial reached.
        Demonstrations: section on few-shot imitation.
    """

    def __init__(
        self,
        env: VecEnv,
        n_steps: int | None = None,
        n_trials: int | None = None,
        *,
        layouts: Sequence[int] | None = None,
        deterministic: bool = False,
        maps: bool = False,
        demonstrations: int = 0,
        seed: int = 0,
        fresh_visits: bool = False,
        test_set: str | TrialSet | None = None,
        keep_actions: bool = False,
    ) -> None:
        #: Letters of the episodes of a trial; None for trials in one layout.
        self.itinerary = itinerary_of(env)
        self.test_set = None if test_set is None else _check_test_set(env, test_set)
        if self.test_set is not None:
            for name, value in {"n_steps": n_steps, "n_trials": n_trials, "layouts": layouts}.items():
                if value is not None:
                    raise ValueError(f"{name} must be None with a test_set, which has its own, got {value}")
            n_steps, n_trials = ENDLESS, self.test_set.trials
        if self.itinerary is not None:
            if n_steps not in (None, ENDLESS):
                raise ValueError(
                    f"n_steps must be None with an itinerary, whose trials are played whole, got {n_steps}"
                )
            if demonstrations:
                raise ValueError(f"demonstrations must be 0 with an itinerary, got {demonstrations}")
            n_steps = ENDLESS
        check_int("n_steps", n_steps)
        check_int("n_trials", n_trials)
        check_int("demonstrations", demonstrations, 0)
        check_int("seed", seed, 0)
        if demonstrations > 0 and not hasattr(env, "oracle_actions"):
            raise ValueError(
                "demonstrations must be 0 for an environment without oracle_actions, "
                f"got {demonstrations} for a {type(env).__name__}"
            )
        if layouts is not None and len(layouts) == 0:
            raise ValueError("layouts must be None or have at least one entry, got none")
        if maps and not isinstance(env, TrialVecEnv):
            raise ValueError(f"maps needs a TrialVecEnv, got {type(env).__name__}")
        assert n_steps is not None and n_trials is not None
        self.env = env
        self.n_steps = n_steps
        self.n_trials = n_trials
        self.layouts = layouts
        self.deterministic = deterministic
        self.maps = maps
        self.demonstrations = demonstrations
        self.seed = seed
        self.keep_actions = keep_actions
        self.fresh_visits = fresh_visits

    def run(self, policy: Policy, progress: Callable[[float], None] | None = None) -> TrialResults:
        """Play all trials.

        Args:
            policy: The policy.
            progress: Called after each step with the share of all steps that is done, 0 to 1; steps of trials that
                ended early count as done.

        Raises:
            ValueError: There are layouts and the environment has no trials, or one ended within the demonstrations.
        """
        has_trials = self._has_trials()
        if self.layouts is not None and not has_trials:
            raise ValueError(
                f"layouts must be None for an environment without trials, got {self.layouts} for {self.env.unwrapped}"
            )
        has_memory = takes_trial_start(policy) and getattr(policy, "has_memory", True)
        if self.itinerary is None or not self.fresh_visits or not has_memory:
            return self._play(policy, has_trials, False, progress)
        carried = self._play(policy, has_trials, False, part_of(progress or no_progress, 0, 2))
        fresh = self._play(policy, has_trials, True, part_of(progress or no_progress, 1, 2))
        return replace(carried, fresh=fresh.metrics)

    def _play(
        self, policy: Policy, has_trials: bool, fresh_visits: bool, progress: Callable[[float], None] | None
    ) -> TrialResults:
        """Play all trials; with `fresh_visits` each visit of an itinerary begins with an empty memory."""
        episodes: list[list[dict[str, float]]] = []
        layouts: list[int] = []
        homes: list[str | None] = []
        maps: dict[str, np.ndarray] = {}
        actions: list[np.ndarray] = []
        for first in range(0, self.n_trials, self.env.num_envs):
            count = min(self.env.num_envs, self.n_trials - first)
            if self.test_set is not None:
                self.env.seed(self.test_set.first_seed + first)
                self.env.set_options({"trial": 0})
            elif has_trials:
                self.env.set_options(trial_options(first, self.env.num_envs, self.layouts))
            else:
                self.env.seed(stream_seed(self.seed) + first)
            records, batch_layouts, batch_homes, maps, taken = self._play_batch(
                policy, first, has_trials, fresh_visits, progress
            )
            if progress is not None:
                progress((first + count) / self.n_trials)
            episodes += records[:count]
            layouts += batch_layouts[:count]
            homes += batch_homes[:count]
            actions += taken[:count]
        demonstrations = self.demonstrations
        shortest = min(len(trial) for trial in episodes)
        if shortest < demonstrations:
            raise ValueError(
                f"trials must go on after their {demonstrations} demonstrations, one ended after {shortest} episodes"
            )
        return TrialResults(
            _metric_tables([trial[demonstrations:] for trial in episodes], len(self.itinerary or "")),
            np.array(layouts, np.int64),
            maps,
            _metric_tables([trial[:demonstrations] for trial in episodes]),
            None if None in homes else np.array(homes, str),
            self.test_set,
            {} if self.test_set is None else _observed(self.env, self.test_set),
            actions,
            self.itinerary,
        )

    def _has_trials(self) -> bool:
        """True if `info` at a reset says whether a trial starts."""
        if isinstance(self.env.unwrapped, TrialVecEnv):
            return True
        self.env.reset()
        return all("trial_start" in info for info in self.env.unwrapped.reset_infos)

    def _play_batch(
        self,
        policy: Policy,
        first: int,
        has_trials: bool,
        fresh_visits: bool,
        progress: Callable[[float], None] | None,
    ) -> tuple[list[list[dict[str, float]]], list[int], list[str | None], dict[str, np.ndarray], list[np.ndarray]]:
        """Play one trial in every environment; return metrics by episode, layouts, homes, maps and kept actions."""
        env = self.env
        count = env.num_envs
        observation = env.reset()
        layouts = [int(info.get("layout_id", 0)) for info in env.unwrapped.reset_infos]
        homes = [info.get("scene_id", info.get("scan")) for info in env.unwrapped.reset_infos]
        batch = _batch_of(env)
        option_names = () if batch is None else batch.task.option_names
        records: list[list[dict[str, float]]] = [[] for _ in range(count)]
        running = np.ones(count, bool)  # environments whose trial of this batch goes on
        steps_left = np.full(count, self.n_steps)  # steps in which the policy still acts
        draws = self.maps and "pose" in env.unwrapped.reset_infos[0]
        paths: list[list[np.ndarray]] = [[self._pose()]] if draws else []
        taken: list[list[np.ndarray]] = [[] for _ in range(count)]
        player = DemonstratedPolicy(policy, env)
        player.demonstrated[:] = self.demonstrations > 0
        options = {"deterministic": self.deterministic, "fresh_visits": fresh_visits}
        for step in play_trials(player, env, observation, **options):
            steps_left -= ~player.demonstrated  # 1 less where the policy itself has acted
            for i in np.flatnonzero(running).tolist() if self.keep_actions else ():
                taken[i].append(step.actions[i])
            for i in np.flatnonzero(step.dones).tolist():
                if running[i] and steps_left[i] >= 0:  # an episode that ends with the last step still counts
                    records[i].append(_episode_metrics(step.infos[i], option_names))
                    # autoreset has begun the next trial
                    running[i] = has_trials and not env.unwrapped.reset_infos[i]["trial_start"]
            if draws and running[0] and steps_left[0] >= 0:
                if step.dones[0]:
                    paths.append([])
                paths[-1].append(self._pose())
            if progress is not None:
                done = count * (1.0 - max(0, int(steps_left.max())) / self.n_steps)  # trials of this batch
                progress(min(1.0, (first + done) / self.n_trials))
            if not (running & (steps_left > 0)).any():
                break
            player.demonstrated = running & (np.array([len(trial) for trial in records]) < self.demonstrations)
        # neither the paths of demonstrations nor that of an unfinished episode
        drawn = self._draw(paths[self.demonstrations : len(records[0])])
        return records, layouts, homes, drawn, [np.array(trial) for trial in taken] if self.keep_actions else []

    def _pose(self) -> np.ndarray:
        """Return the true pose in the first environment; float, (3,)."""
        assert isinstance(self.env, TrialVecEnv)
        return self.env.env.task.info()["pose"][0].copy()

    def _draw(self, paths: list[list[np.ndarray]]) -> dict[str, np.ndarray]:
        """Draw maps of the first and the last episode of `paths`."""
        if not paths:
            return {}
        assert isinstance(self.env, TrialVecEnv)
        chosen = {1: paths[0], len(paths): paths[-1]}
        try:
            return {f"episode {e}": self.env.env.task.draw_map(0, np.stack(path)) for e, path in chosen.items()}
        except NotImplementedError:
            return {}


def evaluate(
    env: str | gym.Env | VecEnv,
    policy: Policy,
    test_set: str | TrialSet = "v0",
    *,
    trials: int | None = None,
    deterministic: bool = False,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
) -> TrialResults:
    """Play the trials of a test set with anything that has `predict`; `print` shows the scores.

    Actions are drawn, as in training: the most likely ones of a policy with a memory often score far less.
    `evaluate_policy` of Stable-Baselines3 takes these by default, and does not know trials.

    Args:
        env: Id. Or an environment that plays the test set, single or N copies, wrapped as the policy needs it; its
            settings must be those of the test set (`find_test_set(id).settings`), but for what is observed
            (`find_test_set(id).free_settings`), and it is not closed.
        policy: A model of this package or of Stable-Baselines3, or any object with such a `predict`. If its `predict`
            has no `trial_start`, its memory lasts an episode; around a `TrialWrapper` that is a trial.
        test_set: Name of a test set of the id (`memenvs test-set ID`), or the set.
        trials: Play only the first trials, for a first estimate; >= 1. None: all.
        deterministic: Take the most likely actions.
        seed: Seed of the actions that are drawn; >= 0. The trials do not depend on it.
        env_kwargs: With an id: settings of what is observed that the policy has learned with, such as
            {"obs": "one_hot", "place": True}.

    Returns:
        Metrics of each episode of each trial.

    Raises:
        TypeError: `env` or `policy` is of another kind.
        ValueError: No such id or test set, the environment does not play it, or the policy does not fit.

    Example:
        >>> print(evaluate("memenvs/Darkroom-Gap-v0", model))
    """
    if not isinstance(env, str | gym.Env | VecEnv):
        raise TypeError(f"env must be an id, a gymnasium.Env or a VecEnv, got {env!r}; call evaluate(env, policy)")
    if not callable(getattr(policy, "predict", None)):
        raise TypeError(
            f"policy must be a model or have predict, got {policy!r}; "
            "load a file by the class that saved it, such as PartialUpdatePPO.load"
        )
    check_int("seed", seed, 0)
    if isinstance(env, str):
        played = find_test_set(env, test_set) if isinstance(test_set, str) else test_set
        check_int("trials", trials, at_most=played.trials, or_none=True)
        for name in env_kwargs or ():
            if name not in free_settings(played):
                raise ValueError(
                    f"env_kwargs must be of what is observed, got {name!r}, which test_set {played.name!r} of "
                    f"{played.id} sets; choose from {list(free_settings(played))}"
                )
        settings = {**played.settings, **(env_kwargs or {})}
        copies = make_vec_env(find_environment(env).id, min(NUM_ENVS, trials or played.trials), **settings)
        try:
            return evaluate(copies, policy, played, trials=trials, deterministic=deterministic, seed=seed)
        finally:
            copies.close()
    if env_kwargs is not None:
        raise ValueError(f"env_kwargs must be None with an environment, which has its settings, got {env_kwargs}")
    env = with_records(env)
    played = _check_test_set(env, test_set)
    check_int("trials", trials, at_most=played.trials, or_none=True)
    if trials is not None:
        played = replace(played, trials=trials)
    acting = getattr(policy, "policy", policy)
    if isinstance(acting, ActingPolicy):
        acting.check_env(env)
    with seeded_actions(acting, seed):
        return TrialEvaluator(env, deterministic=deterministic, fresh_visits=True, test_set=played).run(policy)


def with_records(env: gym.Env | VecEnv) -> VecEnv:
    """Make a `VecEnv` of an environment, which reports return and length of each episode."""
    copies = env if isinstance(env, VecEnv) else DummyVecEnv([lambda: env])
    if is_vecenv_wrapped(copies, VecMonitor) or copies.env_is_wrapped(Monitor)[0]:
        return copies
    return VecMonitor(copies)


@contextmanager
def seeded_actions(policy: Any, seed: int) -> Iterator[None]:
    """Seed what a policy draws its actions from, and restore it afterwards.

    Those of this package have generators; others, as Stable-Baselines3's, draw from torch's global one.
    """
    generators = getattr(policy, "generators", {})
    before = {name: generator.get_state() for name, generator in generators.items()}
    try:
        with torch.random.fork_rng():
            torch.manual_seed(below_limit(seed))
            for generator in generators.values():
                generator.manual_seed(below_limit(seed))
            yield
    finally:
        for name, generator in generators.items():
            generator.set_state(before[name])


def free_settings(test_set: TrialSet) -> tuple[str, ...]:
    """Arguments of `make_vec_env` that an environment may have otherwise than a test set."""
    return (*test_set.free_settings, *OBSERVATION_ARGUMENTS)


def observed_text(observed: Mapping[str, Any]) -> str:
    """Name the settings of what is observed that differ from those of a test set."""
    return "observed with " + ", ".join(f"{name}={value!r}" for name, value in observed.items())


def _observed(env: VecEnv, test_set: TrialSet) -> dict[str, Any]:
    """Settings of what is observed that differ from those of a test set, name -> value."""
    batch, bare = _batch_of(env), env.unwrapped
    assert batch is not None
    changed = changed_settings(batch, test_set.settings, ("threads",))
    observed = {name: value for name, (value, _) in changed.items()}
    if isinstance(bare, TrialVecEnv) and bare.encoder is not None:
        observed["encoder"] = bare.encoder.fingerprint
    if isinstance(bare, TrialVecEnv) and bare.shows_place:
        observed["place"] = True
    return observed


def _batch_of(env: VecEnv) -> TrialVectorEnv | None:
    """Return the batch-native form of an environment, or of the first of its copies; None if it has none."""
    bare = env.unwrapped
    if isinstance(bare, TrialVecEnv):
        return bare.env
    batch = bare.get_attr("batch", 0)[0] if bare.has_attr("batch") else None
    return batch if isinstance(batch, TrialVectorEnv) else None


def itinerary_of(env: VecEnv) -> str | None:
    """Return the itinerary of the trials of an environment; None for trials in one layout."""
    batch = _batch_of(env)
    return None if batch is None else batch.itinerary


def _check_test_set(env: VecEnv, test_set: str | TrialSet) -> TrialSet:
    """Return the test set of an environment, checked."""
    batch = _batch_of(env)
    if batch is None:
        raise ValueError(f"test_set needs an environment of memenvs, got {type(env.unwrapped).__name__}")
    if isinstance(test_set, str):
        return playable_test_set(batch, test_set)
    test_set.check_env(batch)
    return test_set


def _episode_metrics(info: dict[str, Any], option_names: Sequence[str]) -> dict[str, float]:
    """Metrics of an episode from its final info, with its return and length."""
    metrics = metric_values(info, option_names)
    episode = info.get("episode", {})
    if episode:
        metrics |= {"return": float(episode["r"]), "length": float(episode["l"])}
    return metrics


def _metric_tables(trials: list[list[dict[str, float]]], at_least: int = 0) -> dict[str, np.ndarray]:
    """Name -> float64, (trials, E), of the metrics of each episode of each trial; NaN where there is none.

    E is `at_least` or more: a task may end all trials before their itinerary does.
    """
    longest = max(at_least, *map(len, trials))
    names = sorted({name for trial in trials for episode in trial for name in episode})
    tables = {name: np.full((len(trials), longest), np.nan) for name in names}
    for i, trial in enumerate(trials):
        for e, episode in enumerate(trial):
            for name, value in episode.items():
                tables[name][i, e] = value
    return tables


def _mean(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _stderr(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
