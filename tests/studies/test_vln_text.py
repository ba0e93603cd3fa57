"""The study of MTVM on R2R's texts: settings, tables worked by hand, a short run."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memenvs.agents.study import Rows, Study

needs_data = pytest.mark.skipif(
    not os.environ.get("MEMENVS_DATA"), reason="needs MEMENVS_DATA set to a folder with vln"
)


def row(method: str, seed: int, sr: float, banks: dict[str, float] | None = None) -> dict[str, Any]:
    """A row with SPL 0.1 below success, nDTW 0.5 and a navigation error of 7 m."""

    def result(share: float) -> dict[str, Any]:
        metrics = {"sr": share, "spl": share - 0.1, "ndtw": 0.5, "ne": 7.0}
        return {"agent": {"metrics": {name: {"mean": [value]} for name, value in metrics.items()}}}

    evaluations = {"evaluation": result(sr)}
    if banks is not None:
        evaluations["banks"] = {size: result(share) for size, share in banks.items()}
    return {"task": "r2r", "method": method, "seed": seed, "evaluations": evaluations}


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
        "random-bank": {"random_bank": 6},
    }
    assert set(study.configs["r2r"]) == {"all", *network, *losses}
    for method in study.configs["r2r"]:
        config = study.config(("r2r", method, 0)).to_json()
        expected = base.to_json()
        expected["policy"]["network"] |= network.get(method, {})
        expected["imitation"] |= losses.get(method, {})
        assert config == expected


def test_tables_by_hand(study: Study) -> None:
    """Seeds 0 to 2; the last three actions lack seed 1, so that two seeds are compared."""
    rows = [row("all", 0, 0.30), row("all", 1, 0.32), row("all", 2, 0.34)]
    rows += [row("last3", 0, 0.28), row("last3", 2, 0.31)]
    rows += [row("random-bank", 0, 0.29, {"0": 0.1, "1": 0.2, "3": 0.25})]
    agents, pairs, banks = study.tables(Rows(rows))
    # the quantile of three seeds is 4.303, their standard deviation 2 points: 4.303 * 2 / sqrt(3) = 4.97
    assert agents.lines == [
        ["all actions (MTVM)", 3, "32.0 +- 5.0", "22.0 +- 5.0", "50.0 +- 0.0", "7.0 +- 0.0"],
        ["last 3 actions", 2, "28.0, 31.0", "18.0, 21.0", "50.0, 50.0", "7.0, 7.0"],
        ["all actions, trained with random sizes", 1, "29.0", "19.0", "50.0", "7.0"],
    ]
    assert pairs.lines == [
        ["all actions (MTVM)", "last 3 actions", 2, "2.0, 3.0", "2.0, 3.0"],
        ["all actions, trained with random sizes", "all actions (MTVM)", 1, "-1.0", "-1.0"],
    ]
    assert banks.lines == [
        ["nothing", "10.0", "-"],
        ["last action", "20.0", "-"],
        ["last 3 actions", "25.0", "28.0, 31.0"],
        ["all actions", "29.0", "32.0 +- 5.0"],
    ]
    assert [table.title for table in study.tables(Rows(rows[:1]))] == [agents.title]
    assert study.tables(Rows([])) == []


def test_the_figure_shows_each_size_of_the_bank(study: Study) -> None:
    own = {"none": 0.1, "last1": 0.2, "last3": 0.3, "all": 0.4, "last3-observations": 0.25, "observations": 0.35}
    rows = [row(method, 0, share) for method, share in own.items()]
    draw = study.figures["vln_text"]
    assert draw(Rows(rows)) is None
    figure = draw(Rows([*rows, row("random-bank", 0, 0.5, {"0": 0.15, "1": 0.16, "3": 0.17})]))
    assert figure is not None
    lines = [container.lines[0].get_ydata().tolist() for container in figure.axes[0].containers]
    assert lines == [
        pytest.approx([10, 20, 30, 40]),
        pytest.approx([10, 25, 35]),
        pytest.approx([15, 16, 17, 50]),
    ]


@needs_data
@pytest.mark.slow
def test_one_network_plays_with_each_size_of_the_bank(
    study: Study, module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    play = module.play_trials

    def play_trials(played, *, policy):
        sizes.append(policy.network.bank.size)
        return play(played, policy=policy)

    monkeypatch.setattr(module, "play_trials", play_trials)
    result = study.measure(("r2r", "random-bank", 0), tmp_path, smoke=True)["evaluations"]
    assert sizes == [0, 1, 3] and list(result["banks"]) == ["0", "1", "3"]
    assert all(scores["agent"]["trials"] == 4 for scores in (result["evaluation"], *result["banks"].values()))
    assert study.measure(("r2r", "a2c", 0), tmp_path, smoke=True)["evaluations"].keys() == {"evaluation"}
