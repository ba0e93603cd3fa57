"""Study "Does your task need memory?": what is equal between its runs, and its page."""

import re

import numpy as np

from memenvs.registry import find_environment


def test_runs_in_the_darkroom_differ_in_the_gap_alone(study):
    """As many episodes and updates with any gap."""
    for gap, task in ((0, "darkroom-gap-0"), (128, "darkroom-gap-128")):
        config = study.config((task, "relic", 1))
        rollout = config.n_envs * config.learner.n_steps
        assert config.total_steps % rollout == 0 and config.total_steps // rollout == 25
        assert config.learner.n_steps == 5 * config.env_kwargs["max_episode_steps"] == 5 * (25 + gap)
        assert config.eval_steps == 10 * (25 + gap) and config.env_kwargs["gap"] == gap


def test_a_rule_plays_where_the_id_has_it(study):
    tasks = {task for task, method, _ in study.cells((), ("notebook",), ())}
    assert tasks == {"visual-match", "visual-match-led"}


def test_an_interval_needs_three_seeds(module):
    format_scores = module.format_scores
    assert format_scores(np.array([1.0, 2.0, 3.0])) == "2.0 ± 2.5"  # 4.303 / sqrt(3)
    assert format_scores(np.array([1.0, 2.0])) == "1.0 / 2.0"
    assert format_scores(np.array([])) == "-"


def test_the_page_has_the_scores_of_certificates(file):
    """Best policy of the present view, best attack, perfect memory, and the verdict."""
    table = re.findall(r"(?:^\|.*\n)+", file.with_name("page.md").read_text(), re.MULTILINE)[0].splitlines()[2:]
    assert len(table) >= 4
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
        for name, printed, verdict in (cells[:3], cells[3:]):
            made = find_environment(name.strip("`")).load_certificate()
            assert made is not None and made.verdict == verdict
            scores = (made.best_memoryless.mean, made.best_attack.mean, made.row("ideal").mean)
            assert printed == " / ".join(f"{score:.1f}" if score >= 2 else f"{score:.2f}" for score in scores), name
