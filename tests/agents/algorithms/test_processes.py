"""`Processes` with stand-ins for the messages; real ones are sent in `test_distributed.py`."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import accelerate
import pytest
import torch

from memenvs.agents.algorithms.distributed import COUNT_VARIABLES, TIMEOUT, Processes, launched_processes


class Others(Processes):
    """One of three processes; `others` are the values of the other two, given that of this one."""

    def __init__(self, rank: int, others: Callable[[Any], list[Any]]) -> None:
        super().__init__(rank, 3)
        self.others = others

    def gather(self, value: Any) -> list[Any]:
        values = self.others(value)
        return [*values[: self.rank], value, *values[self.rank :]]


def test_one_process_communicates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "PartialState", None)
    alone = Processes()
    assert (alone.rank, alone.count, alone.device, alone.is_first) == (0, 1, None, True)
    assert not Processes(1, 2).is_first
    assert alone.gather("a") == ["a"]
    values = torch.tensor([[1.0, 2.0], [4.0, 9.0]])
    alone.average([values])
    alone.broadcast([values])
    mean, std = alone.moments(values)
    assert values.tolist() == [[1.0, 2.0], [4.0, 9.0]] and mean == 4.0
    assert float(std) == pytest.approx(9.5**0.5)  # of 9, 4, 0 and 25
    with pytest.raises(KeyError, match="own"), alone.fail_together():
        raise KeyError("own")
    alone.close()


def test_moments_are_those_of_all_values() -> None:
    generator = torch.Generator().manual_seed(0)
    values = [scale * torch.randn(4, 3, generator=generator) + scale for scale in (1.0, 10.0, 0.1)]
    own = [[float(value.mean()), float(value.var(correction=0))] for value in values]
    whole = torch.cat(values)
    for rank in range(3):
        others = own[:rank] + own[rank + 1 :]
        mean, std = Others(rank, lambda _, others=others: others).moments(values[rank])
        torch.testing.assert_close(mean, whole.mean())
        torch.testing.assert_close(std, whole.std(correction=0))
        assert mean.dtype == std.dtype == torch.float32


def test_work_that_fails_in_one_process_stops_all() -> None:
    messages: list[Any] = []

    def others(*reasons: str | None) -> Others:
        return Others(1, lambda own: messages.append(own) or list(reasons))

    done = []
    with others(None, None).fail_together():
        done.append(1)
    assert done == [1] and messages == [None]
    for reasons, message in ((("broken", None), "process 0"), ((None, "broken"), "process 2")):
        with (
            pytest.raises(RuntimeError, match=rf"^stopped with {message} \(of 0 \.\.\. 2\): broken$"),
            others(*reasons).fail_together(),
        ):
            pass
    for error, reason in ((ValueError("own"), "own"), (ValueError(), "ValueError()")):
        with pytest.raises(ValueError), others("broken", None).fail_together():
            raise error
        assert messages[-1] == reason


@pytest.mark.parametrize("name", COUNT_VARIABLES)
def test_a_launch_is_known_by_its_environment_variables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*COUNT_VARIABLES, "ACCELERATE_MIXED_PRECISION", "MASTER_PORT"):
        monkeypatch.delenv(variable, raising=False)
    assert launched_processes().count == 1
    made: list[dict[str, Any]] = []
    left: list[bool] = []

    class State(SimpleNamespace):
        def __init__(self, **settings: Any) -> None:
            made.append(settings)
            super().__init__(process_index=1, num_processes=2, device=torch.device("cpu"))

        def destroy_process_group(self) -> None:
            left.append(True)

    monkeypatch.setattr(accelerate, "PartialState", State)
    monkeypatch.setenv(name, "2")
    processes = launched_processes("cpu")
    assert (processes.rank, processes.count, processes.device) == (1, 2, torch.device("cpu"))
    assert made == [{"cpu": True, "timeout": TIMEOUT}] and TIMEOUT.total_seconds() == 600
    processes.close()
    assert left == [True]
    for has_gpu in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda has_gpu=has_gpu: has_gpu)
        launched_processes("auto")
        assert made[-1]["cpu"] is not has_gpu


def test_a_launcher_that_starts_one_process_of_several_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*COUNT_VARIABLES, "ACCELERATE_MIXED_PRECISION", "MASTER_PORT"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("MASTER_PORT", "ACCELERATE_MIXED_PRECISION"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert launched_processes().count == 1  # `accelerate launch --num_processes 1` sets only one of them
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    monkeypatch.setenv("MASTER_PORT", "29500")
    with pytest.raises(ValueError, match="accelerate launch has started one process of several"):
        launched_processes()
    monkeypatch.setenv("WORLD_SIZE", "1")  # torchrun with one process
    assert launched_processes().count == 1
