"""Pages from notebooks: text, code and the outputs that are kept in the file; nothing is run.

A notebook is turned into the Markdown of the other pages, so that its links, code and tables look
like theirs. Pictures stay in the page.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


def markdown_of(notebook: dict[str, Any], file: str) -> str:
    """The whole notebook; file: its name, for those who want to run it."""
    title, *rest = [text for cell in notebook["cells"] for text in _texts(cell)]
    head, _, below = title.partition("\n")
    offer = f"*This page is a notebook: {{download}}`{file}`.*"
    return "\n\n".join([head, offer, below, *rest])


def _texts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_fenced(source, "python"), *(_shown(output) for output in cell["outputs"])]


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), "text")
    picture = output["data"].get("image/png")
    if picture is not None:
        return f"![What the cell above draws](data:image/png;base64,{picture.strip()})"
    return _fenced("".join(output["data"]["text/plain"]), "text")


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


class NotebookParser(MystParser):
    """Takes what Sphinx reads from an .ipynb file."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """As a page of Markdown."""
        name = Path(document["source"]).name
        super().parse(markdown_of(json.loads(inputstring), name), document)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parser; it comes after myst_parser, whose options it takes."""
    app.setup_extension("myst_parser")
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
