"""Archives, members of a checkpoint, policy-only files, parts that others load."""

import functools
import io
import json
import warnings
import zipfile
from dataclasses import replace
from typing import Any

import pytest
import torch

from memenvs.agents import PartialUpdatePPO
from memenvs.agents.algorithms import archive, checkpoint
from memenvs.agents.algorithms.checkpoint import LEARNER, MEMBERS, POLICY_ONLY, Checkpoint
from memenvs.json_records import MAX_RATIO, MIN_UNPACKED
from tests.agents.learners import N, darkroom, learner, weights
from tests.damage import members_of

WIDTHS = {"features_extractor_kwargs": {"widths": {"position": 4}}}


def small(seed: int = 0, **policy: Any) -> PartialUpdatePPO:
    return learner("gru", seed=seed, n_epochs=1, policy_kwargs=WIDTHS | policy)


@functools.cache
def written() -> bytes:
    """A learner after an update."""
    file = io.BytesIO()
    small().learn(N * 8).save(file)
    return file.getvalue()


def test_each_process_has_members_of_its_own() -> None:
    one = Checkpoint.read(io.BytesIO(written()))
    states = [{**one.states[0], "num_timesteps": rank} for rank in range(3)]
    generators = [{"sampling": torch.full((4,), float(rank))} for rank in range(3)]
    learner_tensors = {"target.weight": torch.ones(2)}
    config = {**one.config, "processes": 3}
    file = io.BytesIO()
    replace(one, config=config, states=states, generators=generators, learner=learner_tensors).write(file)
    own = ["state.1.json", "generators.1.safetensors", "state.2.json", "generators.2.safetensors"]
    assert list(members_of(file.getvalue())) == [*MEMBERS, LEARNER, *own]
    whole = Checkpoint.read(file)
    assert [state["num_timesteps"] for state in whole.states] == [0, 1, 2]
    assert [generator["sampling"][0] for generator in whole.generators] == [0, 1, 2]
    assert whole.learner["target.weight"].tolist() == [1, 1] and one.learner == {}
    for tensors, others in ((whole.policy, one.policy), (whole.optimizer, one.optimizer)):
        assert tensors.keys() == others.keys() and all(torch.equal(tensors[name], others[name]) for name in tensors)
    for name in own:
        other = io.BytesIO()
        archive.write(other, {key: value for key, value in members_of(file.getvalue()).items() if key != name})
        with pytest.raises(ValueError, match=rf"a checkpoint of 3 processes must have '{name}', which is missing"):
            Checkpoint.read(other)
    before = io.BytesIO()  # of an early version, which wrote no number
    del config["processes"]
    archive.write(before, members_of(file.getvalue()) | {"config.json": json.dumps(config | {"format": 1}).encode()})
    assert Checkpoint.read(before).config["processes"] == 1


def test_a_policy_only_file_acts_and_does_not_learn() -> None:
    source, target = io.BytesIO(written()), io.BytesIO()
    checkpoint.drop_training_state(source, target)
    assert sorted(members_of(target.getvalue())) == sorted(POLICY_ONLY)
    assert len(target.getvalue()) < sum(map(len, members_of(target.getvalue()).values()))  # compressed
    model, whole = (PartialUpdatePPO.load(file, device="cpu") for file in (target, source))
    assert torch.equal(weights(model), weights(whole)) and model.num_timesteps == N * 8
    for use in (
        lambda: PartialUpdatePPO.load(target, darkroom(), device="cpu"),
        lambda: small().set_parameters(target),
    ):
        with pytest.raises(ValueError, match="holds a policy without the state of its optimizer and generators"):
            use()
    again = io.BytesIO()
    checkpoint.drop_training_state(target, again)
    assert members_of(again.getvalue()) == members_of(target.getvalue())


def test_an_encoder_is_loaded_alone() -> None:
    saved = PartialUpdatePPO.load(io.BytesIO(written()), device="cpu").policy.state_dict()
    model = small(seed=1)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.load_features(io.BytesIO(written()))
    for name, value in model.policy.state_dict().items():
        is_encoder = name.startswith(("features_extractor.", "previous_action."))
        assert torch.equal(value, (saved if is_encoder else before)[name]), name
    assert not torch.equal(before["previous_action.weight"], saved["previous_action.weight"])
    without = small(seed=1, previous_action_dim=0)
    without.load_features(io.BytesIO(written()))  # has no previous action to load
    for change, message in (
        ({"features_extractor_class": "CombinedExtractor", "features_extractor_kwargs": {}}, "must be 'Combined"),
        ({"features_extractor_kwargs": {"widths": {"position": 5}}}, "does not fit the policy"),
    ):
        with pytest.raises(ValueError, match=f"weights of another encoder: .*{message}"):
            small(seed=1, **change).load_features(io.BytesIO(written()))
    model.policy.encoder_fingerprint = "abc"
    with pytest.raises(ValueError, match="weights of another encoder: frozen encoder must be abc, got None"):
        model.load_features(io.BytesIO(written()))
    frozen = io.BytesIO()
    small(freeze_features=True).save(frozen)
    with pytest.raises(ValueError, match="must be of a learner that has learned its encoder"):
        small().load_features(frozen)


def test_a_policy_is_loaded_alone() -> None:
    model = small(seed=1)
    checkpoint.load_policy(model.policy, io.BytesIO(written()))
    assert torch.equal(weights(model), weights(PartialUpdatePPO.load(io.BytesIO(written()), device="cpu")))
    assert model.num_timesteps == 0 and not model.policy.optimizer.state
    with pytest.raises(ValueError, match=r"weights of another policy: .*does not fit the policy"):
        checkpoint.load_policy(small(net_arch=[4]).policy, io.BytesIO(written()))
    worded = io.BytesIO()
    one = Checkpoint.read(io.BytesIO(written()))
    replace(one, config=one.config | {"vocabulary": "words"}).write(worded)
    with pytest.raises(ValueError, match="vocabulary must be None, got words"):
        checkpoint.load_policy(model.policy, worded)
    model.policy.vocabulary_fingerprint = "words"
    checkpoint.load_policy(model.policy, worded)


CONTENT = {"config.json": b'{"format": 1}', "a.json": b'{"x": 2}', "b": b"\x00\x01"}


def test_members() -> None:
    file = io.BytesIO()
    archive.write(file, CONTENT)
    assert archive.read(file, ("config.json",)) == {"config.json": CONTENT["config.json"]}
    texts = archive.read(file, ("config.json",), lambda name: name.endswith("json"))
    assert sorted(texts) == ["a.json", "config.json"]
    with pytest.raises(ValueError, match=r"must have \['config.json', 'c'\], 'c' is missing"):
        archive.read(file, ("config.json", "c"))
    for content, message in ((b'{"format": 2}', "format must be 1, got 2"), (b"{}", "format must be 1, got None")):
        other = io.BytesIO()
        archive.write(other, {"config.json": content})
        with pytest.raises(ValueError, match=message):
            archive.read(other, ("config.json",))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as written, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            written.writestr("config.json", CONTENT["config.json"])
    with pytest.raises(ValueError, match="has two members of one name, so it is no checkpoint"):
        archive.read(twice, ("config.json",))
    assert archive.FORMAT == 1


def test_packed_members_are_bounded() -> None:
    """By MAX_RATIO times the size of the file, and MIN_UNPACKED in any case; members that are not read do not count."""

    def packed(size: int, ballast: int) -> io.BytesIO:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
            written.writestr("config.json", b'{"format": 1}' + b" " * (size - 13))
            written.writestr("ballast", bytes(ballast), zipfile.ZIP_STORED)
        return file

    assert len(archive.read(packed(MIN_UNPACKED, 0), ("config.json",))["config.json"]) == MIN_UNPACKED
    with pytest.raises(ValueError, match=f"unpacks to more than {MAX_RATIO} times its size"):
        archive.read(packed(MIN_UNPACKED + 1, 0), ("config.json",))
    larger = 2 * MIN_UNPACKED
    archive.read(packed(larger, larger // MAX_RATIO), ("config.json",))
    with pytest.raises(ValueError, match=f"unpacks to more than {MAX_RATIO} times its size"):
        archive.read(packed(larger, larger // MAX_RATIO // 2), ("config.json",))


def test_copies() -> None:
    whole = torch.arange(6.0, requires_grad=True)
    copies = archive.cpu_copies({"whole": whole, "part": whole[2:], "turned": whole.view(2, 3).T})
    assert copies["turned"].is_contiguous() and copies["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not any(value.requires_grad for value in copies.values())
    copies["whole"].zero_()
    assert copies["part"].tolist() == [2, 3, 4, 5] and whole.sum() == 15
