"""The record: the verdict by hand-made rows, JSON, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import memenvs
from memenvs.certificate import (
    DATA,
    Certificate,
    HorizonPoint,
    PolicyRow,
    StepsBack,
    Training,
    read_certificate,
    write_certificate,
)
from memenvs.certificates import load_certificate
from memenvs.core import TrialEnv, TrialVectorEnv
from tests.certificates.cue import Cue, registered


def row(name: str, way: str, window: int | None, mean: float, stderr: float = 0.0, **more: Any) -> PolicyRow:
    return PolicyRow(name=name, way=way, window=window, mean=mean, stderr=stderr, **more)  # type: ignore[arg-type]


def make(*rows: PolicyRow, random: float = 0.0, ideal: float = 1.0, oracle: float = 1.0, **changes: Any) -> Certificate:
    """A certificate of the toy task with these rows beside the usual ones."""
    usual = (
        row("random", "present", 1, random),
        row("ideal", "ideal", None, ideal),
        row("oracle", "oracle", None, oracle),
    )
    fields: dict[str, Any] = {
        "id": "toy/Cue-v0",
        "settings": {"trial_episodes": 1},
        "split": None,
        "test_set": "v0",
        "trials": 200,
        "score_key": "success",
        "zero": "random",
        "rows": (*usual, *rows),
        "horizon": (HorizonPoint(steps=1, mean=0.5, stderr=0.1),),
        "steps_back": StepsBack(median=20.0, low=20.0, high=20.0),
        "bits": 1.0,
        "ignored_steps": "proved",
        "channel": "none",
        "episode_hash": "sha256:" + 64 * "a",
        "command": "memenvs certify toy/Cue-v0",
    }
    return Certificate(**{**fields, **changes})


def test_verdict_by_hand() -> None:
    blind, window = row("memoryless", "present", 1, 0.5), "ideal, window 16"
    # A quarter of the way from .5 to 1 is .625.
    assert make(blind, row(window, "window", 16, 0.62)).verdict == "long"
    assert make(blind, row(window, "window", 16, 0.63)).verdict == "short"
    assert make(blind, row("notebook", "world", 4, 0.63)).verdict == "short"
    assert make(blind, row(window, "window", 17, 0.99)).verdict == "long"
    assert make(blind, row("fifo", "window", 16, 0.63, how="trained", training=TRAINING)).verdict == "short"
    # The memory is worth a quarter of what the oracle has over random, or it is not needed.
    assert make(row("memoryless", "present", 1, 0.74)).verdict == "long"
    assert make(row("memoryless", "present", 1, 0.76)).verdict == "none"
    assert make(row("memoryless", "present", 1, 0.76), random=0.5).verdict == "long"
    assert make(row("memoryless", "present", 1, 1.1)).verdict == "none"
    assert make(row("a", "present", 1, 0.9), row("memoryless", "present", 1, 0.2)).verdict == "none"


def test_pictures_are_measured_by_the_error_of_the_best_memoryless_answer() -> None:
    """The random answer is a wild guess: it makes any difference seem small."""
    blind = row("memoryless", "present", 1, -0.04)
    scores = {"random": -1.0, "ideal": -0.01, "oracle": 0.0}
    assert make(blind, **scores).verdict == "none"
    assert make(blind, **scores, zero="memoryless").verdict == "long"
    assert make(blind, **{**scores, "ideal": -0.031}, zero="memoryless").verdict == "none"


def test_scores_shown() -> None:
    certificate = make(row("memoryless", "present", 1, 0.5))
    assert [certificate.share(score) for score in (0.5, 0.75, 1.0, 0.0)] == [0.0, 0.5, 1.0, -1.0]
    assert make(row("memoryless", "present", 1, 1.0)).share(1.0) is None


def test_a_close_verdict_says_so() -> None:
    blind = row("memoryless", "present", 1, 0.5, 0.01)
    # Margin .05 under .625; its error is that of the window, .04, and three quarters of .01.
    assert make(blind, row("w", "window", 16, 0.575, 0.02)).is_close is False
    assert make(blind, row("w", "window", 16, 0.575, 0.03)).is_close is True
    assert make(blind, row("w", "window", 16, 0.675, 0.03)).is_close is True
    assert make(row("memoryless", "present", 1, 0.7, 0.05)).is_close is True
    assert make(row("memoryless", "present", 1, 0.7, 0.01)).is_close is False


TRAINING = Training(recipe="ppo", budget=400_000, seeds=(0, 1), settings={"window": 16})


def test_json_goes_round(tmp_path: Path) -> None:
    trained = row("trained, window 16", "window", 16, 0.55, 0.1, how="trained", training=TRAINING)
    made = make(row("memoryless", "present", 1, 0.5, 0.01), trained)
    file = tmp_path / "cue.json"
    write_certificate(made, file)
    assert read_certificate(file) == made
    data = json.loads(file.read_text())
    assert (data["verdict"], data["is_close"]) == ("long", True)
    assert data["rows"][-1]["share"] == pytest.approx(0.1)
    for empty in ("steps_back", "bits"):
        write_certificate(make(**{empty: None}), tmp_path / f"{empty}.json")
        assert read_certificate(tmp_path / f"{empty}.json") == make(**{empty: None})


def damaged(change: Callable[[dict[str, Any]], object]) -> str:
    data = make(row("memoryless", "present", 1, 0.5)).to_json()
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "format is missing"),
        (damaged(lambda data: data.update(format=2)), "format must be a whole number from 1 to 1, got 2"),
        (damaged(lambda data: data.pop("test_set")), "test_set is missing"),
        (damaged(lambda data: data.update(settings=[1])), "settings must be a JSON object"),
        (damaged(lambda data: data.update(is_quick=0)), "is_quick must be False or True, got 0"),
        (damaged(lambda data: data.update(episode_hash="d41d8")), "episode_hash must be 'sha256:' and 64 hexadecimal"),
        (damaged(lambda data: data.update(verdict="short")), "verdict must be 'long', by the scores of the rows"),
        (damaged(lambda data: data["rows"].pop(1)), "rows must have random, ideal, oracle, got none of ideal"),
        (damaged(lambda data: data["rows"].append(data["rows"][0])), r"rows\[4\].name must be another name"),
        (damaged(lambda data: data["rows"][3].update(mean=None)), r"rows\[3\].mean is missing"),
        (damaged(lambda data: data["rows"][3].update(stderr=-1)), r"rows\[3\].stderr must be a number of at least 0"),
        (damaged(lambda data: data["rows"][3].update(way="magic")), r"rows\[3\].way must be 'present' or"),
        (damaged(lambda data: data["rows"][3].update(how="trained")), r"rows\[3\].how must be 'trained' with"),
        (damaged(lambda data: data["horizon"][0].update(steps=0)), r"horizon\[0\].steps must be a whole number"),
    ],
)
def test_broken_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"broken\.json.*{message}"):
        read_certificate(file)


def test_a_quick_one_is_not_shipped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="quick"):
        write_certificate(make(is_quick=True, trials=40), DATA / "Cue-v0.json")
    assert not (DATA / "Cue-v0.json").exists()
    write_certificate(make(is_quick=True, trials=40), tmp_path / "quick.json")
    with pytest.raises(ValueError, match="certificates of ids are of 200 trials"):
        memenvs.register("toy/Cue-v0", Cue, certificate=tmp_path / "quick.json")


def test_of_two_equal_ids_each_has_its_own_certificate(tmp_path: Path) -> None:
    ids = ("toy/Cue-v0", "toy/Again-v0", "toy/Twice-v0")
    made = [make(id=id) for id in ids]
    for n, certificate in enumerate(made):
        write_certificate(certificate, tmp_path / f"{n}.json")
    with registered(certificate=tmp_path / "0.json"):
        memenvs.register(ids[1], Cue, defaults={"trial_episodes": 1}, certificate=tmp_path / "1.json")
        memenvs.register(ids[2], Cue, defaults={"trial_episodes": 2}, certificate=tmp_path / "2.json")
        for id, own in zip(ids, made, strict=True):
            assert gym.make(id).unwrapped.certificate == own  # type: ignore[attr-defined]
            assert gym.make_vec(id, num_envs=2).unwrapped.certificate == own  # type: ignore[attr-defined]
            copies = gym.make_vec(id, num_envs=2, vectorization_mode="sync")
            assert copies.get_attr("certificate") == (own, own)
        # settings decide before the id that was named
        assert gym.make(ids[1], trial_episodes=2).unwrapped.certificate == made[2]  # type: ignore[attr-defined]
        assert gym.make(ids[1], trial_episodes=3).unwrapped.certificate is None  # type: ignore[attr-defined]
        assert TrialEnv(Cue, trial_episodes=1).certificate == made[0]


def test_a_plugin_carries_a_certificate(tmp_path: Path) -> None:
    made = make(row("memoryless", "present", 1, 0.5))
    write_certificate(made, tmp_path / "cue.json")
    with registered() as spec, pytest.raises(ValueError, match="toy/Cue-v0 has no certificate"):
        load_certificate(spec.id)
    with registered(certificate=tmp_path / "cue.json"):
        assert load_certificate("toy/Cue-v0") == made
        assert TrialVectorEnv(Cue, 3, trial_episodes=1, delay=20, threads=2).certificate == made
        for other in ({"delay": 21}, {"trial_episodes": 2}, {"trial_steps": 50}, {"max_episode_steps": 9}):
            assert TrialVectorEnv(Cue, 1, **{"trial_episodes": 1, **other}).certificate is None
    write_certificate(make(id="toy/Cue-v1"), tmp_path / "other.json")
    with pytest.raises(ValueError, match=r"other.json: id must be 'toy/Cue-v0', got 'toy/Cue-v1'"):
        memenvs.register("toy/Cue-v0", Cue, certificate=tmp_path / "other.json")
    with pytest.raises(FileNotFoundError):
        memenvs.register("toy/Cue-v0", Cue, certificate=tmp_path / "none.json")
    assert "toy/Cue-v0" not in gym.registry
    with pytest.raises(ValueError, match="policies\\['ideal'\\] must be a class or 'module:Class'"):
        memenvs.register("toy/Cue-v0", Cue, policies={"ideal": "Ideal"})
