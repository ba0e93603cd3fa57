"""Trained attacks of a certificate."""

from pathlib import Path

import pytest

from memenvs.agents.attacks import attack_config, trained_row
from memenvs.cli import main
from tests.certificates.cue import registered

#: Steps of one rollout, the least that an attack can learn from.
ROLLOUT = 64 * 256


def test_the_recipe_has_a_window_and_no_other_memory() -> None:
    config = attack_config("Darkroom-Gap-v0", 16, steps=1000)
    kwargs = config.policy["memory_kwargs"]
    assert (config.policy["memory"], kwargs["capacity"], kwargs["time_index"]) == ("t-fifo", 16, "age")
    assert attack_config("Darkroom-Gap-v0", 1).policy == {"memory": "none"}
    assert config.learner.n_steps >= 2 * 40  # several episodes of 40 steps
    with pytest.raises(TypeError, match="attacks are trained for Discrete actions, got Box"):
        attack_config("FFHQWorld-v0", 16)
    with pytest.raises(ValueError, match="window must be an integer of at least 1"):
        attack_config("Darkroom-Gap-v0", 0)


@pytest.mark.slow
def test_an_attack_is_trained_played_and_resumed(tmp_path: Path) -> None:
    """In the toy task of one bit, whose trials are short."""
    with registered(defaults={"trial_episodes": 3, "delay": 2}) as spec:
        row, again = (trained_row(spec.id, 4, tmp_path, steps=ROLLOUT, seeds=(0, 1), quiet=True) for _ in range(2))
    assert (row.name, row.way, row.window, row.how) == ("trained, window 4", "window", 4, "trained")
    assert row.training is not None and row.training.seeds == (0, 1) and row.training.budget == ROLLOUT
    assert 0.3 < row.mean < 0.8 and row.stderr > 0.0  # a rollout teaches little
    assert again == row


@pytest.mark.learning
def test_a_window_learns_what_it_can_and_no_more(tmp_path: Path) -> None:
    """Without a gap a window of 16 steps holds the goal over the end of an episode; with a gap it does not."""
    row = trained_row("Darkroom-Gap-v0", 16, tmp_path, steps=100_000, quiet=True)
    assert 3.0 < row.mean < 5.87 + 3 * 0.48  # the best policy without memory


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["certify", "Darkroom-v0", "--certificate", "x.json"]) == 2
    assert "--certificate: goes with --rows or --train" in capsys.readouterr().err
    monkeypatch.setattr("memenvs.cli.certify.certify", None)  # nothing is played
    assert main(["certify", "Darkroom-Gap-v0", "--train", str(ROLLOUT - 1)]) == 2
    assert f"argument --train: total_steps must be at least {ROLLOUT}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["certify", "--help"])
    assert f"one rollout of 64 environments: {ROLLOUT:,} to {4 * ROLLOUT:,} steps" in " ".join(
        capsys.readouterr().out.split()
    )
