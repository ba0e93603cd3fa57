"""Evaluation of trials that lead to other homes and back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.itinerary import itinerary_scores
from memenvs.agents.experiments.itinerary_report import add_itineraries, itinerary_figure
from memenvs.agents.experiments.play import OraclePolicy, RandomPolicy, RulePolicy
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator
from memenvs.agents.presets import find_preset
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env
from memenvs.cli import main
from memenvs.core import TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.darkroom.explorer import DarkroomExplorer
from memenvs.darkroom.scripted_sweep import Sweep
from memenvs.task import Options
from tests.test_cli import call, refuse

DARKROOM: dict[str, Any] = {"size": 4, "split": "all", "max_episode_steps": 12}


def test_scores_by_hand() -> None:
    carried = np.array([[0.2, 0.6, 0.8, 0.1, 0.3, 0.9, 0.5], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    fresh = np.array([[0.2, 0.6, 0.8, 0.5, 0.6, 0.9, 0.0], [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]])
    scores = itinerary_scores(carried, fresh, "AAABBBA")
    # First trial: fresh minus carried in B is .4, .3, 0; the last episode in A before was .8, and .5 after.
    np.testing.assert_allclose(scores["interference"], [0.7 / 3, -1 / 3])
    np.testing.assert_allclose(scores["recovery"], [0.4 - 0.0, -1.0])
    np.testing.assert_allclose(scores["retention"], [0.3, 0.0])
    # Two returns, each compared with as many episodes at the end of the visit before.
    scores = itinerary_scores(carried, None, "AABAABB")
    assert scores.keys() == {"retention"}
    home, other = (0.2 + 0.6 - 0.1 - 0.3) / 2, 0.8 - 0.9
    np.testing.assert_allclose(scores["retention"][0], (home + other) / 2)
    assert itinerary_scores(carried, fresh, "AAAAAAA") == {}
    assert itinerary_scores(carried, fresh, "AAAAAAB").keys() == {"interference"}  # one episode has no second part


def explorer(env: Any) -> RulePolicy:
    return RulePolicy(DarkroomExplorer(env.env.task))


def test_an_emptied_memory_plays_each_visit_as_a_trial_of_its_own() -> None:
    """The explorer draws nothing: in the second room it must do as in a trial that begins there."""
    env = make_vec_env("memenvs/Darkroom-v0", 5, seed=3, itinerary="AAABBBAA", **DARKROOM)
    results = TrialEvaluator(env, n_trials=10, fresh_visits=True).run(explorer(env))
    begins = make_vec_env("memenvs/Darkroom-v0", 5, seed=3, itinerary="BBB", **DARKROOM)
    alone = TrialEvaluator(begins, n_trials=10).run(explorer(begins)).metrics["return"]
    carried, fresh = results.metrics["return"], results.fresh["return"]
    assert carried.shape == fresh.shape == (10, 8)
    np.testing.assert_array_equal(fresh[:, 3:6], alone)
    np.testing.assert_array_equal(fresh[:, :3], carried[:, :3])
    np.testing.assert_array_equal(fresh[:, 6:], fresh[:, :2])  # without a memory of A it searches A anew
    assert (carried[:, 3:6] != alone).any()
    mean, stderr = results.itinerary_scores("return")["interference"]
    paired = (fresh - carried)[:, 3:6].mean(1)
    assert (mean, stderr) == pytest.approx((paired.mean(), paired.std(ddof=1) / 10**0.5))
    data = json.loads(json.dumps(results.to_json()))
    assert data["itinerary"]["letters"] == "AAABBBAA"
    assert data["itinerary"]["metrics"]["return"]["fresh"]["mean"] == pytest.approx(fresh.mean(0))
    assert "B 4 to 6" in str(results) and "interference" in str(results)


class Tour(Darkroom):
    """A Darkroom whose task ends the trial with the third episode."""

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        super().begin_episode(i, rng, options)
        self.episode = options["episode_index"]

    def ends_trial(self, i: int) -> bool:
        return self.episode == 2


def test_a_task_may_end_a_trial_before_its_itinerary() -> None:
    batch = TrialVectorEnv(Tour, 2, itinerary="AABAA", autoreset_mode="SameStep", **DARKROOM)
    env = TrialVecEnv(batch)
    env.seed(3)
    results = TrialEvaluator(env, n_trials=4, fresh_visits=True).run(explorer(env))
    assert np.isfinite(results.metrics["return"]).sum(0).tolist() == [4, 4, 4, 0, 0]
    finite = {name: np.isfinite(mean) for name, (mean, _) in results.itinerary_scores("return").items()}
    assert finite == {"interference": True, "retention": False}
    assert len(results.to_json()["metrics"]["return"]["mean"]) == 3 and "A 1 to" in str(results)


def test_no_line_hides_a_letter_of_the_figure() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=3, itinerary="AABBA", **DARKROOM)
    results = TrialEvaluator(env, n_trials=4).run(OraclePolicy(env))
    figure = itinerary_figure({"oracle": [results.to_json()]}, "return", "AABBA")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["A", "B", "A"]
    lowest = min(text.get_window_extent().y0 for text in axes.texts)
    assert lowest > axes.transData.transform((1, results.metrics["return"].mean(0).max()))[1] + 3


def test_policies_without_a_memory_are_played_once() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=3, itinerary="AB", **DARKROOM)
    for policy in (RandomPolicy(env.action_space, 0), RulePolicy(Sweep(env.env.task))):
        results = TrialEvaluator(env, n_trials=2, fresh_visits=True).run(policy)
        assert results.fresh == {} and results.itinerary_scores("return") == {}
    plain = TrialEvaluator(make_vec_env("memenvs/Darkroom-v0", 2, seed=3, **DARKROOM), 24, 2, fresh_visits=True)
    assert "itinerary" not in plain.run(RandomPolicy(env.action_space, 0)).to_json()
    for settings, message in (
        ({"n_steps": 24}, "n_steps must be None with an itinerary, whose trials are played whole, got 24"),
        ({"demonstrations": 1}, "demonstrations must be 0 with an itinerary, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEvaluator(env, n_trials=2, **settings)


def test_runs_with_other_letters_are_shown_apart(tmp_path: Path) -> None:
    """Under one --name: the second run has no row and no curve in the figure of the first."""
    runs = []
    for seed, itinerary in enumerate(("ABA", "AABB")):
        env = make_vec_env("memenvs/Darkroom-v0", 2, seed=3, itinerary=itinerary, **DARKROOM)
        results = TrialEvaluator(env, n_trials=2, fresh_visits=True).run(explorer(env))
        with RunDirectory(tmp_path / itinerary, replace(find_preset("ci-smoke"), seed=seed)) as run:
            (run.path / "itinerary_mine.json").write_text(json.dumps({"agent": results.to_json()}))
        runs.append(run)
    report = Report("Two runs", None)
    add_itineraries(report, runs)
    page = report.write(tmp_path / "report.html").read_text()
    assert [page.count(f"In other homes and back: {letters}") for letters in ("ABA", "AABB")] == [1, 1]
    assert page.count("<td>1</td>") == 2 and "<td>2</td>" not in page


@pytest.mark.slow
def test_the_command_and_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run of seconds, evaluated with an itinerary, and one that was trained with it."""
    config = with_overrides(find_preset("ci-smoke"), [("eval_trials", 4)])
    folder = tmp_path / "run"
    assert main(["train", "ci-smoke", "--out", str(folder), "--eval_trials", "4", "--total_steps", "1024"]) == 0
    capsys.readouterr()
    text = call(capsys, "evaluate", str(folder), "--itinerary", "AABBA")
    assert f"agent      {config.score}: A " in text and "; B " in text and "interference" in text
    data = json.loads((folder / "itinerary_AABBA.json").read_text())
    assert data["agent"]["itinerary"]["metrics"]["return"].keys() == {"interference", "recovery", "retention", "fresh"}
    assert data["oracle"]["itinerary"]["metrics"]["return"].keys() == {"retention"}
    call(capsys, "report", str(folder))
    page = (folder / "report.html").read_text()
    assert "In other homes and back: AABBA" in page and (folder / "itinerary_AABBA.png").is_file()
    row = next(line for line in page.split("<tr>") if "<td>agent</td><td>1</td>" in line)
    expected = f"{data['agent']['itinerary']['metrics']['return']['interference']['mean']:.3g}"
    assert f"<td>{expected}" in row
    for arguments, message in (
        (("--itinerary", "aab"), "itinerary must be None or capital letters"),
        (("--itinerary", "AB", "--steps", "9"), "--itinerary has trials of its own"),
        (("--itinerary", "AB", "--name", "evaluation"), "evaluation.json is for the run's own trials"),
    ):
        assert message in refuse(capsys, "evaluate", str(folder), *arguments)
    trained = tmp_path / "trained"
    arguments = ["--eval_trials", "4", "--total_steps", "1024", "--env_kwargs.itinerary", "ABA"]
    assert main(["train", "ci-smoke", "--out", str(trained), *arguments]) == 0
    capsys.readouterr()
    call(capsys, "evaluate", str(trained))
    call(capsys, "report", str(trained))
    assert "In other homes and back: ABA" in (trained / "report.html").read_text()
    steps = "--steps", "9", "--name", "short"
    assert "--steps must be left out with the run's itinerary 'ABA'" in refuse(capsys, "evaluate", str(trained), *steps)
    call(capsys, "evaluate", str(trained), *steps, "--eval_kwargs.itinerary", "null")
    assert not (trained / "in_context.png").exists()
