"""How Sphinx builds the site; `make docs` runs it."""

import sys
from pathlib import Path

import rollin

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "rollin"
author = "The rollin developers"
version = release = rollin.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "outside_links",
    "docstrings",
    "signatures",
    "cli_reference",
    "notebooks",
]
myst_heading_anchors = 3  # links such as #in-theory, as they work in the repository
highlight_language = "text"  # blocks without a language are commands and what they print
smartquotes = False  # or --help would become –help
autodoc_member_order = "bysource"
maximum_signature_line_length = 72
toc_object_entries = False

html_theme = "furo"
html_title = f"rollin {version}"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
