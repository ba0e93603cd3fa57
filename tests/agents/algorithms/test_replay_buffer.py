"""The replay buffer and its file, with episodes in which numbers identify steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from safetensors.torch import save_file

from memenvs.agents.algorithms.replay_buffer import EpisodeReplayBuffer
from memenvs.agents.algorithms.replay_file import ReplayContent

SPACE = spaces.Dict(
    {
        "depth": spaces.Box(0.0, np.inf, (2, 3, 1), np.float32),
        "semantic": spaces.Box(0, 40, (2, 3), np.uint8),
        "far": spaces.Box(-np.inf, np.inf, (1,), np.float64),
    }
)
CPU = torch.device("cpu")


def make(capacity: int = 3, **settings: Any) -> EpisodeReplayBuffer:
    return EpisodeReplayBuffer(
        capacity, 6, settings.pop("space", spaces.Box(-1e6, 1e6, (1,), np.float32)), CPU, **settings
    )


def play(
    replay: EpisodeReplayBuffer, numbers: list[int], lengths: list[int], terminated: list[bool] | None = None
) -> torch.Tensor:
    """Play episodes side by side.

    Step t of episode e has the observation 100 e + t, the action (e + t) % 2 and the reward 10 e + t.
    """
    rows, e = replay.start_episodes(len(numbers)), torch.tensor(numbers)
    length = torch.tensor(lengths)
    over = torch.tensor(terminated or [True] * len(numbers))
    for t in range(max(lengths)):
        now = t < length
        replay.add(rows, now, t, (100.0 * e + t)[:, None], {}, (e + t) % 2, 10.0 * e + t)
        ended = length == t + 1
        if ended.any():
            replay.end_episodes(rows[ended], t + 1, (100.0 * e + t + 1)[ended][:, None], {}, over[ended])
    return rows


def stored(replay: EpisodeReplayBuffer, row: int) -> list[float]:
    """Observations of the episode in a row, with the last one."""
    at = torch.arange(int(replay.lengths[row]) + 1)[None]
    observations = replay.read(torch.tensor([row]), at).observations
    return observations[0, :, 0].tolist()


def test_the_oldest_episodes_go_first() -> None:
    replay = make()
    assert play(replay, [1, 2], [3, 2]).tolist() == [0, 1]
    assert not replay.is_full
    assert play(replay, [3, 4], [2, 1]).tolist() == [2, 0]  # 4 takes the place of 1
    assert replay.is_full
    assert [stored(replay, row) for row in range(3)] == [[400, 401], [200, 201, 202], [300, 301, 302]]
    assert play(replay, [5], [1]).tolist() == [1]


def test_discarded_episodes_give_their_rows_back() -> None:
    replay = make()
    play(replay, [1, 2, 3], [1, 1, 1])
    replay.start_episodes(2)
    assert replay.lengths.tolist() == [0, 0, 1]
    replay.discard_running()
    assert not replay.is_full
    drawn = replay.sample(1, 4, np.random.default_rng(0))
    assert drawn.rows.tolist() == [2]
    assert play(replay, [4], [1]).tolist() == [0]


def test_samples_are_uniform_and_without_replacement() -> None:
    replay, rng = make(4), np.random.default_rng(0)
    play(replay, [1, 2, 3, 4], [6, 6, 2, 5])
    counts, rounds = np.zeros((4, 6)), 1000
    for _ in range(rounds):
        drawn = replay.sample(2, 3, rng)
        assert len(set(drawn.rows.tolist())) == 2
        for row, drawn_steps, is_valid in zip(drawn.rows.tolist(), drawn.steps, drawn.is_valid, strict=True):
            steps = drawn_steps[is_valid].tolist()
            assert len(set(steps)) == len(steps) == min(3, int(replay.lengths[row]))
            assert drawn_steps[~is_valid].tolist() == [0] * (3 - len(steps))
            counts[row, steps] += 1
    lengths = replay.lengths.numpy()
    expected = np.where(np.arange(6) < lengths[:, None], 0.5 * np.minimum(3, lengths)[:, None] / lengths[:, None], 0.0)
    assert np.all(np.abs(counts / rounds - expected) < 0.075), counts / rounds  # 5 standard deviations
    assert (counts[expected == 0] == 0).all()


def test_n_step_returns() -> None:
    """Rewards of the episode are 10, 11, 12, 13; by hand for n = 3 and a discount of 0.5."""
    for terminated, after in ((True, 0.0), (False, 1.0)):
        replay = make()
        play(replay, [1], [4], [terminated])
        total, bootstrap, discount = replay.n_step_returns(torch.tensor([0]), torch.tensor([[0, 1, 2, 3]]), 3, 0.5)
        assert total.tolist() == [[10 + 5.5 + 3, 11 + 6 + 3.25, 12 + 6.5, 13]]
        assert bootstrap.tolist() == [[3, 4, 4, 4]]
        assert discount.tolist() == [[0.125, 0.125 * after, 0.25 * after, 0.5 * after]]


def test_observations_in_the_types_of_their_space() -> None:
    replay, rng = make(space=SPACE, required_inputs=["pose"]), np.random.default_rng(0)
    depth = rng.uniform(0.1, 5.0, (2, 2, 3, 1)).astype(np.float32)
    depth[0, 0] = 0.0
    depth[1, 1] = 40.0
    views = {
        "depth": torch.as_tensor(depth),
        "semantic": torch.as_tensor(rng.integers(0, 41, (2, 2, 3), np.uint8)),
        "far": torch.tensor([[1e300], [np.pi]], dtype=torch.float64),
    }
    pose = torch.tensor([[1.0, 2.0, 3.0], [-4.0, 5.0, -0.5]])
    rows = replay.start_episodes(2)
    yes = torch.ones(2, dtype=torch.bool)
    replay.add(rows, yes, 0, views, {"pose": pose}, torch.zeros(2, dtype=torch.int64), torch.zeros(2))
    replay.end_episodes(rows, 1, views, {"pose": -pose}, yes)
    steps = replay.read(rows, torch.tensor([[0, 1]] * 2))
    for t in range(2):
        got = {key: value[:, t] for key, value in steps.observations.items()}
        assert torch.equal(got["semantic"], views["semantic"])
        assert torch.equal(got["far"], views["far"])
        assert {key: value.dtype for key, value in got.items()} == {key: value.dtype for key, value in views.items()}
        assert (got["depth"] - views["depth"].clamp(max=32.767)).abs().max() < 0.000501
        assert torch.equal(got["depth"] == 0, views["depth"] == 0)
        assert torch.equal(steps.extra_inputs["pose"][:, t], pose * (1 - 2 * t))
    assert replay.nbytes == 3 * 7 * (6 * 2 + 6 + 8 + 12 + 8 + 4)  # 2 bytes for a depth


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    replay, other = make(4), make(4)
    play(replay, [1, 2, 3], [6, 5, 2], [True, False, True])
    play(replay, [4, 5], [3, 4], [False, True])
    replay.save(tmp_path / "replay", 7)
    play(other, [9, 8, 7, 6], [6, 6, 6, 6])
    other.load(tmp_path / "replay", 7)
    assert other.next == 1 and other.lengths.tolist() == [4, 5, 2, 3]
    assert other.terminated.tolist() == [True, False, True, False]
    for name, store in replay._stores.items():
        assert torch.equal(store, other._stores[name]), name
    assert play(replay, [6], [1]).tolist() == play(other, [6], [1]).tolist()
    first, second = (buffer.sample(3, 2, np.random.default_rng(1)) for buffer in (replay, other))
    assert torch.equal(first.steps, second.steps)
    replay.save(tmp_path / "replay", 7)
    assert [file.name for file in tmp_path.iterdir()] == ["replay"]  # nothing temporary is left


def test_broken_and_foreign_files_are_named(tmp_path: Path) -> None:
    replay, file = make(), tmp_path / "replay"
    play(replay, [1, 2], [6, 5])
    replay.save(file, 7)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match=r"empty: not a whole replay \(.*\); was it cut short\?"):
        make().load(tmp_path / "empty", 7)
    before = make()
    for other, stamp, message in (
        (before, 8, "must be the replay of environment step 8, got that of 7"),
        (make(4), 7, "must be of 4 episodes of at most 6 steps, got 3 of at most 6"),
        (make(required_inputs=["pose"]), 7, r"must have \['action', 'lengths', 'observation', 'pose', .*got "),
        (make(space=spaces.Box(0, 1, (2,))), 7, r"'observation' must be \(\(13, 2\), .*float32\), got \(\(13, 1"),
    ):
        with pytest.raises(ValueError, match=message):
            other.load(file, stamp)
    assert before.lengths.tolist() == [0, 0, 0]
    with pytest.raises(FileNotFoundError, match=r"no file .* with a replay"):
        replay.load(tmp_path / "nowhere", 7)


def test_depth_in_millimetres_stays_as_it_is() -> None:
    """Only float32 depth is converted; a sensor that gives int16 is stored and read unchanged."""
    replay = make(space=spaces.Dict({"depth": spaces.Box(0, 30_000, (1,), np.int16)}))
    view = {"depth": torch.tensor([[1234]], dtype=torch.int16)}
    row, yes = replay.start_episodes(1), torch.ones(1, dtype=torch.bool)
    replay.add(row, yes, 0, view, {}, torch.zeros(1, dtype=torch.int64), torch.zeros(1))
    replay.end_episodes(row, 1, view, {}, yes)
    observations = replay.read(row, torch.tensor([[0, 1]])).observations
    assert torch.equal(observations["depth"], torch.full((1, 2, 1), 1234, dtype=torch.int16))


def content(lengths: list[int], next: int = 0) -> ReplayContent:
    """Episodes of some lengths, 0 for none; each has one position more than steps."""
    positions = sum(length + 1 for length in lengths if length > 0)
    tensors = {
        "lengths": torch.tensor(lengths, dtype=torch.int64),
        "terminated": torch.zeros(len(lengths), dtype=torch.bool),
        "action": torch.arange(positions) % 2,
        "reward": torch.arange(float(positions)),
    }
    return ReplayContent(tensors, next, 5)


def test_wrong_numbers_are_named() -> None:
    for lengths, next, message in (
        (torch.tensor([2.0, 1.0, 0.0]), 0, r"'lengths' must be torch\.int64 with one axis, got torch\.float32"),
        (torch.tensor([2, -1, 0]), 0, "is of another replay"),
        (torch.tensor([2, 1, 0]), 3, "is of another replay"),
    ):
        forged = content([2, 1, 0], next)
        forged.tensors["lengths"] = lengths
        with pytest.raises(ValueError, match=f"^file: {message}"):
            forged.check(Path("file"), 3, 2, {name: forged.tensors[name] for name in ("action", "reward")})


def test_entries_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "very" / "deep" / "replay"
    good = content([2, 1, 0], next=2)
    good.write(path)
    assert ReplayContent.read(path, 5).next == 2
    tensors = {name: value.contiguous() for name, value in good.tensors.items()}
    entries = {"stamp": "5", "next": "2", "checksum": good._checksum()}
    largest = 10**18 - 1
    save_file(tensors, path, {"stamp": "5", "next": str(largest)})
    assert ReplayContent.read(path, 5).next == largest
    for change, message in (
        ({"next": str(largest + 1)}, "'next' must be the number of a row, got '1000000000000000000'"),
        ({"next": "-1"}, "'next' must be the number of a row, got '-1'"),
        ({"next": ""}, "'next' must be the number of a row, got ''"),
        ({"next": "\u0662"}, "'next' must be the number of a row"),  # a digit of another script
        ({"stamp": "6"}, "must be the replay of environment step 5, got that of 6"),
        ({"next": "1"}, "does not have the checksum"),
        ({"more": "1"}, r"must have the entries stamp, next and checksum, got \['checksum', 'more', 'next', 'stamp'\]"),
    ):
        save_file(tensors, path, entries | change)
        with pytest.raises(ValueError, match=f"replay: {message}"):
            ReplayContent.read(path, 5)
    for name, value in (("reward", good.tensors["reward"] + 1), ("terminated", ~good.tensors["terminated"])):
        save_file(tensors | {name: value}, path, entries)
        with pytest.raises(ValueError, match="does not have the checksum"):
            ReplayContent.read(path, 5)
    save_file(tensors, path)
    with pytest.raises(ValueError, match="must be the replay of environment step 5, got that of None"):
        ReplayContent.read(path, 5)
