"""The study of MTVM on R2R's texts: settings, tables worked by hand, a short run."""

import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memenvs.agents.experiments.evaluate import evaluation_env
from memenvs.agents.study import Played, Rows, Study

needs_data = pytest.mark.skipif(
    not os.environ.get("MEMENVS_DATA"), reason="needs MEMENVS_DATA set to a folder with vln"
)


def row(
    task: str, method: str, seed: int, sr: float, banks: dict[str, float] | None = None, three: float | None = None
) -> dict[str, Any]:
    """A row with SDTW 0.1 below success and nDTW 0.5."""

    def result(share: float) -> dict[str, Any]:
        metrics = {"sr": share, "sdtw": share - 0.1, "ndtw": 0.5}
        return {"agent": {"metrics": {name: {"mean": [value]} for name, value in metrics.items()}}}

    evaluations = {"evaluation": result(sr)}
    if banks is not None:
        evaluations["banks"] = {size: result(share) for size, share in banks.items()}
    if three is not None:
        evaluations["three_paths"] = result(three)
    return {"task": task, "method": method, "seed": seed, "evaluations": evaluations}


def test_methods_change_what_their_names_say(study: Study) -> None:
    base = study.config(("r2r", "all", 0))
    assert base.env_kwargs["world"] == "mp3d" and base.eval_kwargs["split"] == "val_unseen"
    assert base.total_steps == base.learner.imitation_updates
    assert base.learner.text_consistency == base.learner.cross_consistency == 0.0
    network = {
        "last3": {"bank": 3},
        "last1": {"bank": 1},
        "none": {"bank": 0},
        "observations": {"history": "observation"},
        "last3-observations": {"bank": 3, "history": "observation"},
        "recurrent": {"history": "state"},
        "no-language": {"language": False},
    }
    losses = {
        "consistency": {"text_consistency": 30.0, "cross_consistency": 10.0},
        "a2c": {"imitation_updates": base.total_steps // 2, "imitation_weight": 0.2},
        "longer": {"imitation_updates": base.total_steps * 3 // 2},
        "random-bank": {"random_bank": 6},
    }
    assert set(study.configs["r2r"]) == {"all", *network, *losses}
    for method in study.configs["r2r"]:
        config = study.config(("r2r", method, 0)).to_json()
        expected = base.to_json()
        expected["policy"]["network"] |= network.get(method, {})
        expected["imitation"] |= losses.get(method, {})
        expected["total_steps"] = 1050 if method == "longer" else 700
        assert config == expected


def test_two_paths_begin_with_the_weights_of_one(study: Study) -> None:
    for method in study.configs["r4r"]:
        one, two = (study.config((task, method, 2)) for task in ("r2r", "r4r"))
        assert two.encoder_from == f"r2r-{method}-2" and two.env_kwargs["legs"] == 2
        assert one.policy == two.policy and two.policy["network"]["text_positions"] == two.env_kwargs["max_tokens"]
        assert two.total_steps == two.learner.imitation_updates == one.total_steps // 2
        assert two.eval_trials == one.eval_trials and two.eval_steps == 2 * one.eval_steps
        assert two.learner.random_bank == (12 if method == "random-bank" else None)


@needs_data
def test_agents_of_two_paths_also_play_three(study: Study, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "play_trials", lambda played, **changes: changes)
    config = study.config(("r4r", "last3", 0))
    changes = module.play_three_paths(Played("r4r", "last3", config, None, False, True))
    assert changes.keys() == {"eval_kwargs", "eval_steps"}
    assert changes["eval_steps"] == 3 * study.config(("r2r", "last3", 0)).eval_steps
    env = evaluation_env(replace(config, **changes), 1, 0)
    env.reset()
    # the ids of three paths are joined by "+"
    assert env.env.task.world.episode(0).id.count("+") == 2 and env.env.task.max_episode_steps == 45
    env.close()
    assert module.play_three_paths(Played("r2r", "last3", config, None, False, True)) is None


def test_tables_by_hand(study: Study) -> None:
    """Seeds 0 to 2; the last three actions lack seed 1, so that two seeds are compared."""
    rows = [row("r2r", "all", 0, 0.30), row("r2r", "all", 1, 0.32), row("r2r", "all", 2, 0.34)]
    rows += [row("r2r", "last3", 0, 0.28), row("r2r", "last3", 2, 0.31)]
    rows += [row("r2r", "random-bank", 0, 0.29, {"0": 0.1, "1": 0.2, "3": 0.25})]
    rows += [row("r4r", "all", 0, 0.2, three=0.12), row("r4r", "last3", 0, 0.15), row("r4r", "last3", 1, 0.9)]
    agents, pairs, banks, three = study.tables(Rows(rows))
    # the quantile of three seeds is 4.303, their standard deviation 2 points: 4.303 * 2 / sqrt(3) = 4.97
    assert agents.lines == [
        ["all actions (MTVM)", "32.0 +- 5.0", "22.0 +- 5.0", "50.0 +- 0.0", "20.0", "10.0", "50.0"],
        ["last 3 actions", "28.0, 31.0", "18.0, 21.0", "50.0, 50.0", "15.0, 90.0", "5.0, 80.0", "50.0, 50.0"],
        ["all actions, trained with random sizes", "29.0", "19.0", "50.0", "-", "-", "-"],
    ]
    assert agents.header[3:5] == ["nDTW %, R2R", "success %, R4R"]
    assert pairs.lines == [
        ["all actions (MTVM)", "last 3 actions", "2.0, 3.0", "2.0, 3.0", "5.0", "5.0"],
        ["all actions, trained with random sizes", "all actions (MTVM)", "-1.0", "-1.0", "-", "-"],
    ]
    assert banks.lines == [
        ["nothing", "0.0", "-", "-", "-"],
        ["last action", "10.0", "-", "-", "-"],
        ["last 3 actions", "15.0", "18.0, 21.0", "-", "5.0, 80.0"],
        ["all actions", "19.0", "22.0 +- 5.0", "-", "10.0"],
    ]
    assert three.lines == [["all actions (MTVM)", "12.0", "2.0", "50.0"]]
    assert [table.title for table in study.tables(Rows(rows[:1]))] == [agents.title]
    assert study.tables(Rows([])) == []


def test_the_figure_shows_each_size_of_the_bank(study: Study) -> None:
    own = {"none": 0.1, "last1": 0.2, "last3": 0.3, "all": 0.4, "last3-observations": 0.25, "observations": 0.35}
    banks = {"0": 0.15, "1": 0.16, "3": 0.17}
    rows = [row("r2r", method, 0, share) for method, share in own.items()]
    rows += [row("r4r", method, 0, share / 2) for method, share in own.items() if method != "last1"]
    rows.append(row("r2r", "random-bank", 0, 0.5, banks))
    draw = study.figures["vln_text"]
    assert draw(Rows(rows)) is None
    figure = draw(Rows([*rows, row("r4r", "random-bank", 0, 0.4, banks)]))
    assert figure is not None
    panels = [[container.lines[0].get_data() for container in axes.containers] for axes in figure.axes]
    assert [[list(line[1]) for line in panel] for panel in panels] == [
        [pytest.approx([0, 10, 20, 30]), pytest.approx([0, 15, 25]), pytest.approx([5, 6, 7, 40])],
        [pytest.approx([-5, 5, 10]), pytest.approx([-5, 2.5, 7.5]), pytest.approx([5, 6, 7, 30])],
    ]
    assert [round(x) for x in panels[1][0][0]] == [0, 2, 3]


@needs_data
@pytest.mark.slow
def test_one_network_plays_with_each_size_of_the_bank(
    study: Study, module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    play = module.play_trials

    def play_trials(played, *, policy):
        sizes.append(policy.network.bank.size)
        return play(played, policy=policy)

    monkeypatch.setattr(module, "play_trials", play_trials)
    result = study.measure(("r2r", "random-bank", 0), tmp_path, smoke=True)["evaluations"]
    assert sizes == [0, 1, 3] and list(result["banks"]) == ["0", "1", "3"]
    assert all(scores["agent"]["trials"] == 4 for scores in (result["evaluation"], *result["banks"].values()))
    assert result.keys() == {"evaluation", "banks"}
    monkeypatch.undo()
    long = study.measure(("r4r", "random-bank", 0), tmp_path, smoke=True)["evaluations"]
    assert long.keys() == {"evaluation", "banks", "three_paths"} and long["three_paths"]["agent"]["trials"] == 4
    assert study.measure(("r2r", "a2c", 0), tmp_path, smoke=True)["evaluations"].keys() == {"evaluation"}
