"""Table of memories, ours and those that others register, imported when first used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from memenvs.agents.memory.base import EXTRA_INPUTS, ExtraInputs, Memory, State, StepInputs
from memenvs.checks import choices_for
from memenvs.plugins import caller_place, check_class_path, class_path, load_class, load_plugins

__all__ = [
    "EXTRA_INPUTS",
    "MEMORIES",
    "ExtraInputs",
    "Memory",
    "MemorySpec",
    "State",
    "StepInputs",
    "make_memory",
    "memories",
    "memory_spec",
    "register_memory",
    "required_inputs",
]


#: Group of entry points in which an installed package names functions that call `register_memory`.
PLUGINS = "memenvs.memories"


@dataclass(frozen=True)
class MemorySpec:
    """One memory of the table.

    Attributes:
        name: Its name in presets and on the command line.
        memory_class: Its class, which is made from the width of the embedding and the config; or "module:Class", which
            is imported when the class or its config is first needed.
        config_class: The class of its settings, a frozen dataclass; or "module:Class".
        summary: The memory in one line.
        place: File and line where it was registered; specs that differ in it alone are equal.
    """

    name: str
    memory_class: str | type
    config_class: str | type
    summary: str
    place: str = field(default=__name__, compare=False)

    @property
    def memory(self) -> type[Memory]:
        """The class of the memory."""
        return load_class(self.memory_class)

    @property
    def config(self) -> type:
        """The class of its settings."""
        return load_class(self.config_class)


def _spec(name: str, module: str, memory_class: str, config_class: str, summary: str) -> MemorySpec:
    """A memory of this package; `module` is the name of the file."""
    path = f"{__name__}.{module}"
    return MemorySpec(name, f"{path}:{memory_class}", f"{path}:{config_class}", summary)


def _compressive(name: str, config_class: str, summary: str) -> MemorySpec:
    """A form of the Compressive Transformer."""
    folder = f"{__name__}.compressive"
    return MemorySpec(name, f"{folder}.memory:CompressiveMemory", f"{folder}.config:{config_class}", summary)


_SPECS = (
    _spec("none", "none", "NoMemory", "NoMemoryConfig", "the current step only"),
    _spec("window", "window", "WindowMemory", "WindowConfig", "the newest steps side by side"),
    _spec("gru", "recurrent", "GRUMemory", "RecurrentConfig", "one recurrent vector, gated recurrent unit"),
    _spec("lstm", "recurrent", "LSTMMemory", "LSTMConfig", "one recurrent vector, long short-term memory (RL2)"),
    _spec(
        "mingru",
        "linear_recurrence",
        "LinearRecurrenceMemory",
        "MinGRUConfig",
        "gates that read the step alone (minGRU)",
    ),
    _spec("lru", "linear_recurrence", "LinearRecurrenceMemory", "LRUConfig", "numbers that fade at fixed rates (LRU)"),
    _spec(
        "s5", "linear_recurrence", "LinearRecurrenceMemory", "S5Config", "the same, made from a continuous system (S5)"
    ),
    _spec(
        "gated-deltanet",
        "delta_rule",
        "MatrixMemory",
        "GatedDeltaConfig",
        "a matrix per head, in which a key's new value replaces the old one (Gated DeltaNet)",
    ),
    _spec("mlstm", "delta_rule", "MatrixMemory", "MLSTMConfig", "a matrix per head, to which values are added (mLSTM)"),
    _spec(
        "relic",
        "relic",
        "RelicMemory",
        "RelicConfig",
        "a transformer over all steps of the trial, with sinks in keys and values (ReLIC)",
    ),
    _spec("memo", "memo", "MemoMemory", "MemoConfig", "a transformer that keeps summaries of past segments (Memo)"),
    _spec(
        "trxl",
        "trxl",
        "TransformerXLMemory",
        "TransformerXLConfig",
        "a transformer over the newest steps, with cached hidden states of earlier ones (Transformer-XL)",
    ),
    _spec("gtrxl", "trxl", "TransformerXLMemory", "GTrXLConfig", "as trxl, with gates in place of sums (GTrXL)"),
    _spec(
        "smt",
        "smt",
        "SMTMemory",
        "SMTConfig",
        "attention over steps as seen from the current pose (Scene Memory Transformer)",
    ),
    _spec(
        "smt-factorized",
        "smt_factorized",
        "FactorizedMemory",
        "FactorizedConfig",
        "as smt, through some centres (SMT + Factorization)",
    ),
    _spec(
        "smt-causal",
        "smt_causal",
        "CausalMemory",
        "CausalConfig",
        "as smt, with causal attention to relative poses: each step is encoded once",
    ),
    _spec(
        "sm-pooling",
        "pooling",
        "PoolingMemory",
        "SceneConfig",
        "max pooling over the steps of the scene memory (SM + Pooling)",
    ),
    _spec(
        "frmqn", "frmqn", "FRMQNMemory", "FRMQNConfig", "a recurrent network that reads from steps by attention (FRMQN)"
    ),
    _spec("t-fifo", "token_memory", "TokenMemory", "TokenConfig", "steps and their times, read by attention (T-FIFO)"),
    _spec("t-fifo+a", "sat", "MoveMemory", "MoveConfig", "as t-fifo, with moves as tokens too (T-FIFO+A)"),
    _spec(
        "sat-fifo", "sat", "SpatialMemory", "SpatialConfig", "as t-fifo, with places too (Spatially-Aware Transformer)"
    ),
    _spec("sat-fifo-th", "sat", "ChunkedMemory", "ChunkConfig", "as sat-fifo, read in chunks of time (SAT-FIFO-TH)"),
    _spec("sat-pm", "sat", "SpatialMemory", "PlaceConfig", "as sat-fifo, with a queue for each place (SAT-PM)"),
    _spec(
        "sat-pm-ph",
        "sat",
        "PlaceChunkedMemory",
        "PlaceChunkConfig",
        "as sat-pm, read in chunks of one place (SAT-PM-PH)",
    ),
    _spec(
        "dnc",
        "dnc",
        "DNCMemory",
        "DNCConfig",
        "a recurrent network that writes to cells of its own and reads them (DNC)",
    ),
    _spec("lstm-on", "lstm_vectors", "LSTMVectorsMemory", "LSTMVectorsConfig", "an LSTM; all of its outputs are read"),
    _spec("lstm-o1", "lstm_vectors", "LSTMVectorsMemory", "NewestVectorsConfig", "as lstm-on, the newest outputs only"),
    _compressive("ct", "CompressiveConfig", "blocks of steps, compressed as they age (Compressive Transformer)"),
    _compressive("ct-lt", "LongTermConfig", "as ct, and what leaves is written to a long-term state (CT+LT)"),
    _compressive("ml-ct-lt", "MultiLevelConfig", "as ct-lt, with several levels of compression (ML CT+LT)"),
    _compressive("ct-log", "LogConfig", "as ct, and what leaves is merged, level by level"),
)


MEMORIES = {spec.name: spec.summary for spec in _SPECS}
"""All memories of this package: name -> one line."""

#: Every registered memory by its name.
_TABLE = {spec.name: spec for spec in _SPECS}


def register_memory(name: str, memory: str | type[Memory], config: str | type, summary: str) -> None:
    """Register a memory of one's own under a name, for policies, presets and commands.

    An installed package names a function that calls this in its entry points `memenvs.memories`; that function runs
    when a name is registered, or looked up that is not of this package.

    Args:
        name: Name in `policy_kwargs`, presets and checkpoints.
        memory: Subclass of `Memory`, made as `memory(input_dim, config)`; or "module:Class", which is imported when it
            is used.
        config: Its settings: a frozen dataclass of plain values; or "module:Class".
        summary: The memory in one line.

    Raises:
        ValueError: The name is taken; the message names both places. Registering an equal memory again has no effect.
            Or a text has another form than "module:Class".
        TypeError: A class is no `Memory`, or a config is no frozen dataclass.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a text, got {name!r}")
    if not isinstance(memory, str) and not (isinstance(memory, type) and issubclass(memory, Memory)):
        raise TypeError(f"memory must be a subclass of Memory or 'module:Class', got {memory!r}")
    if not isinstance(config, str):
        parameters = getattr(config, "__dataclass_params__", None)
        if not isinstance(config, type) or parameters is None or not parameters.frozen:
            raise TypeError(f"config must be a frozen dataclass or 'module:Class', got {config!r}")
    memory_path, config_path = (
        check_class_path(argument, kind) if isinstance(kind, str) else class_path(kind)
        for argument, kind in (("memory", memory), ("config", config))
    )
    spec = MemorySpec(name, memory_path, config_path, summary, caller_place())
    load_plugins(PLUGINS)  # first, so that a name of theirs is refused here
    registered = _TABLE.setdefault(name, spec)
    if registered != spec:
        raise ValueError(f"memory {name!r} is registered twice: at {registered.place} and at {spec.place}")


def memories() -> dict[str, str]:
    """List all memories, of this package and of others: name -> one line."""
    load_plugins(PLUGINS)
    return {spec.name: spec.summary for spec in _TABLE.values()}


def memory_spec(name: str) -> MemorySpec:
    """Return the spec of the memory of that name.

    Raises:
        ValueError: The name is unknown; the message lists the choices.
    """
    if name not in _TABLE:
        load_plugins(PLUGINS)
    if name not in _TABLE:
        raise ValueError(
            f"unknown memory {name!r}; {choices_for(name, _TABLE)} (register_memory adds one, on the command line the "
            "module of --import)"
        )
    return _TABLE[name]


def make_memory(name: str, input_dim: int, **kwargs: Any) -> Memory:
    """Make the memory of that name.

    Args:
        name: A name of `memories`.
        input_dim: Width of the embedding.
        **kwargs: Settings, as in the spec's config.

    Raises:
        ValueError: The name or a setting is unknown; the message lists the choices. Or a setting is not allowed.
        TypeError: A setting has a wrong type.
    """
    memory, config = memory_spec(name).memory, _config(name, kwargs)
    with _naming(name, kwargs):
        return memory(input_dim, config)


def required_inputs(name: str, **kwargs: Any) -> tuple[str, ...]:
    """Return `Memory.required_inputs` of a memory with these settings, without making it.

    Raises:
        ValueError, TypeError: As `make_memory`.
    """
    config, memory = _config(name, kwargs), memory_spec(name).memory
    uses_pose = getattr(config, "poses", memory.uses_pose)  # the scene memories can do without
    required = {"pose": uses_pose, "place": memory.uses_place, "move": memory.uses_move}
    return tuple(key for key in EXTRA_INPUTS if required[key])


def _config(name: str, settings: dict[str, Any]) -> Any:
    """Make the config of a memory; a ValueError lists the choices if the name or a setting is unknown."""
    config = memory_spec(name).config
    choices = [field.name for field in fields(config)]
    for key in settings:
        if key not in choices:
            hint = choices_for(key, choices) if choices else "it has none"
            raise ValueError(f"unknown setting {key!r} of the memory {name!r}; {hint}")
    with _naming(name, settings):
        return config(**settings)


@contextmanager
def _naming(name: str, settings: dict[str, Any]) -> Iterator[None]:
    """Name the memory and its settings in an error of its code, such as one of torch about a negative dimension."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"memory {name!r} with memory_kwargs {settings}: {error}") from error
