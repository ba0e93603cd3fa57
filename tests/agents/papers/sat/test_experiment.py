"""Runs of picture tasks: the figure of their answers, and the report."""

from pathlib import Path

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.train import train_run
from memenvs.agents.study import find_studies, load_study


def test_a_run_draws_answers_until_it_learns_on(tmp_path: Path) -> None:
    study = load_study(find_studies()["pictures"])
    config = study.smoke(study.config(("longstay", "ama", 0)))
    with RunDirectory.open_or_create(tmp_path / "run", config) as run:
        train_run(run, quiet=True)
        config.make_experiment().evaluate(run, quiet=True)
        page = write_report([run], tmp_path / "page").read_text()
        assert "mean squared error in validation during training" in page.lower()
        assert (tmp_path / "page" / "answers.png").read_bytes() == (run.path / "answers.png").read_bytes()
        run.drop_results()  # as the next checkpoint does
        assert not any((run.path / name).exists() for name in ("answers.png", "evaluation.json"))
