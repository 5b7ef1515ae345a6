"""The directive `command`: usage and options of a command, as the command line itself takes them.

`{command} train point-umaze` asks `rollin train point-umaze` for the dataclass that it would parse
its arguments into, and for the defaults of that task; names, types, defaults and the docstrings of
the fields, or the help text that a field is annotated with, make the text.
"""

from typing import Any
from unittest import mock

import tyro
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rollin.cli import main
from rollin.cli.usage import Option, groups, usage_line


class _Asked(Exception):  # noqa: N818  (not an error)
    """Carries what a command would have parsed."""


def ask(command: list[str]) -> tuple[type[Any], Any]:
    """The dataclass of a command's options, and the defaults that it would begin with."""

    def tell(options: type[Any], *, default: Any, **rest: Any) -> None:
        raise _Asked(options, default)

    with mock.patch.object(tyro, "cli", tell):
        try:
            main(command)
        except _Asked as asked:
            options, default = asked.args
            return options, default
    raise ValueError(f"rollin {' '.join(command)} does not parse its options with tyro.")


class Command(SphinxDirective):
    """Usage and options of `rollin` with these arguments."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A line of usage, then a list of options for each part."""
        command = self.arguments[0].split()
        kind, default = ask(command)
        (_, options), *parts = groups(kind, default)
        usage = usage_line(command[0], options)
        prefix = "-".join(("rollin", *command))
        shown: list[nodes.Node] = [nodes.literal_block(usage, usage, language="text")]
        shown += [nodes.paragraph("", " ".join(p.split())) for p in _paragraphs(kind)]
        shown.append(_list(options, prefix))
        for part, inner in parts:
            title = (part.__doc__ or "").strip().rstrip(".")
            shown += [nodes.rubric("", title), _list(inner, prefix)]
        return shown


def _paragraphs(kind: type[Any]) -> list[str]:
    return (kind.__doc__ or "").strip().split("\n\n")


def _list(options: list[Option], prefix: str) -> nodes.definition_list:
    """The options as terms with their meaning; each can be linked to."""
    shown = nodes.definition_list(classes=["options"])
    for option in options:
        term = nodes.term("", "", nodes.literal("", option.usage))
        term["ids"].append(nodes.make_id(f"{prefix}-{option.name}"))
        text = nodes.paragraph("", option.text)
        if option.default:
            text += [nodes.Text(" Default: "), nodes.literal("", option.default), nodes.Text(".")]
        shown += nodes.definition_list_item("", term, nodes.definition("", text))
    return shown


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
