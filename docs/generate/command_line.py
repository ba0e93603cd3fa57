"""One page for each command of `memenvs` and `memenvs-agents`, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from generate.markdown import code, page, section, table
from memenvs.agents.cli.parser import make_parser as make_agents_parser
from memenvs.cli import make_parser

PROGRAMS = {"memenvs": make_parser, "memenvs-agents": make_agents_parser}


def make_pages() -> dict[str, str]:
    """Make the index and a page a command."""
    pages = {}
    for program, name, parser in commands():
        pages[page_name(program, name)] = _command(parser, f"{program} {name}")
    return {"index.md": _index(), **pages}


def commands() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield program, name and parser of each command."""
    for program, make in PROGRAMS.items():
        for name, parser in _subparsers(make()).choices.items():
            parser.prog = f"{program} {name}"
            yield program, name, parser


def page_name(program: str, name: str) -> str:
    """File of a command's page, such as memenvs_agents_train.md."""
    return f"{program}_{name}.md".replace("-", "_")


def _subparsers(parser: argparse.ArgumentParser) -> argparse._SubParsersAction:
    (found,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return found


def _index() -> str:
    names = [page_name(program, name) for program, name, _ in commands()]
    parts = []
    for program in PROGRAMS:
        rows = [
            (f"[{name}]({page_name(program, name)})", parser.description)
            for each, name, parser in commands()
            if each == program
        ]
        parts.append(section(f"`{program}`", table(("command", "does"), rows)))
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    return page("Command line", *parts, toctree)


def _command(parser: argparse.ArgumentParser, title: str) -> str:
    arguments = [each for each in parser._actions if each.help != argparse.SUPPRESS and each.dest != "help"]
    rows = [(_names(each, parser), (each.help or "") % {**vars(each), "prog": parser.prog}) for each in arguments]
    return page(
        title,
        parser.description or "",
        code(parser.format_usage().removeprefix("usage: "), "text"),
        table(("argument", "meaning"), rows),
        parser.epilog or "",
    )


def _names(argument: argparse.Action, parser: argparse.ArgumentParser) -> str:
    names = ", ".join(f"`{name}`" for name in argument.option_strings)
    return names or f"`{argument.metavar or argument.dest}`"
