"""Played trials, hashes, ignored actions, whole certificates, test sets and commands."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs import registry
from memenvs.certificate import DATA, PolicyRow, Training, read_certificate, write_certificate
from memenvs.certificates.engine import certify, check_hash
from memenvs.certificates.episodes import ACTIONS, hash_episodes, ignored_actions
from memenvs.certificates.playing import DrawnPlayer, OraclePlayer, play_scores, played_steps
from memenvs.certificates.test_sets import FIRST_SEED, find_split, find_test_set
from memenvs.cli.certify import facts
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec, find_environment
from memenvs.resets import stream_seed
from memenvs.rules import make_rule
from memenvs.task import Observation
from tests.certificates.cue import registered
from tests.test_cli import call, refuse

#: Families whose episodes are hashed, and whose scores are played, on every change; the others take seconds each.
HASHED, SCORED = ("darkroom", "four_boxes", "visual_match"), ("visual_match",)


def certified(often: tuple[str, ...]) -> list[Any]:
    """A parameter of each id, nightly but for those of some families."""
    marks = {True: pytest.mark.slow, False: pytest.mark.nightly}
    return [pytest.param(spec, id=spec.name, marks=marks[spec.family in often]) for spec in ENVIRONMENTS]


def test_rules_may_see_other_observations_and_play_no_other_task() -> None:
    with registered(defaults={"trial_episodes": 1, "delay": 3}) as spec:
        registry._ROWS[spec.id] = replace(spec, rule_settings={"delay": 2})
        with pytest.raises(ValueError, match="has delay=3, got an environment with 2"):
            certify(spec.id, quick=True)
        registry._ROWS[spec.id] = replace(spec, rule_settings={"threads": 2})
        made = certify(spec.id, quick=True)
    assert made.to_json()["rule_settings"] == {"threads": 2} and "threads" not in made.settings
    assert "all policies played these episodes with threads=2, as no rule" in "\n".join(facts(made))


def slow_hash(spec: EnvironmentSpec) -> str:
    """The hash of an id, by one environment and a plain loop; actions are drawn without masks."""
    assert spec.task is not None
    env = TrialEnv(spec.task, **spec.defaults)
    whole = hashlib.sha256()
    episodes = min(10, env.trial_episodes or 10)
    for k in range(100):
        trial, episode = divmod(k, episodes)
        sha = hashlib.sha256()
        observation, _ = env.reset(seed=trial, options={"trial": 0, "episode_index": episode})
        draws = np.random.default_rng([ACTIONS, trial, episode]).random(env.max_episode_steps)

        def add(sha: Any, observation: dict[str, Any]) -> None:
            for key in sorted(observation):
                sha.update(key.encode() + np.asarray(observation[key]).tobytes())

        add(sha, observation)
        done, step = False, 0
        while not done:
            observation, reward, terminated, truncated, _ = env.step(int(draws[step] * env.action_space.n))
            sha.update(np.float64(reward).tobytes() + bytes([terminated, truncated]))
            add(sha, observation)
            done, step = terminated or truncated, step + 1
        whole.update(sha.digest())
    return f"sha256:{whole.hexdigest()}"


def test_the_hash_changes_with_a_reward_and_not_with_threads() -> None:
    with registered(defaults={"trial_episodes": 3}) as spec:
        first = hash_episodes(spec)
        assert first == hash_episodes(spec, num_envs=3) == slow_hash(spec)
        assert first == hash_episodes(replace(spec, defaults={"trial_episodes": 3, "threads": 3}))
        changed = replace(spec, defaults={"trial_episodes": 3, "reward": 1.0 + 1e-12})
        assert hash_episodes(changed) != first


def test_ignored_actions_are_tried() -> None:
    for settings, expected in (
        ({"trial_episodes": 1}, ("proved", "none")),
        ({"trial_episodes": 2}, ("proved", "world")),
        ({"trial_episodes": 1, "delay": 0}, ("none", "world")),
    ):
        with registered() as spec:
            env = TrialVectorEnv(spec.task, 4, autoreset_mode="Disabled", **settings)  # type: ignore[arg-type]
            assert ignored_actions(env, range(8)) == expected
    message = "actions at phase 0 must be ignored, those in episode 0 of trial 0 of"
    leaks = {"trial_episodes": 1, "leaks": True}
    with registered(defaults=leaks) as spec, pytest.raises(ValueError, match=message):
        certify(spec.id, quick=True)
    for id, expected in (("Darkroom-v0", ("none", "world")), ("Darkroom-Gap-v0", ("proved", "world"))):
        row = find_environment(id)
        env = TrialVectorEnv(row.task, 2, autoreset_mode="Disabled", **row.defaults)  # type: ignore[arg-type]
        assert ignored_actions(env, range(2)) == expected


@pytest.mark.slow
def test_certificates_of_the_toy_task() -> None:
    for delay, verdict in ((20, "long"), (15, "short"), (0, "none")):
        with registered(defaults={"trial_episodes": 1, "delay": delay}) as spec:
            made = certify(spec.id, quick=True)
            assert (made.verdict, made.trials, made.is_quick) == (verdict, 40, True)
            means = {row.name: row.mean for row in made.rows}
            assert (means["ideal"], means["oracle"]) == (1.0, 1.0)
            assert delay == 0 or 0.3 < means["random"] < 0.7
            assert means["ideal, window 16"] == (1.0 if delay < 16 else means["memoryless"])
            assert made.steps_back is not None and made.steps_back.median == made.steps_back.high == delay
            curve = [point.mean for point in made.horizon]
            if delay == 20:  # a wipe in 256 steps hits a delay of 20 in 1 of 13 episodes
                assert curve[2] < 0.8 < curve[4]
            assert certify(spec.id, quick=True) == made


@pytest.mark.slow
def test_test_sets() -> None:
    first = find_test_set("Darkroom-v0")
    assert first.settings == {"trial_episodes": 10, "split": "test"}
    assert (first.trials, first.episodes, first.seeds[0]) == (200, 10, FIRST_SEED)
    assert first.hash == find_test_set("memenvs/Darkroom-v0", "v0").hash != find_test_set("Darkroom-Gap-v0").hash
    assert max(stream_seed(seed) for seed in range(10_000)) < FIRST_SEED and first.seeds[-1] < 2**31
    assert replace(first, trials=199).hash != first.hash
    assert replace(first, episode_hash="sha256:" + 64 * "0").hash == first.hash  # of a certificate that is made later
    expected = {"VisualMatch-v0": None, "VLN-R2R-v0": "val_unseen", "RoomBallet-MultiTask-v0": None}
    assert {name: find_split(find_environment(name)) for name in expected} == expected
    with pytest.raises(ValueError, match="CartPole-v1 has not: it is no task of memenvs"):
        find_test_set("CartPole-v1")
    with registered(defaults={}) as spec, pytest.raises(ValueError, match="neither trial_episodes nor trial_steps"):
        find_test_set(spec.id)


@pytest.mark.parametrize("spec", ENVIRONMENTS, ids=lambda spec: spec.name)
def test_shipped_certificates_are_of_their_ids(spec: EnvironmentSpec) -> None:
    made = spec.load_certificate()
    assert made is not None and made.test_set == "v0"
    trials = find_test_set(spec.id, trials=made.trials)
    assert json.loads(json.dumps(trials.settings)) == made.settings
    assert made.trials == 200 and made.rule_settings == spec.rule_settings
    named = {row.name for row in made.rows if row.how == "played"}
    assert made.row("random").mean < spec.random_below and made.row("oracle").mean >= spec.oracle_at_least
    assert named >= {"random", "oracle", *spec.policies, *(f"ideal, window {k}" for k in (1, 4, 16, 64))}


@pytest.mark.parametrize("spec", certified(HASHED))
def test_an_id_whose_episodes_change_needs_a_new_version(spec: EnvironmentSpec) -> None:
    made = spec.load_certificate()
    assert made is not None
    check_hash(made)


@pytest.mark.parametrize("spec", certified(SCORED))
def test_shipped_scores_are_played_again(spec: EnvironmentSpec) -> None:
    made = spec.load_certificate()
    assert made is not None
    if spec.family in SCORED:  # on every change some rows
        trials = find_test_set(spec.id, trials=made.trials)
        env = TrialVectorEnv(spec.task, 20, autoreset_mode="Disabled", **{**trials.settings, **spec.rule_settings})
        players = {name: make_rule(spec.policies[name], env.task) for name in ("memoryless", "ideal")}
        players["oracle"] = OraclePlayer(env)
        rows = {name: play_scores(env, player, trials.seeds, spec.score_key) for name, player in players.items()}
        env.close()
    else:
        rows = {row.name: row for row in certify(spec.id).rows}
    for name, row in rows.items():
        assert row.mean == pytest.approx(made.row(name).mean, rel=1e-9), name
        assert row.stderr == pytest.approx(made.row(name).stderr, rel=1e-6, abs=1e-12), name


def test_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with registered() as spec:
        out = tmp_path / "cue.json"
        text = call(capsys, "certify", spec.id, "--quick", "--out", str(out))
        assert "toy/Cue-v0: long" in text and "40 trials (quick: too few to ship) of test set v0" in text
        assert "lies 20 steps back" in text and "bits to remember: 1" in text and "no policy can leave" in text
        lines = {line[:16].strip(): line.split()[-1] for line in text.splitlines()}
        assert (lines["ideal"], lines["memoryless"], lines["ideal, window 64"]) == ("1.00", "0.00", "1.00")
        made = read_certificate(out)
        document = json.loads(call(capsys, "certify", spec.id, "--quick", "--json"))
        assert document == json.loads(out.read_text()) and document["verdict"] == "long"
        rows = tmp_path / "rows.json"
        training = Training(recipe="ppo", budget=1000, seeds=(0,))
        about = {"name": "trained, window 16", "way": "window", "window": 16, "how": "trained", "training": training}
        row = PolicyRow(mean=0.9, stderr=0.1, **about)
        listed = made.with_rows([row]).to_json()["rows"][-1:]
        rows.write_text(json.dumps({"id": spec.id, "test_set": "v0", "episode_hash": None, "rows": listed}))
        text = call(capsys, "certify", spec.id, "--rows", str(rows), "--certificate", str(out))
        assert "toy/Cue-v0: short" in text and "trained, window 16 (1,000 steps)" in text
        table = text.splitlines()[2 : 3 + len(made.rows) + 1]
        assert len({len(line) for line in table}) == 1  # columns
        sets = json.loads(call(capsys, "test-set", spec.id, "--json"))
        assert sets["test_sets"] == [find_test_set(spec.id).to_json()]
        assert "200 trials of 1 episodes" in call(capsys, "test-set", spec.id)


def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "CartPole-v1 cannot be certified: it is no task" in refuse(capsys, "certify", "CartPole-v1")
    shipped = str(DATA / "Darkroom-v0.json")
    text = refuse(capsys, "certify", "Darkroom-v0", "--quick", "--out", shipped)
    assert "argument --out: certificates that are shipped have 200 trials" in text
    assert "--certificate: goes with --rows" in refuse(capsys, "certify", "Darkroom-v0", "--certificate", "x.json")
    with registered(policies={}) as spec:
        text = refuse(capsys, "certify", spec.id)
        assert "toy/Cue-v0 cannot be certified: its scores are not declared, it lacks a rule 'ideal'" in text
    with registered(policies={"ideal": "tests.test_rules:WithoutChoose"}) as spec:
        assert "tests.test_rules:WithoutChoose must define choose" in refuse(capsys, "certify", spec.id, "--quick")
    with registered(task="tests.bare_task:Bare", policies={}) as spec:
        text = refuse(capsys, "certify", spec.id)
        assert "it lacks an oracle (oracle_actions of its task) and a rule 'ideal'" in text
    with registered() as spec:
        made = replace(certify(spec.id, quick=True), episode_hash="sha256:" + 64 * "0")
        write_certificate(made, tmp_path / "old.json")
        rows = {"id": spec.id, "test_set": "v0", "episode_hash": made.episode_hash, "rows": made.to_json()["rows"][:1]}
        (tmp_path / "rows.json").write_text(json.dumps(rows))
        given = ("--rows", str(tmp_path / "rows.json"), "--certificate", str(tmp_path / "old.json"))
        text = refuse(capsys, "certify", spec.id, *given)
        assert "the certificate of toy/Cue-v0 is of other episodes" in text and "needs a new version" in text
        text = refuse(capsys, "certify", spec.id, "--quick", "--rows", str(tmp_path / "rows.json"))
        assert "episode_hash must be 'sha256:" in text and "that of the certificate" in text
        (tmp_path / "rows.json").write_text(json.dumps({**rows, "id": "toy/Cue-v1"}))
        text = refuse(capsys, "certify", spec.id, "--quick", "--rows", str(tmp_path / "rows.json"))
        assert "id must be 'toy/Cue-v0', that of the certificate, got 'toy/Cue-v1'" in text


def darkroom(num_envs: int, **settings: object) -> TrialVectorEnv:
    given = {"trial_episodes": 3, "size": 4, "max_episode_steps": 7, **settings}
    return TrialVectorEnv(Darkroom, num_envs, autoreset_mode="Disabled", **given)


class Still:
    """Stays where it is for ever."""

    def __init__(self, env: TrialVectorEnv) -> None:
        self.starts: list[tuple[list[bool], list[bool]]] = []
        self._count = env.num_envs

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        self.starts.append((trial_start.tolist(), episode_start.tolist()))

    def actions(self, observation: Observation) -> np.ndarray:
        return np.full(self._count, 4)

    def steps_back(self) -> np.ndarray:
        return np.arange(self._count)


@pytest.mark.parametrize("num_envs", [1, 2, 5])
def test_the_oracle_by_hand(num_envs: int) -> None:
    """It moves |x| + |y| steps to the goal, and is paid from the last of them on."""
    env = darkroom(num_envs)
    seeds = range(30, 35)
    expected = []
    for seed in seeds:
        single = TrialEnv(Darkroom, trial_episodes=3, size=4, max_episode_steps=7)
        expected.append(7 - int(single.reset(seed=seed)[1]["goal"].sum()) + 1)
    played = play_scores(env, OraclePlayer(env), seeds, "return")
    assert played.scores.tolist() == expected
    assert played.mean == np.mean(expected)
    assert played.stderr == pytest.approx(np.std(expected, ddof=1) / np.sqrt(5))
    assert len(played.steps_back) == 0


def test_trials_and_starts() -> None:
    env = darkroom(2)
    player = Still(env)
    steps = list(played_steps(env, player, [5, 6, 7]))
    assert len(steps) == 2 * 3 * 7  # the second environment keeps pace in the second trial of the first
    assert [step.trial.tolist() for step in steps[::21]] == [[0, 1], [2, -1]]
    assert [step.episode[0] for step in steps] == 2 * (7 * [0] + 7 * [1] + 7 * [2])
    begins = [k for k, (trial, _) in enumerate(player.starts) if trial[0]]
    assert begins == [0, 21] and sum(episode[0] for _, episode in player.starts) == 6
    assert [step.info["seed"][0] for step in steps[::21]] == [5, 7]
    assert {int(step.info["trial_id"][0]) for step in steps} == {0}


def test_episodes_after_the_first_count() -> None:
    env = darkroom(2)
    played = play_scores(env, Still(env), [1, 2, 3, 4], "num_steps")
    assert played.scores.tolist() == [7.0] * 4
    assert played.steps_back.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]  # two of each of four trials
    single = darkroom(2, trial_episodes=1)
    assert len(play_scores(single, Still(single), [1, 2, 3, 4], "num_steps").steps_back) == 4


def test_an_episode_that_the_end_of_the_trial_cuts_does_not_count() -> None:
    env = darkroom(1, trial_episodes=None, trial_steps=17)
    assert play_scores(env, Still(env), [1, 2], "num_steps").scores.tolist() == [7.0, 7.0]
    env = darkroom(1, trial_episodes=None, trial_steps=13)
    with pytest.raises(ValueError, match="trials must have an episode after the first, got none in trial 0"):
        play_scores(env, Still(env), [1, 2], "num_steps")
    with pytest.raises(ValueError, match="score_key must be a key of info, got 'points'"):
        play_scores(env, Still(env), [1, 2], "points")


def test_drawn_actions_follow_from_trial_and_episode_alone() -> None:
    def actions(num_envs: int) -> dict[tuple[int, int], list[int]]:
        env = darkroom(num_envs)
        found: dict[tuple[int, int], list[int]] = {}
        for step in played_steps(env, DrawnPlayer(env, 3), range(6)):
            for i in np.flatnonzero(step.trial >= 0):
                found.setdefault((int(step.trial[i]), int(step.episode[i])), []).append(int(step.actions[i]))
        return found

    one, three = actions(1), actions(3)
    assert one == three and len(one) == 18
    assert len({tuple(each) for each in one.values()}) == 18
    counts = np.bincount(np.concatenate(list(one.values())), minlength=5)
    assert counts.sum() == 126 and counts.min() > 10
