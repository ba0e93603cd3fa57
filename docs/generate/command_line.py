"""One page for each command of `memenvs` and `memenvs-agents`, from their parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from textwrap import fill

from generate.examples import EXAMPLES
from generate.markdown import code, page, section, table
from memenvs.agents.cli.parser import make_parser as make_agents_parser
from memenvs.cli import make_parser

PROGRAMS = {"memenvs": make_parser, "memenvs-agents": make_agents_parser}

#: A default at the end of a help text, in either form that the parsers use.
_DEFAULT = re.compile(r" ?\(default:? ([^()]*)\)|[;,] default (.*)$")
_INTRODUCTION = """
`pip install .` installs `memenvs`, and `pip install ".[agents]"` also `memenvs-agents`, which is the same as
`python -m memenvs.agents`. Every command has `--help`, and with `--json` it prints one JSON document.
"""


def make_pages() -> dict[str, str]:
    """Make the index and a page a command."""
    found = list(commands())
    pages = {page_name(program, name): _command(program, name, parser) for program, name, parser in found}
    tables = []
    for program in PROGRAMS:
        rows = [
            (f"[`{name}`]({page_name(program, name)})", parser.description)
            for each, name, parser in found
            if each == program
        ]
        tables.append(section(f"`{program}`", table(("command", "does"), rows)))
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])
    return {"index.md": page("Command line", _INTRODUCTION, *tables, toctree), **pages}


def commands() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield program, name and parser of each command."""
    for program, make in PROGRAMS.items():
        (group,) = (each for each in make()._actions if isinstance(each, argparse._SubParsersAction))
        for name, parser in group.choices.items():
            yield program, name, parser


def page_name(program: str, name: str) -> str:
    """File of a command's page, such as memenvs_agents_train.md."""
    return f"{program}_{name}.md".replace("-", "_")


def _command(program: str, name: str, parser: argparse.ArgumentParser) -> str:
    arguments = [each for each in parser._actions if each.dest != "help"]
    required = [each for each in arguments if not each.option_strings]
    options = [each for each in arguments if each.option_strings]
    return page(
        f"{program} {name}",
        parser.description or "",
        section("Usage", code(_usage(f"{program} {name}", required, options), "text")),
        section(
            "Arguments",
            table(
                ("argument", "meaning"), [(f"`{_value(each)}`", _code_options(each.help or "")) for each in required]
            ),
        )
        if required
        else "",
        section("Options", table(("option", "default", "meaning"), [_option(each, parser) for each in options])),
        _code_options(parser.epilog or ""),
        section("Examples", code("\n".join(EXAMPLES[program][name]), "bash") if name in EXAMPLES[program] else ""),
    )


def _usage(command: str, required: list[argparse.Action], options: list[argparse.Action]) -> str:
    words = [command]
    for each in [*options, *required]:
        word = (
            _value(each) if not each.option_strings else " ".join(filter(None, (each.option_strings[-1], _value(each))))
        )
        words.append(word if each.required else f"[{word}]")
    shield = "\0"  # a word such as [--seed S] is not broken over lines
    text = fill(" ".join(word.replace(" ", shield) for word in words), 88, subsequent_indent="    ")
    return text.replace(shield, " ")


def _value(argument: argparse.Action) -> str:
    """Placeholder of the value of an argument; "" where it takes none."""
    if argument.nargs == 0:
        return ""
    name = argument.metavar or (argument.dest if not argument.option_strings else argument.dest.upper())
    if argument.choices is not None and argument.metavar is None:
        name = "{" + ",".join(map(str, argument.choices)) + "}"
    assert isinstance(name, str)
    return f"{name} [{name} ...]" if argument.nargs == "+" else name


def _option(option: argparse.Action, parser: argparse.ArgumentParser) -> tuple[str, str, str]:
    """Names, default and meaning of an option; its help may end with the default."""
    meaning = (option.help or "") % {"default": option.default}
    found = _DEFAULT.search(meaning)
    default = (found[1] or found[2]) if found else ""
    if not default and option.nargs != 0 and option.default not in (None, []):
        default = f"`{option.default}`"
    meaning = _DEFAULT.sub("", meaning)
    if option.choices is not None:
        meaning += f": {', '.join(f'`{each}`' for each in option.choices)}"
    if option.required:
        default = "required"
    for group in parser._mutually_exclusive_groups:
        if group.required and option in group._group_actions:
            others = [each.option_strings[-1] for each in group._group_actions if each is not option]
            default = f"required without {' and '.join(f'`{each}`' for each in others)}"
    names = ", ".join(f"`{name}`" for name in option.option_strings)
    return names, _code_options(default), _code_options(meaning)


def _code_options(text: str) -> str:
    """Set the names of options, and the values that follow them at once, as code."""
    return re.sub(r"(?<![`\w])--[\w-]+(?:\.\w+)*(?: \d+)?", lambda found: f"`{found[0]}`", text)
