"""Attention by the package flash-attn: packed sequences, and decoding from a cache.

It is used where `MEMENVS_ATTENTION=flash-attn` says so, on CUDA in half precision. PyTorch's own attention computes
the rest. For attention without a mask PyTorch has the same kernels itself.
"""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

#: Environment variable that names the backend.
VARIABLE = "MEMENVS_ATTENTION"
BACKENDS = ("sdpa", "flash-attn")
INSTALL_FLASH = "pip install flash-attn --no-build-isolation (BSD licence; needs CUDA)"
#: Functions of the package, and the arguments that they are called with.
_INTERFACE = {
    "flash_attn_varlen_func": (
        *("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"),
        *("max_seqlen_q", "max_seqlen_k", "causal"),
    ),
    "flash_attn_with_kvcache": ("q", "k_cache", "v_cache", "cache_seqlens", "cache_leftpad", "return_softmax_lse"),
}
#: Devices on which the package computes.
_DEVICES = ("cuda",)
_MAX_WIDTH = 256
#: Most packed keys for each given key. Where windows overlap more, these copies cost more than a mask.
_MAX_COPIES = 4


@cache
def chosen_package() -> Any:
    """Import flash-attn if it is the chosen backend; None if it is not.

    Raises:
        ValueError: `MEMENVS_ATTENTION` names no backend.
        ImportError: The package is missing, cannot be loaded, or its functions take other arguments.
    """
    name = os.environ.get(VARIABLE, BACKENDS[0])
    if name not in BACKENDS:
        raise ValueError(f"{VARIABLE} must be one of {list(BACKENDS)}, got {name!r}")
    if name == BACKENDS[0]:
        return None
    if importlib.util.find_spec("flash_attn") is None:
        raise ImportError(f"{VARIABLE}=flash-attn needs the package flash-attn: {INSTALL_FLASH}")
    try:
        package = import_module("flash_attn")
    except (ImportError, OSError) as error:
        raise ImportError(f"flash-attn is installed, but cannot be loaded: {error}") from error
    check_interface(package)
    return package


def check_interface(package: Any) -> None:
    """Check that the functions of flash-attn take the arguments that they are called with.

    Raises:
        ImportError: They do not; the message names function, argument and version.
    """
    version = getattr(package, "__version__", "of unknown version")
    for name, arguments in _INTERFACE.items():
        function = getattr(package, name, None)
        missing = [] if function is None else sorted(set(arguments) - set(signature(function).parameters))
        if function is None or missing:
            lacks = f"no {name}" if function is None else f"a {name} without {', '.join(missing)}"
            raise ImportError(
                f"flash-attn {version} has {lacks}; 2.6.3 to 2.8 have it: pip install 'flash-attn<2.9', or leave "
                f"{VARIABLE} unset"
            )


def serves(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Return True if flash-attn is chosen and can compute attention with these tensors.

    Args:
        q: Queries, (B, heads, T, width).
        k: Keys, (B, heads, M, width).
        v: Values, (B, heads, M, width).
    """
    if q.device.type not in _DEVICES or chosen_package() is None:
        return False
    width = q.shape[-1]
    is_half = q.dtype in (torch.float16, torch.bfloat16)
    return is_half and q.dtype == k.dtype == v.dtype and width <= _MAX_WIDTH and width % 8 == 0


@dataclass(frozen=True)
class Packing:
    """S sequences of different lengths, one behind the other, without padding.

    Attributes:
        keys: int64, (K,); for each packed key its index among the given ones, 0 ... B * M - 1.
        query_ends: int32, (S + 1,); 0, then the end of each sequence in all queries.
        key_ends: int32, (S + 1,); 0, then the end of each sequence in `keys`.
        longest: Number of queries, and of keys, of the longest sequence.
    """

    keys: Tensor
    query_ends: Tensor
    key_ends: Tensor
    longest: tuple[int, int]

    @staticmethod
    def of_lengths(keys: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Packing:
        """Lay out sequences.

        Args:
            keys: As in the class.
            query_lengths: int64, (S,); queries of each sequence.
            key_lengths: int64, (S,); keys of each sequence.
        """
        query_ends, key_ends = (F.pad(each.cumsum(0), (1, 0)).to(torch.int32) for each in (query_lengths, key_lengths))
        return Packing(keys, query_ends, key_ends, (int(query_lengths.max()), int(key_lengths.max())))


def pack_windows(first: Tensor, last: Tensor, sinks: int, num_keys: int) -> Packing | None:
    """Pack queries with the keys of their windows.

    Consecutive queries form one sequence if their windows begin at the same key and each ends one key later than the
    one before. Within a sequence this is causal attention.

    Args:
        first: int64, (B, T); first key of each query's window, as in `memenvs.agents.memory.attention.KeyWindow`.
        last: int64, (B, T); its last key.
        sinks: Number of keys at the front that every query attends to.
        num_keys: M.

    Returns:
        The packing, in which each sequence has the sinks in front of its keys. None where windows overlap so much that
        keys would be copied more than four times.
    """
    batch, steps = first.shape
    begins = torch.ones_like(first, dtype=torch.bool)
    begins[:, 1:] = (first[:, 1:] != first[:, :-1]) | (last[:, 1:] != last[:, :-1] + 1)
    begin = begins.flatten().nonzero()[:, 0]  # (S,): first queries of the runs
    query_lengths = torch.diff(begin, append=begin.new_full((1,), batch * steps))
    run_first, run_last = first.flatten()[begin], last.flatten()[begin + query_lengths - 1]
    key_lengths = sinks + run_last - run_first + 1
    total = int(key_lengths.sum())
    if total > _MAX_COPIES * batch * num_keys:
        return None
    run = torch.repeat_interleave(key_lengths, output_size=total)  # (K,): of each place
    place = torch.arange(total, device=first.device) - (key_lengths.cumsum(0) - key_lengths)[run]
    key = torch.where(place < sinks, place, run_first[run] + place - sinks) + (begin // steps * num_keys)[run]
    return Packing.of_lengths(key, query_lengths, key_lengths)


def pack_present(present: Tensor, queries: int) -> Packing:
    """Pack the keys that exist; each of the B rows is a sequence.

    Args:
        present: bool, (B, M); True for keys that exist.
        queries: Queries of each row, T.
    """
    lengths = present.sum(1)
    return Packing.of_lengths(present.flatten().nonzero()[:, 0], torch.full_like(lengths, queries), lengths)


def attend_packed(q: Tensor, k: Tensor, v: Tensor, packing: Packing, *, causal: bool) -> Tensor:
    """Attend within packed sequences.

    Args:
        q: float16 or bfloat16, (B, heads, T, width).
        k: The same, (B, heads, M, width).
        v: The same.
        packing: The sequences, which have all queries in order.
        causal: If True, the queries of a sequence are its last steps, and each attends to no later key.

    Returns:
        float16 or bfloat16, (B, heads, T, width); 0 where a sequence has no key.
    """
    batch, heads, steps, width = q.shape
    queries = q.transpose(1, 2).reshape(-1, heads, width)
    keys, values = (each.transpose(1, 2).reshape(-1, heads, width)[packing.keys] for each in (k, v))
    out = chosen_package().flash_attn_varlen_func(
        *(queries, keys, values, packing.query_ends, packing.key_ends, *packing.longest), causal=causal
    )
    return out.view(batch, steps, heads, width).transpose(1, 2)


def attend_cache(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, sinks: int) -> Tensor:
    """Attend from one query a row to cached keys and to the sinks, without a gradient.

    The package attends to the keys from `first` to `last` alone. It also returns the logarithm of the sum of
    exponentials of their scores. This is what a softmax over all keys needs, so the sinks are added here.

    Args:
        q: float16 or bfloat16, (B, heads, 1, width).
        k: The same, (B, heads, M, width).
        v: The same.
        first: int64, (B,); first cached key of each query.
        last: int64, (B,); its last one.
        sinks: Number of keys at the front that every query attends to.

    Returns:
        float16 or bfloat16, (B, heads, 1, width).
    """
    out, log_sum = chosen_package().flash_attn_with_kvcache(
        *(each.transpose(1, 2) for each in (q, k, v)),
        cache_seqlens=(last + 1).to(torch.int32),
        cache_leftpad=first.to(torch.int32),
        return_softmax_lse=True,
    )
    out = out.transpose(1, 2)
    if sinks == 0:
        return out
    scores = q.float() @ k[:, :, :sinks].float().transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, heads, 1, sinks)
    log_sum = log_sum.float()[..., None]
    total = torch.logaddexp(log_sum, scores.logsumexp(-1, keepdim=True))
    joined = out.float() * (log_sum - total).exp() + (scores - total).exp() @ v[:, :, :sinks].float()
    return joined.to(out.dtype)
