"""Study "Does your task need memory?": rows fit the settings, the page shows its output."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents.studies.study_results import settings_hash
from memenvs.registry import find_environment
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "studies" / "needs_memory"
SCRIPT = FOLDER / "study.py"
ROWS = [json.loads(line) for line in (FOLDER / "rows.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    """Names of the script."""
    return runpy.run_path(str(SCRIPT))


def tables(text: str) -> list[str]:
    """Tables of a page or an output, as Markdown."""
    return re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)


def words(text: str) -> int:
    """Number of words of a page, without its tables, code and comments."""
    return len(re.sub(r"^\|.*$|^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL).split())


def test_rows_are_of_the_present_settings(study):
    assert len({(row["task"], row["memory"], row["seed"]) for row in ROWS}) == len(ROWS)
    for row in ROWS:
        task = study["TASKS"][row["task"]]
        memory = row["memory"] if row["seed"] is not None else task.memories[0]
        config = study["make_config"](task, memory, row["seed"] or 0)
        assert row["hash"] == settings_hash(config), f"{row['task']}, {row['memory']}: train it again"
        assert (row["env"], row["settings"], row["score"]) == (config.env, config.env_kwargs, config.score)
        assert row["steps"] == (config.total_steps if row["seed"] is not None else 0)


def test_runs_in_the_darkroom_differ_in_the_gap_alone(study):
    """As many episodes and updates with any gap."""
    for gap, task in ((0, "darkroom-gap-0"), (128, "darkroom-gap-128")):
        config = study["make_config"](study["TASKS"][task], "relic", 1)
        rollout = config.n_envs * config.learner.n_steps
        assert config.total_steps % rollout == 0 and config.total_steps // rollout == 25
        assert config.learner.n_steps == 5 * config.env_kwargs["max_episode_steps"] == 5 * (25 + gap)
        assert config.eval_steps == 10 * (25 + gap) and config.env_kwargs["gap"] == gap


def test_an_interval_needs_three_seeds(study):
    format_scores = study["format_scores"]
    assert format_scores(np.array([1.0, 2.0, 3.0])) == "2.0 ± 2.5"  # 4.303 / sqrt(3)
    assert format_scores(np.array([1.0, 2.0])) == "1.0 / 2.0"
    assert format_scores(np.array([])) == "-"


def test_no_figure_is_drawn_without_rows(study, tmp_path, monkeypatch, capsys):
    figure = tmp_path / "figure.png"
    for arguments, message in (
        (["--smoke"], "argument --smoke: not allowed with argument --show"),
        (["--rows", str(tmp_path / "none.jsonl")], "argument --rows: must have rows to show, got none in"),
    ):
        monkeypatch.setattr("sys.argv", ["study.py", "--show", "--figure", str(figure), *arguments])
        with pytest.raises(SystemExit):
            study["main"]()
        assert message in capsys.readouterr().err and not figure.exists()


def test_the_page_is_short():
    text = (FOLDER / "page.md").read_text()
    assert words(text) <= 600
    assert words("Two words\n| a | b |\n```bash\nc d\n```\n<!-- e f -->\n") == 2


def test_the_page_has_the_scores_of_certificates():
    """Best policy of the present view, best attack, perfect memory, and the verdict."""
    table = tables((FOLDER / "page.md").read_text())[0].splitlines()[2:]
    assert len(table) >= 4
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
        for name, printed, verdict in (cells[:3], cells[3:]):
            made = find_environment(name.strip("`")).load_certificate()
            assert made is not None and made.verdict == verdict
            scores = (made.best_memoryless.mean, made.best_attack.mean, made.row("ideal").mean)
            assert printed == " / ".join(f"{score:.1f}" if score >= 2 else f"{score:.2f}" for score in scores), name


@pytest.mark.programs
def test_the_page_shows_what_the_study_prints(tmp_path):
    done = run_python(str(SCRIPT), "--show", "--figure", str(tmp_path / "figure.png"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed, page = tables(done.stdout), tables((FOLDER / "page.md").read_text())
    assert len(printed) == 4
    assert [table for table in printed if table not in page] == []
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["figure.png"]


@pytest.mark.programs
def test_smoke_trains_every_memory_of_two_tasks(tmp_path):
    rows = (FOLDER / "rows.jsonl").read_bytes()
    done = run_python(str(SCRIPT), "--smoke", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for task in ("darkroom-gap-20 ct-lt 0", "darkroom-gap-20 oracle None", "visual-match-led MVFO of 40 0"):
        assert re.search(rf"^{task} \d", done.stdout, re.MULTILINE), done.stdout
    assert (FOLDER / "rows.jsonl").read_bytes() == rows


@pytest.mark.programs
def test_nothing_is_trained_twice(tmp_path):
    """A row more is all that a second call with a new task adds."""
    file = tmp_path / "rows.jsonl"
    rows = [row for row in ROWS if row["task"] == "visual-match-led" and row["seed"] is None]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    arguments = (str(SCRIPT), "--tasks", "visual-match-led", "--rows", str(file), "--seeds")
    for count in (1, 0):
        done = run_python(*arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len([line for line in done.stdout.splitlines() if line.startswith("visual-match")]) == count
    added = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["scores"] for row in added] == [row["scores"] for row in rows]
