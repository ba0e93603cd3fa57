"""Weights that studies keep: they load by name and play as their rows say."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memenvs.agents.experiments.config import read_config
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.presets.hub import CARD, EVALUATION, NEEDED, OPTIONAL, pull
from memenvs.agents.presets.pretrained import load_pretrained
from memenvs.agents.study import ROWS, Played, Study, compact, find_studies, load_study, read_rows, settings_hash
from memenvs.files import list_files
from memenvs.json_records import format_json

STUDIES = find_studies()
#: A folder is named as that of the run.
FOLDERS = [folder for file in STUDIES.values() for folder in list_files(file.parent, "weights/*")]


class Kept(NamedTuple):
    folder: Path
    study: Study
    row: Mapping[str, Any]


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def kept(request) -> Kept:
    file = STUDIES[request.param.parents[1].name]
    study = load_study(file)
    rows = {study.name((row["task"], row["method"], row["seed"])): row for row in read_rows(file.with_name(ROWS))}
    return Kept(request.param, study, rows[request.param.name])


def test_they_are_small():
    assert sum(file.stat().st_size for folder in FOLDERS for file in folder.iterdir()) < 12e6


def test_the_matrix_keeps_the_best_memory_and_the_lstm_of_each_task():
    study, rows = load_study(STUDIES["matrix"]), read_rows(STUDIES["matrix"].with_name(ROWS))
    module = sys.modules[study.tables.__module__]
    names = set()
    for task in study.configs:
        scores = {method: module.score_of(rows, task, method).mean() for method in rows.methods(task)}
        memories = [method for method in scores if method in module.MEMORIES]
        if memories:
            best = max(memories, key=scores.__getitem__)
            names |= {study.name((task, memory, 0)) for memory in (best, module.PEER)}
    assert {folder.name for folder in FOLDERS if folder.parents[1].name == "matrix"} == names, (
        "for each name: memenvs evaluate runs/matrix/NAME && memenvs push runs/matrix/NAME studies/matrix/weights/NAME"
    )


def test_they_have_the_settings_the_scores_and_the_size_of_the_row(kept):
    assert {path.name for path in kept.folder.iterdir()} == {*NEEDED, *OPTIONAL, CARD}
    config = read_config(kept.folder)
    assert settings_hash(config) == kept.row["settings"]
    metrics = kept.row["evaluations"]["evaluation"]["agent"]["metrics"]
    evaluated = json.loads((kept.folder / EVALUATION).read_bytes())["agent"]["metrics"]
    assert compact(evaluated, list(metrics)) == metrics
    memory = load_pretrained(kept.folder).memory
    assert sum(weights.numel() for weights in memory.parameters()) == kept.row["evaluations"]["weights"]


@pytest.mark.nightly
def test_they_play_as_the_row_says(kept, tmp_path):
    """To the last bit: an evaluation draws from its seed alone."""
    with RunDirectory(pull(kept.folder, tmp_path / "run")) as run:
        played = Played(kept.row["task"], kept.row["method"], run.config, run)
        results = kept.study.evaluations["evaluation"](played)
    assert format_json(results) == format_json(kept.row["evaluations"]["evaluation"])
