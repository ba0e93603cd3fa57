"""Processes that learn as one: communication, and a common end if one of them fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

COUNT_VARIABLES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Environment variables with the number of processes: of torchrun and `accelerate launch`, then of kinds of MPI."""
TIMEOUT = timedelta(minutes=10)
"""Longest wait for another process that hangs; one that dies is noticed at once."""


class Processes:
    """The processes of one launch, or this process alone.

    `launched_processes` makes one. Each method except `split_evenly` must be called by all processes in the same order,
    because each waits for the others. With one process, nothing is communicated.

    Gradients are averaged once per optimizer step, so that a step equals that of one process with the same rows, and
    weights stay equal bit for bit. The first process writes logs and checkpoints and evaluates. If a process fails or
    is killed, all of them end; the same command with `--resume` and the same number of processes goes on from the last
    checkpoint.

    Difference from the paper:
        ReLIC and DD-PPO skip slow workers; here all processes wait for each other, so that a run is determined by its
        seed. GPUs through NCCL have not been tried.

    Args:
        rank: Number of this process, 0 ... count - 1.
        count: Number of processes; >= 1.
        device: Device of this process; None leaves it to the settings.

    Attributes:
        is_first: True for the process that writes files and logs.

    Source:
        Wijmans et al., "DD-PPO: Learning Near-Perfect PointGoal Navigators from 2.5 Billion Frames", ICLR 2020
        (arXiv:1911.00357), without its preemption of slow workers.
    """

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device | None = None) -> None:
        self.rank = rank
        self.count = count
        self.device = device
        self.is_first = rank == 0

    def split_evenly(self, name: str, number: int) -> int:
        """Return the share of each process in a number that is meant for all of them.

        Args:
            name: Name of the setting, for the message.
            number: The number.

        Raises:
            ValueError: The number is not divisible by the number of processes.
        """
        if number % self.count:
            raise ValueError(f"{name} must be divisible by the number of processes, {self.count}, got {number}")
        return number // self.count

    def gather(self, value: Any) -> list[Any]:
        """Return the value of every process, in order of rank; anything that can be pickled."""
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        with self._name_lost_process():
            return gather_object([value])

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their means over all processes, in one message; all get the same bits.

        Args:
            tensors: Changed in place; the same shapes, dtype and order in every process.
        """
        if self.count == 1:
            return
        from accelerate.utils import reduce

        with self._name_lost_process():
            means = reduce(torch.cat([tensor.flatten() for tensor in tensors]), "mean")
        for tensor, mean in zip(tensors, means.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def moments(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation, () each, over the values of all processes.

        Args:
            values: Values of this process; every process must have equally many.
        """
        if self.count == 1:
            return values.mean(), values.std(correction=0)
        own = torch.stack([values.mean(), values.var(correction=0)]).double().tolist()
        means, variances = torch.tensor(self.gather(own), dtype=torch.float64).unbind(1)  # (count,) each
        variance = variances.mean() + means.var(correction=0)  # within processes, and between them
        return means.mean().to(values), variance.sqrt().to(values)

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by those of the first process.

        Args:
            tensors: Changed in place; the same shapes, dtypes and order in every process.
        """
        if self.count == 1:
            return
        from accelerate.utils import broadcast

        with self._name_lost_process():
            broadcast(list(tensors))

    @contextmanager
    def fail_together(self) -> Iterator[None]:
        """Run work of each process without messages; if it fails in one process, all of them stop.

        Raises:
            RuntimeError: The work has failed in another process; the message gives its number and the reason.
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
        """Leave the process group; this process is alone afterwards."""
        if self.count > 1:
            from accelerate import PartialState

            PartialState().destroy_process_group()

    @contextmanager
    def _name_lost_process(self) -> Iterator[None]:
        """Replace the error of a lost connection by one that names the cause."""
        try:
            yield
        except RuntimeError as error:
            raise RuntimeError(
                f"process {self.rank} (of 0 ... {self.count - 1}) has lost the others: one of them has ended or does "
                "not answer, and the last lines that it printed say why; --resume goes on from the last checkpoint"
            ) from error


def launched_processes(device: str = "auto") -> Processes:
    """Return the processes that torchrun or `accelerate launch` started, or this one alone.

    Args:
        device: "auto", "cpu" or "cuda". With CUDA each process uses the GPU with its number on its machine and NCCL,
            else Gloo.

    Raises:
        ValueError: `accelerate launch` was to start several processes but has started one.
        RuntimeError: The other processes cannot be reached.
    """
    count = max(int(os.environ.get(name, 1)) for name in COUNT_VARIABLES)
    if count == 1:
        # Without MPI hosts, `accelerate launch` starts one process on CPUs, however many are requested, and sets no
        # count.
        if {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys() and "WORLD_SIZE" not in os.environ:
            raise ValueError(
                "accelerate launch has started one process of several, as it does on CPUs; use "
                "`torchrun --nproc_per_node N` or `accelerate launch --multi_gpu --num_processes N`, which start N "
                "there too"
            )
        return Processes()
    # Optimizers import this module of PyTorch. Imported after the process group is made it would keep the group alive
    # beyond `close`, and threads of the group then sometimes abort the process when the interpreter ends.
    import torch._dynamo
    from accelerate import PartialState

    state = PartialState(cpu=device == "cpu" or not torch.cuda.is_available(), timeout=TIMEOUT)
    return Processes(state.process_index, state.num_processes, state.device)
