"""Sphinx: how the pages of this folder become a site. `nox -s docs` builds it, and a warning is an error."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "cpstore"
author = "The cpstore developers"
project_copyright = author
version = release = version_of("cpstore")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]

# Pages are Markdown, which reads well on its own; what Sphinx generates is asked for in reference/.
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
highlight_language = "none"

html_theme = "furo"
html_title = "cpstore"
html_copy_source = False
html_show_sphinx = False

# The reference: public names as applications import them, in the order in which they are written there.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
default_role = "code"  # docstrings have one backtick around names, as Markdown has

# A link that leads nowhere is an error. What other libraries have is not linked: their inventories would have
# to be downloaded, and a build needs no network.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(alembic|collections|datetime|langchain_core|langgraph|sqlalchemy|typing_extensions)\..*"),
    ("py:class", r"cpstore\.(names|saver)\..*"),  # what is only handed on
    ("py:class", r"(Async)?Engine|Names|Table|dict\[str"),  # of classes whose annotations stay text
]
