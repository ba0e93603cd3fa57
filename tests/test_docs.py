"""The documentation says what the code does: pages, links, code and commands."""

import ast
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

import memenvs
from generate import FOLDERS, command_line, environments, make_folder
from generate.docstrings import to_restructured_text
from generate.examples import EXAMPLES
from generate.links import PROJECT_PAGES
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.presets import find_preset
from memenvs.cli import make_parser
from memenvs.cli.common import json_or_text, parse_settings
from memenvs.core import TrialEnv
from memenvs.docstrings import items, task_sections
from memenvs.registry import ENVIRONMENTS, find_environment
from memenvs.task import ENVIRONMENT_ARGUMENTS, TRIAL_OPTIONS, load_task, setting_names
from tests.processes import run_python

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PICTURES, TABLES = (str(DOCS / name) for name in ("pictures.py", "tables.py"))
#: Pages that people write.
WRITTEN = [
    *(ROOT / name for name in PROJECT_PAGES),
    *sorted((ROOT / "studies").glob("*/notes.md")),
    *sorted(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in FOLDERS),
]
PAGES = [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in WRITTEN]
#: Packages that are always there.
REQUIRED = {"memenvs", "gymnasium", "numpy", "torch", "stable_baselines3", "matplotlib", "PIL", "numba"}


STAND_IN = """
import imageio

class ImageSequenceClip:
    def __init__(self, frames, fps):
        self.frames, self.fps = frames, fps

    def write_videofile(self, path, logger):
        imageio.mimwrite(path, self.frames, fps=self.fps)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the line of its first line and its text."""

    language: str
    line: int
    text: str


def blocks(text: str) -> list[Block]:
    return [
        Block(found[1], text[: found.start()].count("\n") + 2, found[2])
        for found in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def script(text: str) -> str:
    """The Python of a page, each line at the number that it has there."""
    lines = [""] * (text.count("\n") + 1)
    for block in blocks(text):
        if block.language == "python":
            lines[block.line - 1 : block.line - 1 + block.text.count("\n")] = block.text.splitlines()
    return "\n".join(lines).rstrip()


def absent_packages(code: str) -> list[str]:
    """Packages that a script imports and that are not installed here."""
    imported = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            imported |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    return sorted(name for name in imported - REQUIRED if find_spec(name) is None)


def commands(text: str) -> Iterator[list[str]]:
    """Words of each line of a page's shell blocks that calls our program."""
    for block in blocks(text):
        if block.language not in ("bash", "sh", "shell", "console"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\||;", line.removeprefix("$ ")) if "'" not in line else [line]:
                words = shlex.split(part, comments=True)
                while words and re.match(r"\w+=", words[0]):  # a variable of the command's environment
                    del words[0]
                for position, word in enumerate(words):
                    if position == 0 and word == "memenvs":
                        yield words
                        break
                    if word == "-m" and words[position + 1] == "memenvs":
                        yield words[position + 1 :]
                        break


def check_command(words: list[str]) -> None:
    """Raise or exit where a command line is wrong; nothing is run."""
    options = make_parser().parse_args(words[1:])
    if options.command == "train":
        settings = [(name, json_or_text("0" if text == "SEED" else text)) for name, text in options.settings]
        with_overrides(find_preset(options.preset), settings)
    id = getattr(options, "id", None) or getattr(options, "target", None) or ""
    if options.command in ("push", "dataset", "record") and id.startswith(("runs/", "RUN", "agent", "hf:", "model")):
        return
    # else no id, or one of a package of the reader's, such as the template
    if id and ":" not in id and not id.startswith("corridor/"):
        spec = find_environment(id)
        names = {*setting_names(spec.task), "trial_episodes", "trial_steps", "max_episode_steps"}
        assert parse_settings(options.settings).keys() <= names


made_pages = cache(make_folder)


def titles(folder: str) -> set[str]:
    """Title of each page that is made from the code."""
    return {text.partition("\n")[0].removeprefix("# ").strip("`") for text in made_pages(folder).values()}


@pytest.mark.slow
def test_each_environment_and_command_has_a_page():
    assert titles("environments") == {"Environments", *(spec.name.rpartition("-v")[0] for spec in ENVIRONMENTS)}
    assert titles("command_line") == {"Command line", *(f"memenvs {name}" for name in command_line.commands())}
    assert set(EXAMPLES) == set(command_line.commands())


@pytest.mark.slow
@pytest.mark.parametrize("spec", ENVIRONMENTS, ids=lambda spec: spec.name)
def test_the_page_of_an_environment_is_complete_and_true(spec):
    task = load_task(spec.task)
    sections = task_sections(task)
    for title in ("", "Action", "Reward", "Termination", "Layout", "Source"):
        assert sections.get(title), f"the docstring of {task.__name__} and its bases has no {title!r}"
    env = TrialEnv(spec.task, **spec.defaults)
    info = env.reset(seed=0)[1]
    common = {"seed", "trial_id", "trial_start", "episode_index", "layout_id", "num_steps", "is_success"}
    common |= {"leg", "letter"}  # of itineraries
    documented = items(sections["Info"])
    assert info.keys() - common <= documented.keys()
    optional = {key for key, text in documented.items() if "where " in text.lower()}  # in some settings or tasks only
    assert documented.keys() - optional <= info.keys()
    of_layer = {"phase"} if {"gap", "led"} & spec.defaults.keys() else set()
    of_layer |= {"leg_start"} if "leg_flag" in spec.defaults else set()
    assert env.observation_space.spaces.keys() - of_layer <= items(sections["Observation"]).keys()
    assert items(sections["Options"]).keys() == set(task.option_names)
    for name in re.findall(r"(\w+)=", sections.get("Variants", "")):
        assert name in (*setting_names(task), *ENVIRONMENT_ARGUMENTS), f"variant {name}="
    page = made_pages("environments")[environments.page_name(spec)]
    for name in (*TRIAL_OPTIONS, *setting_names(task), *env.observation_space.spaces):
        assert f"| `{name}` |" in page
    env.close()


@pytest.mark.programs
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path):
    code = script(page.read_text())
    if not code:
        return
    absent = absent_packages(code)
    if absent:
        pytest.skip(f"needs {', '.join(absent)}")
    file = tmp_path / "code" / f"page_{page.stem}.py"  # torchrl.py would hide the package
    file.parent.mkdir()
    file.write_text(code)
    if find_spec("moviepy") is None:  # it holds Pillow below 12: a stand-in for the one class that Gymnasium imports
        clip = file.parent / "moviepy" / "video" / "io" / "ImageSequenceClip.py"
        clip.parent.mkdir(parents=True)
        clip.write_text(STAND_IN)
    folder = tmp_path / "folder"
    folder.mkdir()
    done = run_python(str(file), folder=folder)
    assert done.returncode == 0, f"{page}, the lines are those of the page:\n{done.stderr}"
    # a comment that begins with a number or a bracket is what is printed, up to a colon
    comments = re.findall(r"^print\(.*\)  # ((?:-?\d|[\[(]).*?)(?::|$)", code, re.MULTILINE)
    assert set(comments) <= set(done.stdout.splitlines()), f"{page} prints\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES)
def test_packages_of_no_extra_are_named_above_the_code(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {re.match(r"[\w-]+", each)[0] for name, needed in extras.items() if name != "dev" for each in needed}
    text = page.read_text()
    for module in {found[1] for found in re.finditer(r"^(?:import|from) (\w+)", script(text), re.MULTILINE)} - REQUIRED:
        names = {name.replace("_", "-").lower() for name in packages_distributions().get(module, [module])}
        if module not in sys.stdlib_module_names and not names & brought:
            before = re.split(rf"^(?:import|from) {module}\b", text, flags=re.MULTILINE)[0]
            assert re.search(rf"(?:needs|pip install) .*\b({'|'.join(names)})\b", before), f"{page} imports {module}"


@pytest.mark.programs
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_code_of_generated_pages_runs(folder, tmp_path):
    codes = {name: script(text) for name, text in made_pages(folder).items() if folder != "project"}
    for name, code in codes.items():
        if code and not absent_packages(code):
            (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "folder").mkdir()
    run_all = "import runpy, sys\nfor file in sys.argv[1:]:\n    runpy.run_path(file, run_name='__main__')\n"
    done = run_python("-c", run_all, *map(str, sorted(tmp_path.glob("*.py"))), folder=tmp_path / "folder")
    assert done.returncode == 0, f"docs/{folder}, the lines are those of the page:\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_parse(page):
    for words in commands(page.read_text()):
        check_command(words)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_commands_of_generated_pages_parse(folder):
    found = [words for text in made_pages(folder).values() for words in commands(text)]
    assert found or folder not in ("command_line", "presets")
    for words in found:
        check_command(words)


def test_blocks_and_commands_are_found():
    shell = "X=1 memenvs list --json  # all\ncd memenvs\n"
    text = f"# Title\n\n```python\na = 1\n```\n\n```bash\n{shell}```\n\n```python\nb = 2\n```\n"
    assert script(text) == "\n\n\na = 1" + 9 * "\n" + "b = 2"
    assert list(commands(text)) == [["memenvs", "list", "--json"]]
    text = "```bash\ntorchrun -m memenvs train demo && memenvs warmup\n```"
    assert list(commands(text)) == [["memenvs", "train", "demo"], ["memenvs", "warmup"]]
    assert absent_packages("import numpy, no_such_package.x\nfrom . import z") == ["no_such_package"]
    with pytest.raises(SystemExit):
        check_command(["memenvs", "rollout", "Darkroom-v0", "--polcy", "oracle"])
    with pytest.raises(ValueError, match="unknown setting"):
        check_command(["memenvs", "train", "demo", "--ppo.no_such", "1"])


def test_docstrings_become_restructured_text():
    lines = ["A *star* of `Memory`s, a_ and |b|.", "", "Args of `config`:", "    name: Its name,", "        or `None`."]
    expected = [r"A \*star\* of ``Memory``\ s, a\_ and \|b\|.", "", "Args of ``config``:", "", "- name: Its name,"]
    expected += ["  or ``None``.", "", "Args:", "    x: y"]
    assert to_restructured_text([*lines, "", "Args:", "    x: y"]) == expected


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_are_there(page):
    """Links work on GitHub, which has no generated pages; the site relinks them (`generate/links.py`)."""
    links = re.findall(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    targets = {link: (page.parent / link).resolve() for link in links}
    generated = {DOCS / folder for folder in FOLDERS}
    assert [link for link, target in targets.items() if not target.exists() or target.parent in generated] == []


def test_faults_of_a_built_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#x">fine</a><a href="#no">1</a><a href="c.html">2</a>'
        '<a href="b.html#y">3</a><script src="https://x.org/x.js"></script><a href="https://x.org">fine</a>'
    )
    (tmp_path / "b.html").write_text('<p id="x">B</p><a href="a.html#top">fine</a><img src="data:image/png;base64,">')
    done = run_python(str(ROOT / ".ci" / "check_site.py"), str(tmp_path))
    assert done.returncode == 1 and done.stdout.startswith("2 pages, 5 local links")
    faults = ["no such anchor #no", "no such file c.html", "no such anchor b.html#y", "fetches https://x.org/x.js"]
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == faults
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#x">fine</a>')
    assert run_python(str(ROOT / ".ci" / "check_site.py"), str(tmp_path)).returncode == 0


def test_every_picture_is_shown():
    text = "".join(page.read_text() for page in WRITTEN)
    for file in (DOCS / "images").rglob("*.*"):
        assert file.name in text, f"no page shows {file}"


def test_the_citation_is_of_this_version_and_has_the_date_of_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"  version = {{{memenvs.__version__}}},\n" in README.read_text()
    date = re.search(rf"^## {memenvs.__version__} \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [memenvs.__version__]
    assert re.findall(r"^date-released: (.+)$", citation, re.MULTILINE) == [date] * (date != "unreleased")


def test_the_line_of_pip_is_the_same_everywhere():
    pages = [README, DOCS / "getting_started.md", DOCS / "index.md"]
    texts = [page.read_text().replace("\\\n    ", "") for page in pages]
    (line,) = {re.search(r"^pip install .*\n", text, re.MULTILINE)[0] for text in texts}
    notebook = json.loads((ROOT / "examples" / "quickstart.ipynb").read_text())
    (cell,) = (cell for cell in notebook["cells"] if "skip-execution" in cell["metadata"].get("tags", ()))
    assert "".join(cell["source"]) == "%" + line.strip().replace("install", "install --quiet")
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert line.endswith(f'"memenvs[agents] @ git+{urls["Repository"]}"\n')


def test_the_same_pythons_are_supported_everywhere():
    texts = {name: (ROOT / name).read_text() for name in ("pyproject.toml", "README.md", ".ci/matrix", "Makefile")}
    pythons = re.findall(r"Programming Language :: Python :: (3\.\d+)", texts["pyproject.toml"])
    assert f'requires-python = ">={pythons[0]}"' in texts["pyproject.toml"]
    assert f"${{PYTHONS:-{' '.join(pythons)}}}" in texts[".ci/matrix"]
    assert f"memenvs needs Python {pythons[0]} or newer" in texts["Makefile"]
    for page in (texts["README.md"], (ROOT / "docs" / "getting_started.md").read_text()):
        assert f"You need Python {pythons[0]} to {pythons[-1]} on" in page
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f"python: [{', '.join(map(json.dumps, pythons))}]" in workflow
    assert re.findall(r"^ {12}(3\.\d+)$", workflow, re.MULTILINE) == pythons[::-1]


def test_the_readme_is_short():
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.programs
def test_the_table_of_pictures_is_that_of_the_registry():
    lines = README.read_text().splitlines()
    begin = lines.index("<!-- made by: python docs/pictures.py --table -->") + 1
    done = run_python(PICTURES, "--table")
    table = done.stdout.splitlines()
    assert done.returncode == 0 and lines[begin : begin + len(table)] == table, "put what --table prints there"
    assert lines[begin + len(table)] == ""  # nor rows of pictures that are gone
    shown = {spec.family for spec in ENVIRONMENTS if f"`{spec.id}`: {spec.remembers} |" in done.stdout}
    assert shown == {spec.family for spec in ENVIRONMENTS}


def test_pictures_are_small_and_move():
    folder = DOCS / "images"
    files = [folder / "agent.webp", *sorted(folder.glob("*-v0.webp"))]
    assert len(files) >= 9 and sum(file.stat().st_size for file in files) < 3_000_000
    for file in files:
        with Image.open(file) as picture:
            assert picture.n_frames > 4 and picture.info["loop"] == 0, file.name


@pytest.mark.programs
def test_pictures_are_those_that_the_command_makes(tmp_path):
    done = run_python(PICTURES, "Darkroom-v0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with (
        Image.open(tmp_path / "Darkroom-v0.webp") as new,
        Image.open(DOCS / "images" / "Darkroom-v0.webp") as kept,
    ):
        frames = [
            [np.asarray(each.convert("RGB"), int) for each in ImageSequence.Iterator(file)] for file in (new, kept)
        ]
    assert len(frames[0]) == len(frames[1])
    # another version of the compression rounds otherwise
    assert max(np.abs(a - b).mean() for a, b in zip(*frames, strict=True)) < 3


@pytest.mark.programs
def test_tables_are_those_that_the_command_prints():
    pages = [README.read_text(), (DOCS / "choosing.md").read_text()]
    names = []
    for page in pages:
        for name, table in re.findall(r"<!-- made by: python docs/tables.py (\w+) -->\n((?:\|.*\n)+)", page):
            names.append(name)
            done = run_python(TABLES, name)
            assert done.returncode == 0 and done.stdout.partition("\n\n")[2] == table, f"put what {name} prints there"
    assert names == ["verdicts", "memory", "choices"]
