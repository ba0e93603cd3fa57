"""Views of two episodes side by side, and their animated picture."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memenvs.agents.experiments.first_person import animated_webp, first_person_frames
from memenvs.agents.experiments.report import Report
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import load_pretrained


@pytest.mark.slow
def test_two_episodes_side_by_side(tmp_path: Path) -> None:
    config = find_preset("extobjnav-small")
    config = replace(config, eval_kwargs={**config.eval_kwargs, "max_episode_steps": 4})
    frames = first_person_frames(load_pretrained("extobjnav-small", device="cpu"), config, seed=3, episodes=(1, 2))
    assert 2 <= len(frames) <= 5
    width = frames[0].shape[1]
    left, right = width // 2 - 4, width // 2 + 4
    for frame in frames:
        assert (frame[:, left:right] == 255).all()
        assert not np.array_equal(frame[:, :left], frame[:, right:])
    assert not np.array_equal(frames[0], frames[1])  # another step above, at least
    data = animated_webp(frames, width=160)
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.n_frames >= 2 and picture.width == 160 and picture.info["loop"] == 0
    report = Report("views", tmp_path)
    report.picture("views", data)
    page = report.write(tmp_path / "report.html").read_text()
    assert (tmp_path / "views.webp").read_bytes() == data and "data:image/webp;base64," in page
