"""Study of memories by capacity: its settings, inputs that are left out, tables by hand."""

from dataclasses import replace

import pytest
import torch

from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.study import Rows

CAPACITIES = {"smt-4": 4, "smt-20": 20, "smt-100": 100, "smt-500": 500, "smt-causal": 500, "smt-factorized": 500}


def test_episodes_have_500_steps_and_memories_their_capacities(study):
    assert study.configs.keys() == {"coverage", "search", "coverage-images"}
    for task, configs in study.configs.items():
        for method, config in configs.items():
            lengths = config.env_kwargs["max_episode_steps"], config.eval_steps, config.learner.episode_steps
            assert lengths == (500, 500, 500), (task, method)
            assert "max_episode_steps" not in {**config.eval_kwargs, **config.validation_kwargs}
            if method in CAPACITIES:
                assert config.policy["memory_kwargs"]["capacity"] == CAPACITIES[method]
                memory = make_memory(config.policy["memory"], 8, **config.policy["memory_kwargs"])
                assert memory.config.capacity == CAPACITIES[method]
    assert CAPACITIES.keys() <= study.configs["coverage"].keys() & study.configs["search"].keys()


def test_runs_of_a_task_differ_in_their_memory_alone(study):
    """And all begin with its frozen encoder, which learns from single steps."""
    for task, configs in study.configs.items():
        base = configs["smt-4"]
        assert base.policy["freeze_features"] and base.encoder_from == f"{task}-encoder-{{seed}}"
        assert configs["encoder"].policy["single_steps"] and configs["encoder"].encoder_from is None
        for method in {"reactive", *CAPACITIES} & configs.keys():
            policy = configs[method].policy
            assert replace(configs[method], policy={}) == replace(base, policy={})
            differs = {key for key in base.policy | policy if base.policy.get(key) != policy.get(key)}
            assert differs <= {"memory", "memory_kwargs", "net_arch"}


def test_the_row_from_images_sees_images(study):
    for config in study.configs["coverage-images"].values():
        assert config.env_kwargs["obs_mode"] == "frames" and config.env_kwargs["image_size"] == [24, 32]
        assert config.policy["features_extractor_kwargs"]["network"] == "small"


def test_rows_without_an_input_lose_it_in_both_stages(study):
    """Without poses features do not change with them, as those of `smt-100` do."""
    configs = study.configs["coverage"]
    torch.manual_seed(0)
    start = torch.tensor([[True, False, False]])
    embedding, poses = torch.randn(1, 3, 8), torch.randn(2, 1, 3, 3)
    at = torch.tensor([[2]])
    for method, changes in (("smt-100", True), ("smt-no-previous-action", True), ("smt-no-pose", False)):
        memory = make_memory("smt", 8, **configs[method].policy["memory_kwargs"])
        features = [memory.features_at(StepInputs(embedding, start, start, pose=pose), at) for pose in poses]
        assert torch.equal(*features) is not changes, method
    for stage in ("encoder", "smt"):
        no_pose, no_action = configs[f"{stage}-no-pose"], configs[f"{stage}-no-previous-action"]
        assert (
            no_pose.env_kwargs["modalities"] == ["scan", "scan_class"] and no_pose.policy["previous_action_dim"] == 16
        )
        assert "modalities" not in no_action.env_kwargs and no_action.policy["previous_action_dim"] == 0
    for part in ("no-pose", "no-previous-action"):
        assert configs[f"smt-{part}"].encoder_from == f"coverage-encoder-{part}-{{seed}}"
        assert configs[f"smt-{part}"].policy["memory_kwargs"]["capacity"] == 100


def test_longer_runs_have_twice_the_updates(study):
    """A collection has 8 episodes of 500 steps and 50 updates; 96 episodes are played before."""
    configs = study.configs["coverage"]
    for method in ("smt-4", "smt-100", "smt-500"):
        base, longer = configs[method], configs[f"{method}-longer"]
        assert (base.total_steps, longer.total_steps) == ((96 + 40 * 8) * 500, (96 + 80 * 8) * 500)
        assert replace(longer, total_steps=base.total_steps) == base


def test_all_but_the_first_stages_are_evaluated(study):
    methods = {method for configs in study.configs.values() for method in configs}
    assert study.evaluations["homes"].keywords["methods"] == {
        *(methods - {"encoder", "encoder-no-pose", "encoder-no-previous-action"}),
        *("random", "window4", "ideal", "oracle"),
    }


@pytest.mark.slow
def test_agents_and_heuristics_play_from_images(study, tmp_path):
    for cell in (("encoder", 0), ("smt-4", 0), ("window4", None)):
        evaluations = study.measure(("coverage-images", *cell), tmp_path, smoke=True)["evaluations"]
        assert len(evaluations["homes"]["cells"]) == 8 if cell[0] != "encoder" else evaluations == {}


def make_row(task: str, method: str, seed: int | None, **homes: list[float]) -> dict:
    return {"task": task, "method": method, "seed": seed, "settings": "", "evaluations": {"homes": homes}}


@pytest.fixture
def rows() -> Rows:
    """Two homes; `smt-4` has means of 60, 62, 64 by seed."""
    cells = {"smt-4": (60, 62, 64), "smt-20": (61, 61), "smt-100": (60, 62, 64), "smt-500": (63, 66, 69)}
    own = [
        make_row("coverage", method, seed, cells=[mean - 10, mean + 10], classes=[1, 1])
        for method, means in cells.items()
        for seed, mean in enumerate(means)
    ]
    own += [make_row("coverage", "smt-100-longer", seed, cells=[80, 90]) for seed in (0, 1)]
    own += [make_row("coverage", "smt-no-pose", seed, cells=[50, 50]) for seed in range(3)]
    own += [make_row("coverage", "window4", None, cells=[90, 91]), make_row("search", "window4", None, classes=[3, 4])]
    own += [make_row("coverage-images", "smt-4", 1, cells=[40, 50])]
    return Rows(own)


def test_tables_of_rows_by_hand(module, rows):
    """Student's t of three seeds is 4.303.

    So the margin of 60, 62, 64 is 4.303 * 2 / sqrt(3) = 5.0, that of 3, 4, 5 is 2.5. A lead is of the seeds that both
    have.
    """
    scores, leads, parts, longer = module.make_tables(rows)
    assert scores.header == ["agent", "Coverage, cells", "Search, classes", "Coverage from images, cells"]
    assert scores.lines == [
        ["heuristic, four scans (`window4`)", "90.5", "3.50", "-"],
        ["SMT, 4 steps (`smt-4`)", "62.0 +- 5.0", "-", "45.0"],
        ["SMT, 20 steps (`smt-20`)", "61.0, 61.0", "-", "-"],
        ["SMT, 100 steps (`smt-100`)", "62.0 +- 5.0", "-", "-"],
        ["SMT, 500 steps (`smt-500`)", "66.0 +- 7.5", "-", "-"],
    ]
    assert [line[:2] for line in leads.lines] == [
        ["SMT, 20 steps (`smt-20`)", "1.0, -1.0"],
        ["SMT, 100 steps (`smt-100`)", "0.0 +- 0.0"],
        ["SMT, 500 steps (`smt-500`)", "4.0 +- 2.5"],
    ]
    assert parts.lines == [["all inputs", "62.0 +- 5.0"], ["no pose", "50.0 +- 0.0"]]
    assert longer.lines == [["SMT, 100 steps (`smt-100`)", "62.0 +- 5.0", "85.0, 85.0"]]
    assert module.make_tables(Rows([])) == []


def test_a_lead_pairs_runs_of_the_same_seed(module):
    means = {("smt-4", 0): 60, ("smt-4", 2): 70, ("smt-20", 1): 1, ("smt-20", 2): 75, ("smt-20", 0): 61}
    rows = Rows(make_row("coverage", method, seed, cells=[mean]) for (method, seed), mean in means.items())
    assert module.leads_of(rows, "coverage", "smt-20", "smt-4").tolist() == [1, 5]


def test_the_figure_needs_all_capacities(module, rows):
    assert module.draw(rows) is None  # `smt-20` lacks a seed, and Search its runs
    methods = [*CAPACITIES, "reactive"]
    whole = [
        make_row(task, method, seed, cells=[50 + seed + at], classes=[2 + at / 9])
        for task in ("coverage", "search")
        for at, method in enumerate(methods)
        for seed in range(3)
    ]
    figure = module.draw(Rows([*whole, make_row("coverage", "window4", None, cells=[70])]))
    for axes, at, rise in zip(figure.axes, (51, 2), (1, 1 / 9), strict=True):
        curve, *_ = axes.lines
        assert curve.get_xdata().tolist() == [4, 20, 100, 500]
        assert curve.get_ydata().tolist() == pytest.approx([at, *(at + k * rise for k in (1, 2, 3))])
        beside = {container.get_label(): container.lines[0].get_data() for container in axes.containers}
        assert beside.keys() == {"no memory", "causal SMT", "SMT, centres"}
        assert beside["causal SMT"][1] == pytest.approx([at + 4 * rise])
    assert any(set(line.get_ydata()) == {70} for line in figure.axes[0].lines)
