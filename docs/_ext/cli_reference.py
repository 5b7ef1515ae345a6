"""The directive `command`: usage and options of a command, as the command line itself takes them.

`{command} train point-umaze` shows what `rollin train point-umaze --help` prints.
"""

from collections.abc import Sequence
from typing import Any
from unittest import mock

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rollin.cli import main, options
from rollin.cli.options import Group, Option, usage_line


class _Asked(Exception):  # noqa: N818  (not an error)
    """Carries what the help of a command would have shown."""


def ask(command: list[str]) -> tuple[str, Sequence[Group]]:
    """Return what a command does and its groups of options."""

    def capture(command: str, about: str, groups: Sequence[Group]) -> str:
        raise _Asked(about, groups)

    with mock.patch.object(options, "help_text", capture):
        try:
            main([*command, "--help"])
        except _Asked as asked:
            about, groups = asked.args
            return about, groups
    raise ValueError(f"rollin {' '.join(command)} has no options.")


class Command(SphinxDirective):
    """Usage and options of `rollin` with these arguments."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A line of usage, then a list of options for each part."""
        command = self.arguments[0].split()
        about, ((_, own), *parts) = ask(command)
        usage = usage_line(command[0], own)
        prefix = "-".join(("rollin", *command))
        shown: list[nodes.Node] = [nodes.literal_block(usage, usage, language="text")]
        shown += [nodes.paragraph("", " ".join(p.split())) for p in about.strip().split("\n\n")]
        shown.append(_list(own, prefix))
        for title, inner in parts:
            shown += [nodes.rubric("", title), _list(inner, prefix)]
        return shown


def _list(options: list[Option], prefix: str) -> nodes.definition_list:
    """The options as terms with their meaning; each can be linked to."""
    shown = nodes.definition_list(classes=["options"])
    for option in options:
        term = nodes.term("", "", nodes.literal("", option.usage))
        term["ids"].append(nodes.make_id(f"{prefix}-{option.name}"))
        text = nodes.paragraph("", option.text)
        if default := option.default_text:
            text += [nodes.Text(" Default: "), nodes.literal("", default), nodes.Text(".")]
        shown += nodes.definition_list_item("", term, nodes.definition("", text))
    return shown


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
