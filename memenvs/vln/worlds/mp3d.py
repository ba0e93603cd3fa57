"""World of Matterport3D: graphs, R2R's instructions and CVDN's dialogues from your files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from memenvs.checks import choices_for
from memenvs.data import MP3D_HELP
from memenvs.files import cached_until_changed
from memenvs.json_records import Field, read_json
from memenvs.vln.graph import Graph
from memenvs.vln.tokenizers import frequent_words
from memenvs.vln.worlds.base import NAVIGATOR, ORACLE, Dialogue, GraphWorld, ViewpointContent, VLNEpisode
from memenvs.vln.worlds.mp3d_graphs import FOLDER, Scan, read_scans

#: The last one is a part of train and has no file of its own.
R2R_SPLITS = ("train", "val_seen", "val_unseen", "val_train_seen")
CVDN_SPLITS = ("train", "val_seen", "val_unseen")
#: Default limits on the number of tokens of a text: that of MTVM's release for R2R, and ours for dialogues.
R2R_MAX_TOKENS, CVDN_MAX_TOKENS = 80, 300
_NDH = "ndh_{}.json"
#: What the path of an episode must be: benchmarks publish their test split with the start alone.
_WITH_GOAL = "a path to a goal; episodes without goals, such as those of a test split, can be neither played nor scored"
_ROLES = {"navigator": NAVIGATOR, "oracle": ORACLE}


def find_file(folder: Path, *names: str, help_text: str = MP3D_HELP) -> Path:
    """Find the first of these files that exists, gzipped or not.

    Raises:
        FileNotFoundError: None exists; the message lists the files and their folder.
    """
    path = _find(folder, *names)
    if path is None:
        raise FileNotFoundError(f"no file {' or '.join(names)} in {str(folder)!r}. {help_text}")
    return path


def _find(folder: Path, *names: str) -> Path | None:
    paths = [folder / f"{name}{ending}" for name in names for ending in ("", ".gz")]
    return next((path for path in paths if path.is_file()), None)


def _find_split(folder: Path, split: str, splits: Sequence[str], *forms: str) -> Path:
    """The file of a split, whose name is one of `forms` with the split's name in it.

    Raises:
        FileNotFoundError: It is not there; the message names the splits that are.
    """
    paths = {name: _find(folder, *(form.format(name) for form in forms)) for name in splits}
    path = paths[split]
    if path is None:
        there = ", ".join(name for name, at in paths.items() if at is not None) or "none"
        names = " or ".join(form.format(split) for form in forms)
        raise FileNotFoundError(f"no file {names} in {str(folder)!r}; splits that are there: {there}. {MP3D_HELP}")
    return path


@cached_until_changed(4)
def read_regions(folder: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Read region and objects of each viewpoint, by scan and viewpoint.

    The result is empty without `regions.json`.

    Warns:
        UserWarning: There is no `regions.json`; synthetic features then encode geometry alone.

    Raises:
        ValueError: The file is broken; the message names it and the record.
    """
    try:
        scans = read_json(find_file(folder, "regions.json"))
    except FileNotFoundError:
        warnings.warn(
            f"no regions.json in {str(folder)!r}: synthetic features show geometry alone, "
            "which an agent that has learned with regions does not know",
            stacklevel=2,
        )
        return {}
    content: dict[str, dict[str, tuple[str, ...]]] = {}
    for scan in scans.names():
        regions = scans[scan]["region_panos"]
        objects = scans[scan]["object_regions"]
        inside: dict[str, list[str]] = {region: [f"region {scan} {region}"] for region in regions.names()}
        for name in objects.names():
            for region in objects[name].items():
                inside.setdefault(str(region.value), []).append(name)
        content[scan] = {
            viewpoint.text(): tuple(inside[region])
            for region in regions.names()
            for viewpoint in regions[region].items()
        }
    return content


class Mp3dGraphWorld(GraphWorld):
    """Real houses with the episodes of a split.

    Args:
        folder: Folder of the files.
        scans: The houses that the episodes are in.
        episodes: All of them.
        max_tokens: As `GraphWorld`.
        training_texts: Gives the texts that the vocabulary is made of.
    """

    def __init__(
        self,
        folder: Path,
        scans: Sequence[Scan],
        episodes: Sequence[VLNEpisode],
        max_tokens: int,
        training_texts: Callable[[Path], Sequence[str]],
    ) -> None:
        self.folder, self.scans, self.max_tokens = folder, tuple(scans), max_tokens
        self.graphs = tuple(scan.graph for scan in scans)
        self._episodes = tuple(episodes)
        self._number = {episode.id: k for k, episode in enumerate(episodes)}
        self._training_texts = training_texts

    @property
    def num_episodes(self) -> int:
        """Episodes of the split."""
        return len(self._episodes)

    def episode(self, number: int) -> VLNEpisode:
        """Episodes in the order of the file, the instructions of one path one after another."""
        return self._episodes[number]

    def episode_number(self, id: str) -> int:
        """Number of the episode with this id."""
        if id not in self._number:
            raise ValueError(f"no episode {id!r} in this split; ids have the form {self._episodes[0].id!r}")
        return self._number[id]

    def paths(self, house: int) -> list[Sequence[int]]:
        """Paths in the order of the file; their texts follow one another."""
        groups = groupby(range(len(self._episodes)), lambda k: (self._episodes[k].house, self._episodes[k].path))
        return [tuple(numbers) for (in_house, _), numbers in groups if in_house == house]

    def viewpoint_content(self, house: int) -> ViewpointContent:
        """Regions, objects and geometry; without `regions.json` geometry alone."""
        scan = self.scans[house]
        names = read_regions(self.folder).get(scan.graph.name, {})
        contents = tuple(names.get(viewpoint, ()) for viewpoint in scan.graph.viewpoints)
        return ViewpointContent(contents, scan.visible, scan.height)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words that occur at least 5 times in the training texts."""
        return frequent_words(self._training_texts(self.folder))


@cached_until_changed(8, FOLDER)
def load_r2r(folder: Path, split: str) -> Mp3dGraphWorld:
    """Load R2R's instructions; an id is `PATH_INDEX`, such as "6939_2".

    Args:
        folder: Result of `memenvs.data.find_vln_folder`.
        split: "train", "val_seen", "val_unseen" or "val_train_seen" (500 paths of train, listed in `splits.json`).

    Raises:
        FileNotFoundError: A file is missing; the message lists what is needed.
        ValueError: Unknown split, an episode without a goal, or a file is broken; the message names file and record.
    """
    if split not in R2R_SPLITS:
        raise ValueError(f"unknown split {split!r}; {choices_for(split, R2R_SPLITS)}")
    records = _r2r_records(folder, "train" if split == "val_train_seen" else split)
    if split == "val_train_seen":
        listed = read_json(find_file(folder, "splits.json"))["r2r_val_train_seen_path_ids"]
        kept = {path_id.number() for path_id in listed.items()}
        records = [record for record in records if record["path_id"].number() in kept]
        if not records:
            raise listed.error("a list with paths of the training split")
    houses = _Houses(folder, records)
    episodes = []
    for record in records:
        house, graph = houses.of(record)
        path = _path(record["path"], graph)
        if len(path) == 1:
            raise record["path"].error(_WITH_GOAL)
        heading = record["heading"].number()
        for k, text in enumerate(record["instructions"].items(1)):
            if not text.text().strip():
                raise text.error("an instruction with words")
            episodes.append(
                VLNEpisode(
                    id=f"{record['path_id'].value}_{k}",
                    house=house,
                    text=text.text(),
                    path=path,
                    heading=heading,
                    leg_ends=path[-1:],
                )
            )
    _check_ids(episodes, records[0].source)
    return Mp3dGraphWorld(folder, houses.scans, episodes, R2R_MAX_TOKENS, r2r_training_texts)


@cached_until_changed(8, FOLDER)
def load_cvdn(folder: Path, split: str, supervision: str, history: str) -> Mp3dGraphWorld:
    """Load CVDN's instances of navigation from dialogue history (NDH).

    An id is the `inst_idx` of the instance.

    Args:
        folder: Result of `memenvs.data.find_vln_folder`.
        split: "train", "val_seen" or "val_unseen".
        supervision: See `Dialogue.supervised_path`.
        history: See `Dialogue.text`.

    Raises:
        FileNotFoundError: A file is missing; the message lists what is needed.
        ValueError: Unknown split, an episode without a goal, or a file is broken; the message names file and record.
    """
    if split not in CVDN_SPLITS:
        raise ValueError(f"unknown split {split!r}; {choices_for(split, CVDN_SPLITS)}")
    records = _cvdn_records(folder, split)
    houses = _Houses(folder, records)
    episodes = [_dialogue(record, *houses.of(record)).episode(supervision, history) for record in records]
    _check_ids(episodes, records[0].source)
    return Mp3dGraphWorld(folder, houses.scans, episodes, CVDN_MAX_TOKENS, cvdn_training_texts)


def r2r_training_texts(folder: Path) -> list[str]:
    """Instructions of R2R's training split."""
    return [text.text() for record in _r2r_records(folder, "train") for text in record["instructions"].items()]


def cvdn_training_texts(folder: Path) -> list[str]:
    """R2R's training instructions and CVDN's training dialogues.

    Without CVDN's train file its val_seen is used, which has the same houses.
    """
    split = "val_seen" if _find(folder, _NDH.format("train")) is None else "train"
    turns = [
        turn["message"].text() for record in _cvdn_records(folder, split) for turn in record["dialog_history"].items()
    ]
    return r2r_training_texts(folder) + turns


def _r2r_records(folder: Path, split: str) -> list[Field]:
    return read_json(_find_split(folder, split, R2R_SPLITS[:3], "r2r_{}.json", "R2R_{}.json")).items(1)


def _cvdn_records(folder: Path, split: str) -> list[Field]:
    return read_json(_find_split(folder, split, CVDN_SPLITS, _NDH)).items(1)


class _Houses:
    """Scans of the records, numbered in the order of their names."""

    def __init__(self, folder: Path, records: Sequence[Field]) -> None:
        scans = read_scans(folder)
        for record in records:
            if record["scan"].text() not in scans:
                raise record["scan"].error(f"one of the {len(scans)} scans that have a graph in {str(folder)!r}")
        names = sorted({record["scan"].text() for record in records})
        self.scans = [scans[name] for name in names]
        self._number = {name: k for k, name in enumerate(names)}

    def of(self, record: Field) -> tuple[int, Graph]:
        """Number and graph of a record's house."""
        number = self._number[record["scan"].text()]
        return number, self.scans[number].graph


def _dialogue(record: Field, house: int, graph: Graph) -> Dialogue:
    turns = []
    for turn in record["dialog_history"].items():
        if turn["role"].text() not in _ROLES:
            raise turn["role"].error(f"one of {list(_ROLES)}")
        turns.append((_ROLES[turn["role"].text()], turn["message"].text()))
    start = _node(record["start_pano"]["pano"], graph)
    paths = {name: _path(record[name], graph) for name in ("planner_path", "player_path")}
    for name, path in paths.items():
        if path[0] != start:
            raise record[name].error(f"a path from the start {graph.viewpoints[start]}")
    if all(len(path) == 1 for path in paths.values()):  # a planner may stay where the goal is
        raise record["player_path"].error(_WITH_GOAL)
    return Dialogue(
        id=str(record["inst_idx"].value),
        house=house,
        target=record["target"].text(),
        turns=tuple(turns),
        heading=record["start_pano"]["heading"].number(),
        region=tuple(_node(viewpoint, graph) for viewpoint in record["end_panos"].items(1)),
        **paths,
    )


def _node(field: Field, graph: Graph) -> int:
    node = graph.node.get(field.text())
    if node is None:
        raise field.error(f"a viewpoint of scan {graph.name} that is included in its graph")
    return node


def _path(field: Field, graph: Graph) -> tuple[int, ...]:
    """A path whose nodes are neighbours or repeated; the repetitions are left out."""
    nodes = [_node(viewpoint, graph) for viewpoint in field.items(1)]
    path = nodes[:1]
    for k, node in enumerate(nodes[1:], start=1):
        if not np.isfinite(graph.adjacency[path[-1], node]):
            raise field.items()[k].error(f"a neighbour of {graph.viewpoints[path[-1]]}")
        if node != path[-1]:
            path.append(node)
    return tuple(path)


def _check_ids(episodes: Sequence[VLNEpisode], source: str) -> None:
    seen: set[str] = set()
    for episode in episodes:
        if episode.id in seen:
            raise ValueError(f"{source}: two episodes have the id {episode.id!r}")
        seen.add(episode.id)
