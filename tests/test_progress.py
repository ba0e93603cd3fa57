"""Long commands show the time left on terminals, and nothing in logs."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import memenvs.cli
from memenvs.progress import part_of
from memenvs.registry import ENVIRONMENTS
from memenvs.verbalization.language.question_sets import QuestionSet, write_questions
from tests.agents.papers.emv.small_runs import save_untrained

#: Commands that take less than five seconds, or show progress in another form.
QUICK = {"list", "test-set", "play", "assets", "score", "doctor", "ask", "verbalization", "study", "work", "board"}
QUICK |= {"presets", "report", "push", "pull", "train"}
QUICK |= {"trajectories"}  # tests/agents/papers/mtvm/test_trajectories.py
EPISODE = ["--env_kwargs", '{"max_episode_steps": 4}']
MEMENVS = {
    "rollout": (["Darkroom-v0", "--episodes", "2", *EPISODE], "playing"),
    "bench": (["Darkroom-v0", "--seconds", "0.1"], "measuring"),
    "house": (["--file", "made.jsonl", "--check", "Coverage-v0"], "checking homes"),
    "certify": (["Darkroom-Gap-v0", "--quick"], "certifying"),
    "record": (["Darkroom-v0", "--steps", "3", "--out", "video.gif"], "playing"),
    "warmup": ([], "compiling"),
}
#: Needs Minari.
DATASET = ["dataset", "Darkroom-v0", "--policy", "random", "--episodes", "2", "--out", "darkroom/random-v0", *EPISODE]
AGENTS = {
    "evaluate": (["run"], "playing the agent"),
    "paths": (["run", "--episodes", "2"], "playing"),
    "record": (["run", "--steps", "16"], "playing the agent"),
    "answer": (["model.zip", "answers.json"], "answering"),
}


class Terminal(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; in a test, as pytest replaces it before."""
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def names(parser: object) -> set[str]:
    return set(parser._subparsers._group_actions[0].choices)  # type: ignore[attr-defined]


def test_every_command_is_known() -> None:
    assert {*MEMENVS, *AGENTS, *QUICK, "dataset"} == names(memenvs.cli.make_parser())


def check_bar(main: Callable[[list[str]], int], command: list[str], text: str, terminal: Terminal) -> None:
    """Check that a command shows what is done and the time left, and nothing with --json."""
    assert main(command) == 0
    shown = terminal.getvalue()
    assert re.search(rf"{text}.* \d+%.* left ", shown), (command, shown)
    terminal.truncate(0)
    assert main([*command, "--json"]) == 0
    assert "left" not in terminal.getvalue(), command


@pytest.mark.slow
def test_environment_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.houses.procthor.made_houses import two_rooms, write_houses

    terminal = make_terminal(monkeypatch)
    monkeypatch.chdir(tmp_path)
    write_houses(tmp_path, two_rooms())
    monkeypatch.setattr("memenvs.cli.warmup.ENVIRONMENTS", ENVIRONMENTS[:1])
    for name, (arguments, text) in MEMENVS.items():
        check_bar(memenvs.cli.main, [name, *arguments], text, terminal)


def test_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    terminal = make_terminal(monkeypatch)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert memenvs.cli.main(DATASET) == 0
    assert re.search(r"playing 2 episodes.* \d+%.* left ", terminal.getvalue())


@pytest.mark.slow
def test_agent_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = make_terminal(monkeypatch)
    monkeypatch.chdir(tmp_path)
    save_untrained(tmp_path / "model.zip")
    write_questions(tmp_path / "answers.json", QuestionSet(scale="smoke", lengths=(1,), questions=1))
    train = ["train", "ci-smoke", "--out", "run", "--total_steps", "1024", "--no-evaluate", "--json"]
    assert memenvs.cli.main(train) == 0
    for name, (arguments, text) in AGENTS.items():
        check_bar(memenvs.cli.main, [name, *arguments], text, terminal)


def test_parts_of_the_work() -> None:
    shares: list[float] = []
    part_of(shares.append, 1, 4)(0.5)
    assert shares == [0.375]
