"""One page for each command of `memenvs`, from its parser."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from textwrap import fill

from generate.examples import EXAMPLES
from generate.markdown import code, page, section, table
from memenvs.cli import TABLES, make_parser
from memenvs.cli.parser import Parser

#: Module with a table of commands -> title of its table.
TITLES = {"memenvs.cli.commands": "Environments", "memenvs.agents.cli": "Agents"}

#: A default in a help text.
_DEFAULT = re.compile(r" ?\(default: ([^()]*)\)")
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
    actions = next((part.choices for part in parser._actions if isinstance(part, argparse._SubParsersAction)), {})
    return page(
        f"memenvs {name}",
        parser.description or "",
        *_sections(name, parser, level=2),
        *(
            section(
                f"memenvs {name} {action}",
                "\n\n".join(filter(None, [own.description, *_sections(f"{name} {action}", own, 3)])),
            )
            for action, own in actions.items()
        ),
        section("Examples", code("\n".join(EXAMPLES[name]), "bash") if name in EXAMPLES else ""),
    )


def _sections(name: str, parser: argparse.ArgumentParser, level: int) -> list[str]:
    """Usage, arguments and options of a command, or of an action of one."""
    arguments = [action for action in parser._actions if argparse.SUPPRESS not in (action.dest, action.help)]
    arguments = [action for action in arguments if action.dest != "help"]
    required = [action for action in arguments if not action.option_strings]
    options = [action for action in arguments if action.option_strings]
    meanings = [(f"`{_value(action)}`", _code_options(_help(action))) for action in required]
    return [
        section("Usage", code(_usage(f"memenvs {name}", required, options), "text"), level),
        section("Arguments", table(("argument", "meaning"), meanings), level) if required else "",
        section(
            "Options", table(("option", "default", "meaning"), [_option(action, parser) for action in options]), level
        ),
        _code_options(parser.epilog or ""),
    ]


def _usage(command: str, required: list[argparse.Action], options: list[argparse.Action]) -> str:
    words = [command]
    for action in [*options, *required]:
        word = " ".join(filter(None, (*action.option_strings[-1:], _value(action))))
        words.append(word if action.required else f"[{word}]")
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
    return {"+": f"{name} [{name} ...]", "*": f"[{name} ...]"}.get(str(argument.nargs), name)


def _help(argument: argparse.Action) -> str:
    """Return the help of an argument as argparse prints it; of actions what each does."""
    if isinstance(argument, argparse._SubParsersAction):
        return "; ".join(f"`{action.dest}`: {action.help}" for action in argument._choices_actions)
    return (argument.help or "") % {"default": argument.default}


def _option(option: argparse.Action, parser: argparse.ArgumentParser) -> tuple[str, str, str]:
    """Names, default and meaning of an option; its help may end with the default."""
    meaning = _help(option)
    match = _DEFAULT.search(meaning)
    default = match[1] if match else ""
    if not default and option.nargs != 0 and option.default not in (None, [], argparse.SUPPRESS):
        default = f"`{option.default}`"
    meaning = _DEFAULT.sub("", meaning)
    if option.choices is not None:
        meaning += f": {', '.join(f'`{choice}`' for choice in option.choices)}"
    if option.required:
        default = "required"
    for group in parser._mutually_exclusive_groups:
        if group.required and option in group._group_actions:
            others = [other.option_strings[-1] for other in group._group_actions if other is not option]
            default = f"required without {' and '.join(f'`{other}`' for other in others)}"
    names = ", ".join(f"`{name}`" for name in option.option_strings)
    return names, _code_options(default), _code_options(meaning)


def _code_options(text: str) -> str:
    """Set the names of options, and the values that follow them at once, as code."""
    return re.sub(r"(?<![`\w])--[\w-]+(?:\.\w+)*(?: \d+)?", lambda match: f"`{match[0]}`", text)
