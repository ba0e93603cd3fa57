"""A second device without a GPU, which counts for what a host would wait.

Its tensors say that they are on "meta", a device that every PyTorch has, and compute on the CPU. As on a GPU, an
operation on tensors of two devices is an error, unless one of them is a single number of the CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

SECOND = torch.device("meta")
#: Operations whose result has a size that only the device knows, so that the host waits for it.
SIZE_BY_VALUES = {"nonzero", "masked_select", "unique_dim", "_unique2", "unique_consecutive"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}


class DeviceTensor(Tensor):
    """A tensor of the second device; `host` has its values."""

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor) -> DeviceTensor:
        place = {"strides": host.stride(), "storage_offset": host.storage_offset()}
        made = Tensor._make_wrapper_subclass(cls, host.size(), **place, dtype=host.dtype, device=SECOND)
        made.host = host
        return made

    def __repr__(self) -> str:
        return f"DeviceTensor({self.host})"

    def tolist(self) -> Any:  # which the base class refuses for subclasses
        return self.cpu().tolist()

    def new_tensor(self, data: Any, **kwargs: Any) -> DeviceTensor:  # which on "meta" has no values
        return DeviceTensor(self.host.new_tensor(data, **kwargs))

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {}, None)


class SecondDevice(TorchDispatchMode):
    """Makes tensors of the second device, and counts waits of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {}, self.waits)


def run(func: Any, args: Any, kwargs: dict[str, Any], waits: Counter[str] | None) -> Any:
    """Run an operation on the values, and wrap what is on the second device."""
    name = func.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    here = [tensor for tensor in tensors if not isinstance(tensor, DeviceTensor) and tensor.dim() > 0]
    device = kwargs.get("device")
    device = None if device is None else torch.device(device)
    is_copy = name in ("_to_copy", "copy_")
    is_indexed = name in INDEXED and isinstance(args[0], DeviceTensor)  # which takes an index from the host
    if there and here and not is_copy and not is_indexed:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, got two")
    is_there = device == SECOND if device is not None else bool(there)
    if name == "copy_":
        is_there = isinstance(args[0], DeviceTensor)
    if waits is not None and there:
        by_mask = name in INDEXED and any(
            leaf.dtype == torch.bool for leaf in tree_leaves(args[1]) if isinstance(leaf, Tensor)
        )
        to_host = is_copy and not is_there
        if name in ("_local_scalar_dense", "equal") or name in SIZE_BY_VALUES or by_mask or to_host:
            waits[name] += 1
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    host_args, host_kwargs = tree_map(
        lambda leaf: leaf.host if isinstance(leaf, DeviceTensor) else leaf, (args, kwargs)
    )
    if name == "_conj":  # a view with a mark, which operations below this one do not see
        return DeviceTensor(host_args[0].conj_physical())
    out = func(*host_args, **host_kwargs)
    if not is_there:
        return out
    out = tree_map(lambda leaf: DeviceTensor(leaf) if isinstance(leaf, Tensor) else leaf, out)
    if device is not None:
        return out
    return return_and_correct_aliasing(func, args, kwargs, out)


@contextmanager
def second_device() -> Iterator[SecondDevice]:
    """Let tensors be made on the second device."""
    autocast = torch.autocast

    def no_autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device_type == SECOND.type else autocast(device_type, *args, **kwargs)

    with SecondDevice() as mode, patch.object(torch, "autocast", no_autocast):
        yield mode


def move(module: nn.Module) -> nn.Module:
    """Put parameters and buffers on the second device, in place."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(DeviceTensor(parameter.detach()), parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = DeviceTensor(buffer)
    return module


@contextmanager
def learning_device() -> Iterator[SecondDevice]:
    """Let learners be made on the second device: call `settle` for each.

    It has no generators of its own, so those of the host take their place. PyTorch makes new parameters where it moves
    a module there.
    """
    generator = torch.Generator
    was = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with second_device() as mode, patch.object(torch, "Generator", lambda device="cpu": generator()):
            yield mode
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(was)


def settle(optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
    """Let an optimizer that was made before its module was moved train the new parameters."""
    made = [tensor for group in optimizer.param_groups for tensor in group["params"]]
    if not any(isinstance(tensor, DeviceTensor) for tensor in made):
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        assert [tensor.shape for tensor in made] == [parameter.shape for parameter in parameters]
        for group in optimizer.param_groups:
            group["params"][:] = [parameters.pop(0) for _ in group["params"]]
    for group in optimizer.param_groups:
        group.update(fused=False, foreach=False)


def to_host(value: Any) -> Any:
    """The values of tensors in a structure."""
    return tree_map(lambda leaf: leaf.host if isinstance(leaf, DeviceTensor) else leaf, value)
