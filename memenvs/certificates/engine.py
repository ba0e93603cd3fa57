"""The engine that makes certificates: all rules of an id in the trials of its test set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np

from memenvs.certificate import Certificate, HorizonPoint, PolicyRow, PolicyWay, StepsBack, rows_from_json
from memenvs.certificates.episodes import hash_episodes, ignored_actions
from memenvs.certificates.playing import DrawnPlayer, OraclePlayer, Player, TrialScores, play_scores
from memenvs.certificates.test_sets import NUM_TRIALS, TrialSet, find_test_set
from memenvs.core import TrialVectorEnv
from memenvs.json_records import read_json
from memenvs.progress import Progress, no_progress, part_of
from memenvs.registry import EnvironmentSpec, find_environment
from memenvs.rules import Window, Wiped, make_rule
from memenvs.task import defines, load_task

#: Trials of a quick certificate.
QUICK_TRIALS = 40
#: Windows of the ideal rule, and steps between two wipes of its memory.
WINDOWS, WIPES = (1, 4, 16, 64), (1, 4, 16, 64, 256)
IDEAL = "ideal"
#: Trials in which other actions are tried where they are ignored.
IGNORED_TRIALS = 10
#: Keep the random policy and the first wipes apart from other uses of a seed.
_RANDOM, _WIPES = 20, 21


@dataclass(frozen=True)
class _Entry:
    """A policy to play: its name, way and window, and a function that makes it."""

    name: str
    way: PolicyWay
    window: int | None
    make: Callable[[], Player]


def certify(id: str, *, quick: bool = False, progress: Progress = no_progress) -> Certificate:
    """Make the certificate of an id.

    All its rules, its random policy and its oracle play its test set.

    Args:
        id: The id; the namespace may be left out.
        quick: Play 40 trials in place of 200.
        progress: Called with the share of the work that is done.

    Raises:
        ValueError: There is no such id, it has no rule "ideal" or no oracle, its trials never end, or actions that are
            declared to be ignored change something.
        RuleError: A rule cannot observe what it needs.
    """
    spec = find_environment(id)
    check_declared(spec)
    trials = find_test_set(spec.id, trials=QUICK_TRIALS if quick else NUM_TRIALS)
    hashing, playing = (_between(progress, *ends) for ends in ((0.0, 0.05), (0.05, 1.0)))
    episode_hash = hash_episodes(spec, progress=hashing)
    env = trials.make_env(spec.rule_settings)
    try:
        ignored_steps, channel = _ignored(spec, trials)
        bits = make_rule(spec.policies[IDEAL], env.task).bits
        entries, wipes = _entries(spec, env), _wipes(spec, env)
        played: dict[str, TrialScores] = {}
        for k, entry in enumerate((*entries, *wipes.values())):
            part = part_of(playing, k, len(entries) + len(wipes))
            played[entry.name] = play_scores(env, entry.make(), trials.seeds, spec.score_key, part)
    finally:
        env.close()
    back = played[IDEAL].steps_back
    return Certificate(
        id=spec.id,
        settings=trials.settings,
        split=trials.split,
        test_set=trials.name,
        trials=trials.trials,
        score_key=spec.score_key,
        zero="random" if isinstance(env.single_action_space, gym.spaces.Discrete) else "memoryless",
        rows=tuple(_row(entry, played[entry.name]) for entry in entries),
        horizon=tuple(
            HorizonPoint(steps=steps, mean=played[entry.name].mean, stderr=played[entry.name].stderr)
            for steps, entry in wipes.items()
        ),
        steps_back=None
        if not len(back)
        else StepsBack(**{name: float(np.quantile(back, q)) for name, q in _QUANTILES.items()}),
        bits=bits,
        ignored_steps=ignored_steps,
        channel=channel,
        episode_hash=episode_hash,
        command=f"memenvs certify {spec.name if spec.namespace == 'memenvs' else spec.id}{' --quick' * quick}",
        is_quick=quick,
        rule_settings=spec.rule_settings,
    )


_QUANTILES = {"median": 0.5, "low": 0.1, "high": 0.9}


def check_declared(spec: EnvironmentSpec) -> None:
    """Check that an id declares what its scores are compared with.

    Raises:
        ValueError: It is no task of memenvs, or has no oracle or no rule "ideal".
    """
    if spec.task is None:
        raise ValueError(f"{spec.id} cannot be certified: it is no task of memenvs (BatchTask)")
    missing = []
    if not defines(load_task(spec.task), "oracle_actions"):
        missing.append("an oracle (oracle_actions of its task)")
    if IDEAL not in spec.policies:
        missing.append('a rule \'ideal\' (policies={"ideal": "module:Class"} in `register`, see memenvs.rules.Rule)')
    if missing:
        raise ValueError(
            f"{spec.id} cannot be certified: its scores are not declared, it lacks {' and '.join(missing)}"
        )


def check_hash(certificate: Certificate) -> None:
    """Check that the episodes of an id are those that were certified.

    Raises:
        ValueError: The hash of its episodes is another one.
    """
    got = hash_episodes(find_environment(certificate.id))
    if got != certificate.episode_hash:
        raise ValueError(
            f"the certificate of {certificate.id} is of other episodes: it has the episode_hash "
            f"{certificate.episode_hash}, those of now have {got}; an id whose episodes change needs a new version"
        )


def read_rows(path: Path, certificate: Certificate) -> tuple[PolicyRow, ...]:
    """Read rows that were measured elsewhere, such as those of trained attacks.

    Args:
        path: JSON file with `id`, `test_set`, `episode_hash` or null, and `rows` as a certificate has them.
        certificate: The certificate that they go into.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, or of another id, test set or episode hash.
    """
    record = read_json(path)
    for name in ("id", "test_set", "episode_hash"):
        value, expected = record.get(name), getattr(certificate, name)
        if name == "episode_hash" and value is None:
            continue
        if record[name].text() != expected:
            raise record[name].error(f"{expected!r}, that of the certificate")
    return rows_from_json(record["rows"])


def _entries(spec: EnvironmentSpec, env: TrialVectorEnv) -> list[_Entry]:
    """The policies of the rows of a certificate."""
    entries = [_Entry("random", "present", 1, lambda: DrawnPlayer(env, _RANDOM))]
    for name, path in spec.policies.items():
        rule = make_rule(path, env.task)
        entries.append(_Entry(name, rule.way, rule.window, partial(make_rule, path, env.task)))
    for window in WINDOWS:
        way: PolicyWay = "present" if window == 1 else "window"
        entries.append(_Entry(f"ideal, window {window}", way, window, partial(_windowed, spec, env, window)))
    entries.append(_Entry("oracle", "oracle", None, lambda: OraclePlayer(env)))
    return entries


def _wipes(spec: EnvironmentSpec, env: TrialVectorEnv) -> dict[int, _Entry]:
    """The policies of the horizon curve, by the steps between two wipes."""
    return {steps: _Entry(f"wiped {steps}", "ideal", steps, partial(_wiped, spec, env, steps)) for steps in WIPES}


def _windowed(spec: EnvironmentSpec, env: TrialVectorEnv, window: int) -> Player:
    return Window(make_rule(spec.policies[IDEAL], env.task), window)


def _wiped(spec: EnvironmentSpec, env: TrialVectorEnv, steps: int) -> Player:
    rng = np.random.default_rng([_WIPES, steps])
    return Wiped(make_rule(spec.policies[IDEAL], env.task), steps, env.num_envs, rng)


def _row(entry: _Entry, scores: TrialScores) -> PolicyRow:
    return PolicyRow(name=entry.name, way=entry.way, window=entry.window, mean=scores.mean, stderr=scores.stderr)


def _ignored(spec: EnvironmentSpec, trials: TrialSet) -> tuple:
    assert spec.task is not None
    env = TrialVectorEnv(spec.task, IGNORED_TRIALS, autoreset_mode="Disabled", **trials.settings)
    try:
        return ignored_actions(env, trials.seeds[:IGNORED_TRIALS])
    finally:
        env.close()


def _between(progress: Progress, low: float, high: float) -> Progress:
    """Progress of the part of the work from `low` to `high`."""
    return lambda share: progress(low + share * (high - low))
