"""Several processes that learn as one: what they tell one another, and how they end when one of them fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

#: Where launchers say how many processes there are: torchrun and `accelerate launch`, then the kinds of MPI.
COUNTS = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
#: How long a process waits for the others. One that dies is noticed at once; this is for one that hangs.
TIMEOUT = timedelta(minutes=10)


class Processes:
    """The processes of one launch; made by `launched`. Without arguments, this process alone, which has nobody to tell anything.

    Every method but `split_evenly` must be called by all processes, in the same order: each waits for the others.

    Args:
        rank: Number of this process, in 0 ... count - 1.
        count: Number of processes; >= 1.
        device: Where this process computes; None leaves it to the settings.

    Attributes:
        is_first: Whether this is the process that writes files and logs.
    """

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.count, self.device = rank, count, device
        self.is_first = rank == 0

    def split_evenly(self, name: str, number: int) -> int:
        """What each process has of a number that is meant for all of them.

        Raises:
            ValueError: It cannot be split evenly.
        """
        if number % self.count:
            raise ValueError(f"{name} must be divisible by the number of processes, {self.count}, got {number}")
        return number // self.count

    def gather(self, value: Any) -> list[Any]:
        """A value (anything that can be pickled) of every process, in order of rank."""
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        with self._connected():
            return gather_object([value])

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replaces tensors by their means over all processes, bit for bit the same in each, in one message."""
        if self.count == 1:
            return
        from accelerate.utils import reduce

        with self._connected():
            means = reduce(torch.cat([each.flatten() for each in tensors]), "mean")
        for each, mean in zip(tensors, means.split([each.numel() for each in tensors]), strict=True):
            each.copy_(mean.view_as(each))

    def moments(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, each of shape (), of the values of all processes, of which each has as many."""
        if self.count == 1:
            return values.mean(), values.std(correction=0)
        own = torch.stack([values.mean(), values.var(correction=0)]).double().tolist()
        means, variances = torch.tensor(self.gather(own), dtype=torch.float64).unbind(1)
        variance = variances.mean() + means.var(correction=0)  # within and between
        return means.mean().to(values), variance.sqrt().to(values)

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Replaces tensors by those of the first process."""
        if self.count == 1:
            return
        from accelerate.utils import broadcast

        with self._connected():
            broadcast(list(tensors))

    @contextmanager
    def fail_together(self) -> Iterator[None]:
        """Work that each process does without the others: what fails in one, fails in all.

        Raises:
            RuntimeError: It has failed in another process; the message says in which, and why.
        """
        if self.count == 1:
            yield
            return
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        try:
            reasons = self.gather(None if failure is None else str(failure) or repr(failure))
        finally:
            if failure is not None:
                raise failure
        for rank, reason in enumerate(reasons):
            if reason is not None:
                raise RuntimeError(f"stopped with process {rank} (of 0 ... {self.count - 1}): {reason}")

    def close(self) -> None:
        """Leaves the others; every process is alone from here on."""
        if self.count > 1:
            from accelerate import PartialState

            PartialState().destroy_process_group()

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Says in plain words that another process has gone."""
        try:
            yield
        except RuntimeError as error:
            raise RuntimeError(
                f"process {self.rank} (of 0 ... {self.count - 1}) has lost the others: one of them has ended or does not answer, "
                "and what it printed last says why; --resume goes on from the last checkpoint"
            ) from error


def launched(device: str = "auto") -> Processes:
    """The processes that torchrun or `accelerate launch` have started; this one alone if it was started by itself.

    Args:
        device: "auto", "cpu" or "cuda"; with CUDA each process takes the GPU of its number on its machine, and the processes talk
            through NCCL, else through Gloo.

    Raises:
        ValueError: `accelerate launch` was asked for several processes but has started one.
        RuntimeError: The others cannot be reached.
    """
    count = max(int(os.environ.get(name, 1)) for name in COUNTS)
    if count == 1:
        # on CPUs `accelerate launch` starts one process, however many it was asked for, unless it is given MPI hosts; it says no count then
        if {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys() and "WORLD_SIZE" not in os.environ:
            raise ValueError(
                "accelerate launch has started one process of several, as it does on CPUs; use `torchrun --nproc_per_node N` or "
                "`accelerate launch --multi_gpu --num_processes N`, which start N there too"
            )
        return Processes()
    from accelerate import PartialState

    state = PartialState(cpu=device == "cpu" or not torch.cuda.is_available(), timeout=TIMEOUT)
    return Processes(state.process_index, state.num_processes, state.device)
