"""How the pages of this folder become a site: `make docs`.

Everything comes from installed packages and from this repository. Nothing is fetched while
building.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of

from sphinx.application import Sphinx

project = "hpsearch"
version = release = version_of("hpsearch")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"hpsearch {version}"
html_copy_source = False
html_show_copyright = False
smartquotes = False  # --option is two hyphens

# The pages are also read where the code is hosted. Links to headings, and ```mermaid for a diagram,
# are written as they are there.
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

# Docstrings: sections as Google writes them, code in single backticks.
default_role = "code"
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

# A name in the reference that leads nowhere is a mistake, except those of other projects.
nitpick_ignore_regex = [
    ("py:.*", r"(collections\.abc|numpy|optuna|pandas|pathlib|plotly|torch)\..*|Path|go\..*"),
    ("py:.*", r"os\.PathLike|SpecSource"),
]


def link_to_the_source(_app: Sphinx, page: str, text: list[str]) -> None:
    """Make links out of this folder downloads: what they lead to is not a page of the site."""
    if "/" not in page:
        text[0] = re.sub(r"\]\(\.\./", "](path:../", text[0])


def not_a_type(
    _app: Sphinx, what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Keep napoleon from taking what comes before a colon for the type of a field."""
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", link_to_the_source)
    app.connect("autodoc-process-docstring", not_a_type, priority=400)  # before napoleon, at 500
