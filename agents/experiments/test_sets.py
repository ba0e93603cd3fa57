"""Evaluations on named test sets, in the report of a run."""

from __future__ import annotations

from collections.abc import Sequence

from memenvs.agents.experiments.config import TEST_SET_FILES
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluation_files import read_evaluation
from memenvs.agents.experiments.metric_labels import metric_label
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.trial_evaluator import observed_text
from memenvs.certificates.test_sets import TEST_SETS


def add_test_sets(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add the scores of evaluations on test sets, with the hash of each.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    rows = []
    for run in runs:
        for name in TEST_SETS:
            for policy, data in read_evaluation(run, f"{TEST_SET_FILES}{name}.json").items():
                curve = data["metrics"].get(run.config.score, {"mean": []})["mean"]
                scored = curve[1:] or curve  # as certificates: of trials of several episodes those after the first
                if scored and data.get("test_set"):
                    test_set = data["test_set"]
                    score = float(sum(scored) / len(scored))
                    observed = data.get("observed")
                    title = test_set["name"] + (f", {observed_text(observed)}" if observed else "")
                    rows.append([run.path.name, policy, title, data["trials"], score, test_set["hash"]])
    if rows:
        report.heading("Test sets")
        report.text(
            "The trials are the same for everyone who names the test set and its hash (`memenvs test-set`). In trials "
            "of several episodes those after the first count, without those that not every trial reached."
        )
        label = metric_label(runs[0].config.score)
        report.table(["run", "policy", "test set", "trials", label, "hash"], rows)
