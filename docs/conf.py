"""Settings of the documentation site; `make docs` builds it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for generate

import memenvs

project = "memenvs"
author = "The memenvs developers"
copyright = author
release = memenvs.__version__
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generate.extension"]
exclude_patterns = ["generate"]
suppress_warnings = ["ref.python"]  # several attributes of the same name: a type named in a signature is then no link

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # so that PAGE.md#heading works, as on GitHub

smartquotes = False  # "train" is a value

# The docstrings are plain text with code in `backticks`; generate/docstrings.py makes reStructuredText of them.
default_role = "code"
napoleon_use_ivar = True
napoleon_custom_sections = [
    *((name, "params_style") for name in ("Observation", "Options", "Info", "Formats", "Settings", "Frames")),
    *("Action", "Reward", "Termination", "Layout", "Variants", "Batches", "Source"),
    *("Idea", "Equations", "State", "Cost", "When to use", "When not to use", "Difference from the paper"),
]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"memenvs {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_dark_style = "github-dark"
html_use_index = False  # one list of all names is wider than a page; the search finds them
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {"top_of_page_buttons": []}  # most pages have no source file to view or edit
