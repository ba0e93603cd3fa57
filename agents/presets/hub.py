"""Trained agents as folders, on disk and on the Hugging Face Hub.

Reading one executes nothing. A folder has files of the folder of a run, and so is one:

| file | content |
|---|---|
| `config.json` | settings of the run |
| `checkpoint.zip` | weights, spaces, settings of policy and learner, and counters: a policy-only checkpoint |
| `versions.json` | versions of Python and packages with which the run began |
| `evaluation.json` | scores, where the run was evaluated |
| `README.md` | model card: scores, the commands that load the agent and that trained it |

A name on the Hub is "hf:ORGANISATION/NAME", or "hf:ORGANISATION/NAME@REVISION".
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import memenvs
from memenvs.agents.algorithms.checkpoint import drop_training_state
from memenvs.agents.experiments.config import CHECKPOINT, CONFIG, check_new
from memenvs.agents.experiments.directory import VERSIONS, RunDirectory
from memenvs.agents.experiments.evaluation_files import read_evaluation
from memenvs.agents.presets.model_card import PLACEHOLDER, model_card
from memenvs.files import check_writable, list_files, write_file
from memenvs.json_records import format_json

CARD = "README.md"
EVALUATION = "evaluation.json"
NEEDED = (CHECKPOINT, CONFIG)
"""Files that every agent has, in the order in which they are written: with the second the folder holds a run."""
OPTIONAL = (VERSIONS, EVALUATION)
HUB = "hf:"


def save_to_folder(run: str | Path, folder: str | Path, *, checkpoint: str | None = None) -> Path:
    """Write the trained agent of a run into a folder, with a model card.

    Args:
        run: Folder of the run.
        folder: Folder to write; made if it is missing, replaced if it holds an agent.
        checkpoint: Name of a checkpoint in the run's folder; None for the one that is evaluated.

    Returns:
        The folder.

    Raises:
        FileNotFoundError: There is no run, or it has no such checkpoint.
        FileExistsError: The folder holds something else than an agent.
        ValueError: Its checkpoint cannot be read, or the folder cannot be written.
    """
    with RunDirectory(run) as opened:
        files = _files(opened, checkpoint)
    folder = Path(folder)
    check_writable(folder, is_folder=True)
    if folder.exists() and not (folder / CARD).is_file() and list_files(folder):
        raise FileExistsError(f"{folder} must be a new or empty folder, or one with an agent to replace")
    for name in (CONFIG, *OPTIONAL):  # without settings an unfinished folder is refused
        (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        write_file(folder / name, data)
    return folder


def push_to_hub(
    run: str | Path, name: str, *, checkpoint: str | None = None, private: bool = False, token: str | None = None
) -> str:
    """Upload the trained agent of a run to the Hugging Face Hub, with a model card.

    Args:
        run: Folder of the run.
        name: "hf:ORGANISATION/NAME"; made if it is missing, else its agent is replaced by a new commit.
        checkpoint: As in `save_to_folder`.
        private: Make a new repository private.
        token: Token of the Hub; None for that of `hf auth login`.

    Returns:
        Address of the repository.

    Raises:
        ValueError: The name has another form, or see `save_to_folder`.
        FileNotFoundError: See `save_to_folder`.
        OSError: The Hub refuses, or cannot be reached.
    """
    from huggingface_hub import HfApi

    repository, revision = split_name(name)
    if revision is not None:
        raise ValueError(f"name must have no revision to push to, got {name!r}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = save_to_folder(run, Path(temporary) / "agent", checkpoint=checkpoint)
        card = (folder / CARD).read_text(encoding="utf-8").replace(PLACEHOLDER, name)
        write_file(folder / CARD, card.encode())
        api = HfApi(token=token)
        with _hub_errors(name):
            url = api.create_repo(repository, private=private, exist_ok=True)
            api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                commit_message=f"Agent of memenvs {memenvs.__version__}",
                delete_patterns=list(OPTIONAL),  # an agent without an evaluation must not keep that of an earlier one
            )
    return str(url)


def pull(name: str | Path, folder: str | Path) -> Path:
    """Make the folder of a run from a published agent, for `evaluate` and other commands.

    Args:
        name: Folder of `save_to_folder`, or name on the Hub.
        folder: Folder of the run; must not hold one. Training cannot resume in it.

    Returns:
        The folder.

    Raises:
        FileExistsError: The folder holds a run.
        FileNotFoundError, ValueError, OSError: As `fetch`.
    """
    target = Path(folder)
    check_new(target)
    source = fetch(name)
    for file in (source / name for name in (*OPTIONAL, *NEEDED)):
        if file.is_file():
            write_file(target / file.name, file.read_bytes())
    return target


def fetch(name: str | PathLike[str]) -> Path:
    """Return the local folder of an agent, downloaded first where the name is one on the Hub.

    Only the files of an agent are downloaded, whatever else a repository has.

    Raises:
        FileNotFoundError: There is no such folder or repository, or it lacks a file.
        ValueError: The name has another form.
        OSError: The Hub cannot be reached.
    """
    if not str(name).startswith(HUB):
        if not Path(name).is_dir():
            raise FileNotFoundError(f"no folder {str(name)!r}; a name on the Hugging Face Hub begins with {HUB!r}")
        _check_needed(str(name), [path.name for path in list_files(Path(name))])
        return Path(name)
    from huggingface_hub import HfApi

    repository, revision = split_name(str(name))
    api = HfApi()
    with _hub_errors(str(name)):
        info = api.model_info(repository, revision=revision)
        names = [sibling.rfilename for sibling in info.siblings or []]
        _check_needed(str(name), names)
        files = (*NEEDED, *(file for file in OPTIONAL if file in names))
        paths = [Path(api.hf_hub_download(repository, file, revision=info.sha)) for file in files]
    return paths[0].parent


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turn errors of the Hub's client into those of files.

    Raises:
        FileNotFoundError: There is no such repository, revision or file, or no access to it.
        OSError: Anything else, such as no connection.
    """
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    try:
        yield
    except HTTPError as error:  # the client's base class, which is no OSError
        response = error.response if isinstance(error, HfHubHTTPError) else None
        if response is not None and response.status_code in (401, 403, 404):
            raise FileNotFoundError(f"no agent {name!r} on the Hugging Face Hub, or no access: {error}") from None
        raise OSError(f"{name!r}: the Hugging Face Hub refuses or cannot be reached: {error}") from None


def _check_needed(source: str, names: list[str]) -> None:
    """Raise a FileNotFoundError if a file of an agent is missing in a folder or repository."""
    for name in NEEDED:
        if name not in names:
            raise FileNotFoundError(f"{source}: must hold an agent of memenvs, {name!r} is missing")


def split_name(name: str) -> tuple[str, str | None]:
    """Split "hf:ORGANISATION/NAME@REVISION" into repository and revision; None without one.

    Raises:
        ValueError: The name has another form.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    repository, separator, revision = name.removeprefix(HUB).partition("@")
    try:
        if not name.startswith(HUB) or repository.count("/") != 1 or bool(separator) != bool(revision):
            raise HFValidationError("no such form")
        validate_repo_id(repository)
    except HFValidationError as error:
        raise ValueError(
            f"name must be '{HUB}ORGANISATION/NAME' or '{HUB}...@REVISION', got {name!r} ({error})"
        ) from None
    return repository, revision or None


def _files(run: RunDirectory, checkpoint: str | None) -> dict[str, bytes]:
    """Content of the folder, the settings last."""
    smaller = io.BytesIO()
    drop_training_state(run.checkpoint_path(checkpoint), smaller)
    config = run.config.without_path()  # the weights of the first stage are in the checkpoint
    # the scores are those of the evaluated checkpoint
    optional = [name for name in (OPTIONAL if checkpoint is None else (VERSIONS,)) if (run.path / name).is_file()]
    files = {name: (run.path / name).read_bytes() for name in optional}
    evaluation = read_evaluation(run) if EVALUATION in files else {}
    if EVALUATION in files:
        files[EVALUATION] = format_json(evaluation).encode()  # earlier versions wrote NaN, which JSON does not have
    files[CARD] = model_card(config, evaluation, run.path.resolve().name).encode()
    return files | {CHECKPOINT: smaller.getvalue(), CONFIG: json.dumps(config.to_json(), indent=1).encode()}
