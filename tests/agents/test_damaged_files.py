"""Damaged files: each load is right, or fails with an error that names the file."""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents import EpisodeDQN, PartialUpdatePPO
from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.replay_file import ReplayContent
from memenvs.agents.experiments.config import RunConfig, read_config
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.presets import find_preset
from memenvs.agents.study import read_rows
from tests.agents.algorithms.q_worlds import q_learner
from tests.agents.learners import MEMORIES, STEPS, N, darkroom, learner
from tests.damage import cut, damage_member, edit_json, edit_member, flip_bits, move_block
from tests.fuzzing import attempt

OBSERVATION = {"position": np.array([1.0, 2.0], np.float32), "previous_reward": np.array([1.0], np.float32)}
Damage = Callable[[bytes, np.random.Generator], bytes]
OF_BYTES: tuple[Damage, ...] = (flip_bits, cut, move_block)
"""Damage that checksums find: a file that still loads must give the same."""


@dataclass(frozen=True)
class Target:
    """A kind of file, and how it is loaded and used.

    Attributes:
        write: Writes a good file.
        load: Loads a file, and returns what it holds.
        use: Uses what was loaded; None for nothing more.
        damages: Kinds of damage.
    """

    write: Callable[[Path], None]
    load: Callable[[Path], Any]
    use: Callable[[Any], None]
    damages: tuple[Damage, ...]


def dqn_world() -> Any:
    return darkroom(4, horizon=6, episodes=2)


def new_dqn() -> EpisodeDQN:
    settings: dict[str, Any] = {"capacity": 12, "batch_size": 6, "updates_per_collect": 1, "final_epsilon": 0.1}
    return q_learner(dqn_world(), {"memory": "gru", "memory_kwargs": MEMORIES["gru"]}, **settings)


@functools.cache
def ppo() -> PartialUpdatePPO:
    return learner("relic").learn(N * STEPS)


@functools.cache
def dqn() -> EpisodeDQN:
    return new_dqn().learn(96)


def write_policy_only(path: Path) -> None:
    ppo().save(path)
    checkpoint.drop_training_state(path, path)


def act(model: Any) -> None:
    model.predict(OBSERVATION)


def learn(model: Any) -> None:
    """Act; and learn unless settings were changed, since others may take long."""
    act(model)
    original = dqn() if isinstance(model, EpisodeDQN) else ppo()
    if asdict(model.config) == asdict(original.config):
        model.learn(1, reset_num_timesteps=False)


def load_replay(path: Path) -> EpisodeDQN:
    model = new_dqn()
    model.num_timesteps = dqn().num_timesteps
    model.load_replay_buffer(path)
    return model


def write_config(path: Path) -> None:
    config = replace(find_preset("ci-smoke"), encoder_from="elsewhere", validation_trials=2)
    path.write_bytes(json.dumps(config.to_json(), indent=1).encode())


def load_config(path: Path) -> RunConfig:
    folder = path.with_name(f"run of {path.name}")
    folder.mkdir(exist_ok=True)
    path.rename(folder / "config.json")
    return read_config(folder)


def write_evaluation(path: Path) -> None:
    curve = {"mean": [1.0, 2.0], "stderr": [0.5, 0.25], "stderr_clustered": [0.5, 0.25], "count": [4, 4]}
    policy = {"trials": 4, "layouts": 4, "demonstrations": {}, "metrics": {"return": curve, "steps": curve}}
    path.write_bytes(json.dumps({"agent": policy, "random": policy}).encode())


def load_report(path: Path) -> Path:
    """The report of a run with this evaluation."""
    with RunDirectory(path.with_name(f"run of {path.name}"), find_preset("ci-smoke")) as run:
        (run.path / "metrics.csv").write_text("step,name,value\n64,rollout/ep_rew_mean,1.5\n")
        path.rename(run.path / "evaluation.json")
        return write_report([run], run.path)


def write_metrics(path: Path) -> None:
    path.write_text("step,name,value\n" + "".join(f"{64 * i},rollout/ep_rew_mean,{i / 7!r}\n" for i in range(20)))


def load_metrics(path: Path) -> Any:
    with RunDirectory(path.with_name(f"run of {path.name}"), find_preset("ci-smoke")) as run:
        path.rename(run.path / "metrics.csv")
        return run.metrics()


def write_table(path: Path) -> None:
    write_evaluation(path)
    row = {"task": "room", "method": "a", "seed": 0, "settings": "0" * 16}
    path.write_bytes(json.dumps({**row, "evaluations": {"evaluation": json.loads(path.read_bytes())}}).encode())


def load_table(path: Path) -> Any:
    return list(read_rows(path))


def nothing(loaded: Any) -> None:
    pass


ARCHIVES: tuple[Damage, ...] = (*OF_BYTES, damage_member, edit_member, edit_member)
TEXTS: tuple[Damage, ...] = (*OF_BYTES, edit_json, edit_json)
TARGETS: dict[str, Target] = {
    "PPO": Target(
        lambda path: ppo().save(path),
        lambda path: PartialUpdatePPO.load(path, darkroom(), device="cpu"),
        learn,
        ARCHIVES,
    ),
    "policy": Target(write_policy_only, lambda path: PartialUpdatePPO.load(path, device="cpu"), act, ARCHIVES),
    "DQN": Target(
        lambda path: dqn().save(path),
        lambda path: EpisodeDQN.load(path, dqn_world(), device="cpu"),
        learn,
        ARCHIVES,
    ),
    "replay": Target(lambda path: dqn().save_replay_buffer(path), load_replay, learn, OF_BYTES),
    "config": Target(write_config, load_config, nothing, TEXTS),
    "report": Target(write_evaluation, load_report, nothing, TEXTS),
    "metrics": Target(write_metrics, load_metrics, nothing, OF_BYTES),
    "table": Target(write_table, load_table, nothing, TEXTS),
}


def content(loaded: Any, folder: Path) -> bytes | None:
    """Saved content of a learner; None for files without a checksum."""
    if isinstance(loaded, EpisodeDQN) and loaded.replay.count > 0:
        loaded.save_replay_buffer(folder / "again.zip")
        saved = ReplayContent.read(folder / "again.zip", loaded.num_timesteps)  # metadata has no fixed order there
        stores = [name.encode() + store.numpy().tobytes() for name, store in sorted(saved.tensors.items())]
        return b"".join([*stores, str(saved.next).encode()])
    if isinstance(loaded, (PartialUpdatePPO, EpisodeDQN)):
        loaded.save(folder / "again.zip")
    else:
        return None
    return (folder / "again.zip").read_bytes()


def failures(name: str, count: int, seed: int, folder: Path) -> Iterator[str]:
    """Damage a file again and again; yield what was neither right nor refused by name."""
    target = TARGETS[name]
    target.write(folder / "good.zip")
    good = (folder / "good.zip").read_bytes()
    original = content(target.load(folder / "good.zip"), folder)
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        damage = target.damages[i % len(target.damages)]
        where = f"{name}, seed {seed}, case {i} ({damage.__name__})"
        path = folder / f"file{i}.zip"
        path.write_bytes(damage(good, rng))
        loaded: list[Any] = []
        load = lambda path=path, loaded=loaded: loaded.append(target.load(path))  # noqa: E731
        yield from attempt(where, [path.name], load)
        if loaded:
            if damage in OF_BYTES and content(loaded[0], folder) != original:
                yield f"{where}: another learner was loaded"
            yield from attempt(f"{where}, in use", [""], lambda loaded=loaded: target.use(loaded[0]))  # by any words


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_refused_by_name(name: str, is_whole: bool, tmp_path: Path) -> None:
    few, many = (5, 200) if name == "report" else (18, 3000)
    wrong = list(failures(name, many if is_whole else few, is_whole, tmp_path))
    assert not wrong, "\n".join(wrong)
