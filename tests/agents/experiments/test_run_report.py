"""Reports of several runs: seeds together, one task, means and intervals."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, t, trim_mean

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import METRICS, RunDirectory
from memenvs.agents.experiments.evaluation_files import read_demonstrated, read_evaluation
from memenvs.agents.experiments.report import BASELINES, in_context_figure
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.seed_groups import check_same_task, group_by_settings
from memenvs.agents.experiments.statistics import (
    bootstrap_interval,
    format_digits,
    format_mean,
    format_percent,
    format_runs,
    interquartile_mean,
    mean_and_margin,
    probability_of_improvement,
    seed_interval,
    stratified_interval,
)
from memenvs.agents.presets import find_preset
from memenvs.cli import main
from memenvs.files import is_side_file
from tests.agents.small_ballet import SMALL_BALLET
from tests.side_files import put_side_files

SMALL = find_preset("ci-smoke")


def evaluated(value: float, episodes: int) -> dict[str, Any]:
    """An evaluation whose score rises by 1 from episode to episode."""
    mean = [value + i for i in range(episodes)]
    curve = {"mean": mean, "stderr": [0.5] * episodes, "stderr_clustered": [0.5] * episodes, "count": [4] * episodes}
    return {"trials": 4, "layouts": 4, "demonstrations": {}, "metrics": {"return": curve}}


def make_run(folder: Path, config: RunConfig, value: float, episodes: int = 6) -> Path:
    """A finished run with a log and an evaluation."""
    with RunDirectory(folder, config):
        results = {
            "agent": evaluated(value, episodes),
            "random": evaluated(0, episodes),
            "oracle": evaluated(90, episodes),
        }
        (folder / "evaluation.json").write_text(json.dumps(results))
        rows = [f"{step},rollout/ep_rew_mean,{value * step}" for step in (10 + config.seed, 20, 30)]
        (folder / METRICS).write_text("\n".join(["step,name,value", *rows, ""]))
    return folder


def table(page: str) -> list[list[str]]:
    """Cells of the first table of a page."""
    rows = re.findall(r"<tr>(.*?)</tr>", page[: page.index("</table>")])
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def report(folders: list[Path], out: Path) -> str:
    """The page that the command writes."""
    assert main(["report", *map(str, folders), "--out", str(out), "--json"]) == 0
    return (out / "report.html").read_text(encoding="utf-8")


def test_seeds_are_shown_together_and_baselines_once(tmp_path: Path) -> None:
    relic = [make_run(tmp_path / f"relic-{seed}", replace(SMALL, seed=seed), 10.0 * seed) for seed in range(4)]
    gru = with_overrides(SMALL, [("policy", {"memory": "gru"})])
    other = make_run(tmp_path / "gru-7", replace(gru, seed=7), 5.0)
    before = {file: file.read_bytes() for folder in (*relic, other) for file in folder.iterdir()}
    page = report([*relic, other], tmp_path / "out")
    assert {file: file.read_bytes() for folder in (*relic, other) for file in folder.iterdir()} == before
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"report.html", "learning.png", "in_context.png"}
    header, *rows = table(page)
    assert header[:3] == ["policy", "seeds", "trials"] and header[-2:] == [
        "interquartile mean, last episode",
        "episodes",
    ]
    assert [row[:3] for row in rows] == [
        ["relic", "4", "16"],
        ["gru", "1", "4"],
        ["random", "1", "4"],
        ["oracle", "1", "4"],
    ]
    scores = {row[0]: row[3:] for row in rows}
    # 0, 10, 20, 30: 3.182, the quantile of Student's t, times 12.91 / sqrt(4) is 20.54
    assert scores["relic"] == ["15 (-5.54 to 35.5)", "20 (-0.54 to 40.5)", "20", "6"]
    assert scores["gru"] == ["5 (4.02 to 5.98)", "10 (9.02 to 11)", "10", "6"]
    assert scores["oracle"][1] == "95 (94 to 96)"
    assert page.count("<details>") == 5


def test_runs_of_different_length_are_apart_and_the_page_gives_the_reason(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / f"run-{seed}", replace(SMALL, seed=seed), 1.0) for seed in (0, 1)]
    assert "not averaged" not in report(folders, tmp_path / "out")
    longer = make_run(tmp_path / "longer-2", replace(SMALL, seed=2, total_steps=8192, threads=2), 1.0)
    page = report([*folders, longer], tmp_path / "out")
    assert "<p>run: ppo, memory relic, 4,096 environment steps, seeds 0, 1.</p>" in page
    assert "<p>run (4,096) and longer (8,192) differ in total_steps alone, and are not averaged: " in page
    assert [row[:2] for row in table(page)[1:3]] == [["run", "2"], ["longer", "1"]]


def test_null_in_an_evaluation_is_nan(tmp_path: Path) -> None:
    """One trial has no standard error. Earlier versions wrote NaN, which JSON does not have."""
    folder = make_run(tmp_path / "run", SMALL, 1.0, 2)
    results = json.loads((folder / "evaluation.json").read_text())
    results["agent"]["metrics"]["return"]["stderr"] = [None, None]
    pages = []
    for text in (json.dumps(results), json.dumps(results).replace("null", "NaN")):
        (folder / "evaluation.json").write_text(text)
        (folder / "demonstrations_2.json").write_text(
            text.replace('"demonstrations": {}', '"demonstrations": {"return": [1.0, 2.0]}')
        )
        pages.append(report([folder], tmp_path / "out"))
        with RunDirectory(folder) as run:
            assert np.isnan(read_evaluation(run)["agent"]["metrics"]["return"]["stderr"]).all()
            assert read_demonstrated(run, "return") == {2: ([1.0, 2.0], [1.0, 2.0])}
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("itinerary", "message"),
    [
        ({"metrics": {}}, r"agent.itinerary.letters is missing"),
        ({"letters": 3, "metrics": {}}, r"agent.itinerary.letters must be a string, got 3"),
        ({"letters": "AB", "metrics": {}}, r"agent.itinerary.metrics.return is missing"),
        ({"letters": "AB", "metrics": {"return": {"retention": {"mean": 1}}}}, r"return.retention.stderr is missing"),
        ({"letters": "AB", "metrics": {"return": {"fresh": {"mean": 1, "stderr": 1}}}}, r"fresh.mean must be a list"),
    ],
)
def test_a_broken_itinerary_in_an_evaluation_is_named(tmp_path: Path, itinerary: dict[str, Any], message: str) -> None:
    folder = make_run(tmp_path / "run", SMALL, 1.0, 2)
    (folder / "itinerary_AB.json").write_text(json.dumps({"agent": {**evaluated(1.0, 2), "itinerary": itinerary}}))
    with RunDirectory(folder) as run, pytest.raises(ValueError, match=f"itinerary_AB.json: .*{message}"):
        read_evaluation(run, "itinerary_AB.json")


def test_side_files_are_no_results(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", SMALL, 1.0)
    results = (folder / "evaluation.json").read_text()
    (folder / "demonstrations_2.json").write_text(
        results.replace('"demonstrations": {}', '"demonstrations": {"return": [1.0]}')
    )
    (folder / "test_set_v0.json").write_text(results)
    for number in (10, 9):
        (folder / f"episode_{number}.png").write_bytes(b"picture")
    (folder / "replay_64.safetensors").touch()
    put_side_files(folder)
    ours = {file.name for file in folder.iterdir() if not is_side_file(Path(file.name))}
    for name in ("episode_9 (1).png", "episode_x.png", "demonstrations_2 copy.json"):
        (folder / name).write_bytes(b"a copy")
    before = {file.name for file in folder.iterdir()}
    page = report([folder], tmp_path / "out")
    assert page.index("episode 9<") < page.index("episode 10<") and page.count("episode 9") == 1
    with RunDirectory(folder) as run:
        assert list(read_demonstrated(run, "return")) == [2]
        run.drop_results()
        run.drop_replays()
    gone = ours - {"config.json", "versions.json", METRICS, "test_set_v0.json"}
    assert {file.name for file in folder.iterdir()} - {".lock"} == before - gone - {".lock"}


def test_metrics_of_single_episodes_are_rows_with_labels_and_units(tmp_path: Path) -> None:
    first, other = (make_run(tmp_path / f"run-{seed}", replace(SMALL, seed=seed), seed, 1) for seed in (0, 1))
    for folder in (first, other):
        results = json.loads((folder / "evaluation.json").read_text())
        results["agent"]["metrics"]["ne"] = {"mean": [2.5], "stderr": [0.0]}
        (folder / "evaluation.json").write_text(json.dumps(results))
    header = ["metric", "agent", "random", "oracle"]
    scores = ["return", "0 (-0.98 to 0.98)", "0 (-0.98 to 0.98)", "90 (89 to 91)"]
    assert table(report([first], tmp_path / "out")) == [
        header, ["episodes", "4", "4", "4"], scores, ["NE (m)", "2.5", "-", "-"]
    ]  # fmt: skip
    rows = {row[0]: row[1:] for row in table(report([first, other], tmp_path / "out"))}
    assert rows["return"] == ["0, 1", "0 (-0.98 to 0.98)", "90 (89 to 91)"]
    assert rows["seeds"] == ["2", "1", "1"] and rows["episodes"] == ["8", "4", "4"]
    assert rows["return, interquartile mean"] == ["0.5", "0", "90"]


def test_of_a_long_trial_means_are_shown(tmp_path: Path) -> None:
    header, *rows = table(report([make_run(tmp_path / "run", SMALL, 0.0, 99)], tmp_path / "out"))
    assert header == ["policy", "trials", "return, first 5 episodes", "return, last 5 episodes", "episodes"]
    # 99 episodes are 19 bins of five and one of four, 95 to 98
    assert rows[0] == ["agent", "4", "2 (1.02 to 2.98)", "96.5 (95.5 to 97.5)", "99"]


def test_several_runs_need_a_folder_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (make_run(tmp_path / f"run-{seed}", replace(SMALL, seed=seed), 1.0) for seed in (0, 1))
    for command in ("report", "paths"):
        for out, printed in ([], "None"), (["--out", str(second)], str(second)):
            assert main([command, str(first), str(second), *out]) == 2
            message = f"--out must be a folder of its own where there are several runs, got {printed}"
            assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*/*.html"))
    assert main(["report", str(first)]) == 0
    assert (first / "report.html").is_file()


def test_runs_of_different_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Observations and ends of trials may differ; world, length of evaluation and score may not."""
    own = tmp_path / "own"
    for name, value, differs in (
        ("env", "memenvs/FourBoxes-v0", "env is 'memenvs/Darkroom-v0' in"),
        ("env_kwargs.size", 5, "env_kwargs.size is 4 in"),
        ("eval_kwargs.split", "train", "env_kwargs.split is 'test' in"),
        ("eval_steps", 100, "eval_steps is 96 in"),
        ("score", "success", "score is 'return' in"),
        ("env_kwargs.trial_episodes", 3, None),
        ("policy.memory", "lstm", None),
    ):
        runs = {own: SMALL, tmp_path / "other": with_overrides(SMALL, [(name, value)])}
        if differs is None:
            check_same_task(runs)
            continue
        with pytest.raises(ValueError, match=re.escape(f"runs must be of the same task: {differs} {own} and ")):
            check_same_task(runs)
    with pytest.raises(ValueError, match="acting is True in"):
        check_same_task({own: SMALL, tmp_path / "other": SMALL_BALLET})
    RunDirectory(own, SMALL).close()
    RunDirectory(tmp_path / "other", with_overrides(SMALL, [("env_kwargs.size", 5)])).close()
    assert main(["report", str(own), str(tmp_path / "other"), "--out", str(tmp_path / "out")]) == 2
    assert "runs must be of the same task" in capsys.readouterr().err and not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="runs must differ in their settings or seeds, got twice the same: a and b"):
        check_same_task({Path("a"): SMALL, Path("b"): replace(SMALL, threads=2)})


def test_names_of_groups_are_those_of_folders(tmp_path: Path) -> None:
    lstm = with_overrides(SMALL, [("policy.memory", "lstm")])
    runs = {tmp_path / "b" / "x-1": replace(SMALL, seed=1), tmp_path / "b" / "x-0": SMALL, tmp_path / "y": lstm}
    assert list(group_by_settings(runs)) == ["x", "y"]
    assert [folder.name for folder in group_by_settings(runs)["x"]] == ["x-0", "x-1"]
    seeds = {tmp_path / "lstm-first": SMALL, tmp_path / "lstm-second": replace(SMALL, seed=1)}
    assert list(group_by_settings({**seeds, tmp_path / "y": lstm})) == ["lstm", "y"]
    assert list(group_by_settings({tmp_path / "x-0": SMALL, tmp_path / "x": lstm})) == ["x-0", "x"]
    assert list(group_by_settings({Path("a/x"): SMALL, Path("b/x"): lstm})) == ["a/x", "b/x"]


def test_predictions_of_several_seeds_are_shown_together(tmp_path: Path) -> None:
    folders = [tmp_path / f"ballet-{seed}" for seed in (0, 1)]
    for seed, folder in enumerate(folders):
        first = str(tmp_path / f"first-{seed}")  # each seed starts with the weights of its own run
        with RunDirectory(folder, replace(SMALL_BALLET, seed=seed, encoder_from=first)):
            answers = {"episodes": 50, "metrics": {"accuracy": {"mean": 0.5 + 0.25 * seed, "stderr": 0.1}}}
            (folder / "evaluation.json").write_text(json.dumps({"agent": answers}))
            (folder / METRICS).write_text("step,name,value\n10,validation/accuracy,0.5\n")
    page = report(folders, tmp_path / "out")
    _, row = table(page)
    assert "accuracy, seeds: 0.5, 0.75<" in page
    assert row == ["ballet", "agent", "accuracy", "2", "0.5, 0.75", "0.625", "100"]
    _, row = table(report(folders[:1], tmp_path / "out"))
    assert row == ["agent", "agent", "accuracy", "1", "0.5 (0.304 to 0.696)", "0.5", "50"]


def test_a_score_that_no_evaluation_has_is_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", replace(SMALL, score="retrun"), 1.0)
    message = r"score must be a metric of the evaluation, got 'retrun'.*did you mean 'return'\?"
    with RunDirectory(folder) as run, pytest.raises(ValueError, match=message):
        write_report([run], tmp_path)


def test_lines_of_different_policies_differ_without_colours() -> None:
    curve = {"mean": [1.0, 2.0], "stderr": [0.1, 0.1]}
    names = ("agent", *BASELINES)
    (axes,) = in_context_figure(dict.fromkeys(names, curve), "return").axes
    assert len({str(line._dash_pattern) for line in axes.lines}) == len(names) == 5  # type: ignore[attr-defined]


def test_mean_and_interval_over_runs() -> None:
    assert format_percent(np.array([0.7, 0.8, 0.9])) == "80.0 +- 24.8"  # 4.303 * 10 / sqrt(3)
    assert format_mean(np.array([7.25])) == "7.2"
    assert format_mean(np.array([-0.04])) == "0.0" and format_mean(np.array([-0.1, 0.0, 0.0])).startswith("0.0 +-")
    for count in range(3, 40):
        sample = np.random.default_rng(count).normal(size=count)
        expected = t.ppf(0.975, count - 1) * sample.std(ddof=1) / np.sqrt(count)
        assert mean_and_margin(sample)[1] == pytest.approx(expected, rel=0.002), count


def test_of_two_runs_both_values_are_printed_and_no_interval() -> None:
    two = np.array([0.125, 0.999])
    assert [form(two) for form in (format_percent, format_digits)] == ["12.5, 99.9", "0.125, 0.999"]
    assert format_runs(two, ".2f", ".1f") == "0.12, 1.00"
    assert format_digits(two[:1]) == "0.125"
    mean, margin = mean_and_margin(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert mean.tolist() == [2.0, 2.0] and margin.tolist() == [0.0, 0.0]
    assert [bound.tolist() for bound in seed_interval(np.array([[1.0], [3.0]]))] == [[2.0]] * 3


def test_intervals_are_over_layouts_and_not_over_seeds() -> None:
    seeds = np.array([[1.0, 3.0, 5.0, 7.0], [3.0, 1.0, 7.0, 5.0]])  # layouts of 2, 2, 6, 6 on average
    assert bootstrap_interval(seeds) == (4, 2, 6)  # one in 16 resamples has the two worse layouts only
    many = np.random.default_rng(0).normal(10, 2, (1, 400))
    _, low, high = bootstrap_interval(many)
    assert high - low == pytest.approx(2 * 1.96 * many.std() / 20, rel=0.05)


def test_interquartile_means_leave_out_the_outer_quarters() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, -50.0])) == 1.5
    assert interquartile_mean(np.array([3.0])) == 3.0
    assert interquartile_mean(np.array([0.0, 3.0, 9.0])) == pytest.approx((0.25 * 0 + 3 + 0.25 * 9) / 1.5)
    many = np.random.default_rng(0).normal(size=40)
    assert interquartile_mean(many) == pytest.approx(trim_mean(many, 0.25))


def test_intervals_over_seeds_are_of_each_column() -> None:
    values = np.random.default_rng(0).normal([10, 20], [1, 4], (50, 2))
    mean, low, high = seed_interval(values)
    assert mean == pytest.approx(values.mean(0))
    assert high - low == pytest.approx(2 * 1.96 * values.std(0) / np.sqrt(50), rel=0.1)
    assert [bound.tolist() for bound in seed_interval(values[:1])] == [values[0].tolist()] * 3


# Scores of two methods, (runs, tasks), and what google-research/rliable 1.2 makes of them with 50,000 resamples.
OURS = [
    [0.638, 0.56, 0.792, 0.631],
    [0.439, 0.708, 0.991, 0.884],
    [0.389, 0.22, 0.413, 0.612],
    [-0.098, 0.534, 0.226, 0.38],
    [0.437, 0.505, 0.723, 0.913],
]
OTHERS = [
    [0.461, 0.91, 0.3, 0.605],
    [0.771, 0.528, 0.277, 0.223],
    [0.363, 0.566, 0.197, 0.437],
    [0.452, 0.662, 0.564, 0.607],
    [0.304, 0.461, 0.735, 0.948],
]


def test_intervals_over_tasks_are_those_of_rliable() -> None:
    ours, others = (list(np.array(scores).T) for scores in (OURS, OTHERS))
    for samples, expected in ((ours, (0.5477, 0.4461, 0.6502)), (others, (0.5044, 0.4125, 0.6071))):
        interval = stratified_interval(samples, lambda drawn: interquartile_mean(np.concatenate(drawn)))
        assert interval[0] == pytest.approx(expected[0], abs=1e-4)
        assert interval[1:] == pytest.approx(expected[1:], abs=0.01)
    both = stratified_interval(
        [*ours, *others], lambda drawn: probability_of_improvement(drawn[: len(ours)], drawn[len(ours) :])
    )
    assert both == pytest.approx((0.54, 0.36, 0.72), abs=0.02)


def test_probability_of_improvement_is_the_u_statistic() -> None:
    rng = np.random.default_rng(0)
    ours, others = ([rng.integers(5, size=count).astype(float) for count in counts] for counts in ((3, 6), (4, 2)))
    expected = [
        mannwhitneyu(own, other).statistic / (len(own) * len(other)) for own, other in zip(ours, others, strict=True)
    ]
    assert probability_of_improvement(ours, others) == pytest.approx(np.mean(expected))
