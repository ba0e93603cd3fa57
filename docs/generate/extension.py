"""Additions to Sphinx: generated pages, links, plain docstrings, equations in MathML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from generate import write_folders
from generate.docstrings import to_restructured_text
from generate.links import relink


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension; Sphinx calls this."""
    app.connect("builder-inited", lambda app: write_folders(Path(app.srcdir)))
    app.connect("source-read", _read_source)
    app.connect("autodoc-process-docstring", _read_docstring, priority=100)  # before napoleon, at 500
    app.connect("html-page-context", _shorten_navigation, priority=400)  # before furo's own, at 500
    app.add_html_math_renderer("mathml", (_inline_equation, None), (_equation, None))
    # Another `env_version` makes Sphinx read all pages again: for changes of how a page is read.
    return {"version": "1", "env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}


def _read_source(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = relink(source[0], (Path(app.srcdir) / page).parent)


def _read_docstring(app: Sphinx, what: str, name: str, object: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_restructured_text(lines)


def _shorten_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    # Furo's list names every page on every page, which was a third of the site.
    if "toctree" in context:
        context["toctree"] = partial(_collapsed, context["toctree"])


def _collapsed(toctree: Callable[..., str], **options: Any) -> str:
    return toctree(**{**options, "collapse": True})


def _inline_equation(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _equation(translator: Any, node: nodes.math_block) -> None:
    text = node.astext()
    if "\\\\" in text or "&" in text:  # aligned rows, as Sphinx's own renderers take them
        text = f"\\begin{{split}}{text}\\end{{split}}"
    translator.body.append(f"<p>{convert(text, display='block')}</p>")
    raise nodes.SkipNode
