"""One page for each command of `memenvs`, from its parser."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from textwrap import fill

from generate.examples import EXAMPLES
from generate.markdown import code, page, section, table
from memenvs.cli import TABLES, make_parser
from memenvs.cli.common import Parser

#: Module with a table of commands -> title of its table.
TITLES = {"memenvs.cli.commands": "Environments", "memenvs.agents.cli": "Agents"}

#: A default at the end of a help text, in either form that the parsers use.
_DEFAULT = re.compile(r" ?\(default:? ([^()]*)\)|[;,] default (.*)$")
_INTRODUCTION = """
`memenvs`, or `python -m memenvs`, has all commands. Those about agents need `pip install ".[agents]"`, and say so where
it is missing. Every command has `--help`, and with `--json` it prints one JSON document.
"""


def make_pages() -> dict[str, str]:
    """Make the index and a page a command."""
    parsers = commands()
    pages = {page_name(name): _command(name, parser) for name, parser in parsers.items()}
    tables = [
        section(
            TITLES[module],
            table(
                ("command", "does"),
                [
                    (f"[`{name}`]({page_name(name)})", parsers[name].description)
                    for name in import_module(module).COMMANDS
                ],
            ),
        )
        for module in TABLES
    ]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])
    return {"index.md": page("Command line", _INTRODUCTION, *tables, toctree), **pages}


def commands() -> dict[str, Parser]:
    """Return the parser of each command, with its arguments."""
    (group,) = (action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    parsers: dict[str, Parser] = dict(group.choices)
    for parser in parsers.values():
        parser.declare()
    return parsers


def page_name(name: str) -> str:
    """File of a command's page, such as memenvs_train.md."""
    return f"memenvs_{name}.md".replace("-", "_")


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    arguments = [each for each in parser._actions if each.dest != "help"]
    required = [each for each in arguments if not each.option_strings]
    options = [each for each in arguments if each.option_strings]
    return page(
        f"memenvs {name}",
        parser.description or "",
        section("Usage", code(_usage(f"memenvs {name}", required, options), "text")),
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
        section("Examples", code("\n".join(EXAMPLES[name]), "bash") if name in EXAMPLES else ""),
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
