"""Splits of houses: which houses are for training, validation and test in each world."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memenvs.checks import choices_for

#: Seeds of ExtObjNav's houses. Source: 37 training scenes as in ReLIC, whose 12 for evaluation are too few to
#: distinguish agents; the seeds are this project's. Agents are chosen on validation and reported on test.
TRAIN_SEEDS = range(37)
VALIDATION_SEEDS = range(1000, 1100)
TEST_SEEDS = range(2000, 2100)
PROCEDURAL_SPLITS: Mapping[str, Sequence[int]] = {
    "train": tuple(TRAIN_SEEDS),
    "validation": tuple(VALIDATION_SEEDS),
    "test": tuple(TEST_SEEDS),
    "all": (*TRAIN_SEEDS, *VALIDATION_SEEDS, *TEST_SEEDS),
}

#: Seeds of the Scene Memory Transformer's houses: 195 for training, every fifth of them kept for validation, and 46 for
#: test. Source: the sizes are the paper's; the seeds are this project's.
SUNCG_SPLITS: Mapping[str, Sequence[int]] = {
    "train": tuple(seed for seed in range(195) if seed % 5 != 4),
    "validation": tuple(range(4, 195, 5)),
    "test": tuple(range(1000, 1046)),
    "all": (*range(195), *range(1000, 1046)),
}


def split_file(split: str, num_houses: int) -> range:
    """Rows of a file of ProcTHOR houses that belong to a split.

    Args:
        split: "train" (the first three quarters of the file, rounded up), "validation" (the rest) or "all".
        num_houses: Houses in the file.

    Raises:
        ValueError: Unknown split.
    """
    num_train = -(-3 * num_houses // 4)  # 3/4, rounded up
    rows = {"train": range(num_train), "validation": range(num_train, num_houses), "all": range(num_houses)}
    return rows[check_split(split, rows)]


def check_split(split: str, splits: Collection[str]) -> str:
    """Return `split` if it is one of `splits`.

    Raises:
        ValueError: It is not; the message lists the choices.
    """
    if split not in list(splits):
        raise ValueError(f"unknown split {split!r}; {choices_for(split, splits)}")
    return split
