"""Weights that studies keep: they load, and play or answer as their rows say."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memenvs.agents.experiments.config import read_config
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.progress import count_weights
from memenvs.agents.presets.hub import CARD, EVALUATION, NEEDED, OPTIONAL, pull
from memenvs.agents.presets.pretrained import load_pretrained
from memenvs.agents.study import ROWS, Played, Study, compact, find_studies, load_study, read_rows, settings_hash
from memenvs.files import list_files
from memenvs.json_records import format_json

STUDIES = find_studies()
#: A folder is named as that of the run.
FOLDERS = [folder for file in STUDIES.values() for folder in list_files(file.parent, "weights/*")]
#: Study -> runs of the column "with memory" of the README.
HEADLINES = {
    "needs_memory": {"darkroom-gap-20-trxl-0", "darkroom-gap-20-relic-0", "visual-match-led-MVFO-of-40-0"},
    "room_ballet": {"aba-sat-pm-0"},
    "pictures": {"colour-mvfo-0"},
}
HOW = "for each name: memenvs evaluate runs/STUDY/NAME && memenvs push runs/STUDY/NAME studies/STUDY/weights/NAME"


class Kept(NamedTuple):
    folder: Path
    study: Study
    row: Mapping[str, Any]


def names(study: str) -> set[str]:
    """Runs whose weights a study keeps."""
    return {folder.name for folder in FOLDERS if folder.parents[1].name == study}


@pytest.fixture(params=FOLDERS, ids=lambda folder: f"{folder.parents[1].name}-{folder.name}")
def kept(request) -> Kept:
    file = STUDIES[request.param.parents[1].name]
    study = load_study(file)
    rows = {study.name((row["task"], row["method"], row["seed"])): row for row in read_rows(file.with_name(ROWS))}
    return Kept(request.param, study, rows[request.param.name])


def test_they_are_small():
    assert sum(file.stat().st_size for folder in FOLDERS for file in folder.iterdir()) < 21e6


def test_the_matrix_keeps_the_best_memory_and_the_lstm_of_each_task():
    """12 MB at most have no room for the LSTM where objects move."""
    study, rows = load_study(STUDIES["matrix"]), read_rows(STUDIES["matrix"].with_name(ROWS))
    module = sys.modules[study.tables.__module__]
    best_and_peer = set()
    for task in study.configs:
        scores = {method: module.score_of(rows, task, method).mean() for method in rows.methods(task)}
        memories = [method for method in scores if method in module.MEMORIES]
        if memories:
            best = max(memories, key=scores.__getitem__)
            kept = (best,) if task == "ext-objnav-moves" else (best, module.PEER)
            best_and_peer |= {study.name((task, memory, 0)) for memory in kept}
    assert names("matrix") == best_and_peer, HOW


@pytest.mark.parametrize("study", HEADLINES)
def test_the_agents_with_memory_of_the_readme_are_kept(study: str):
    assert names(study) == HEADLINES[study], HOW


def test_they_have_the_settings_the_scores_and_the_size_of_the_row(kept, tmp_path):
    assert {path.name for path in kept.folder.iterdir()} == {*NEEDED, *OPTIONAL, CARD}
    config = read_config(kept.folder)
    assert settings_hash(config) == kept.row["settings"]
    metrics = kept.row["evaluations"]["evaluation"]["agent"]["metrics"]
    evaluated = json.loads((kept.folder / EVALUATION).read_bytes())["agent"]["metrics"]
    assert compact(evaluated, list(metrics)) == metrics
    with RunDirectory(pull(kept.folder, tmp_path / "run")) as run:
        network = load_pretrained(kept.folder) if config.kind.acts else trained_model(run)
    assert kept.row["evaluations"].get("weights") in (None, count_weights(network).get("memory"))


@pytest.mark.nightly
def test_they_play_or_answer_as_the_row_says(kept, tmp_path):
    """To the last bit: an evaluation draws from its seed alone."""
    with RunDirectory(pull(kept.folder, tmp_path / "run")) as run:
        played = Played(kept.row["task"], kept.row["method"], run.config, run)
        results = kept.study.evaluations["evaluation"](played)
    assert format_json(results) == format_json(kept.row["evaluations"]["evaluation"])
