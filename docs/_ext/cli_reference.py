"""The directive `command`: usage and options of a command, as the command line itself takes them.

`{command} train point-umaze` asks `rollin train point-umaze` for the dataclass that it would parse
its arguments into, and for the defaults of that task; names, types, defaults and the docstrings of
the fields, or the help text that a field is annotated with, make the text.
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from unittest import mock

import tyro
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from rollin.cli import main
from rollin.sweeps.machine import cores

PLACEHOLDERS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}


@dataclass(frozen=True)
class Option:
    """An argument of a command: how it is typed, what it does, what it is if not given."""

    name: str
    usage: str
    text: str
    default: str
    positional: bool


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


def groups(kind: type[Any], default: Any) -> Iterator[tuple[type[Any], list[Option]]]:
    """A dataclass and its options; then the same for each part that is a dataclass of its own."""
    docs = _field_docs(kind)
    hints = get_type_hints(kind, include_extras=True)
    found, parts = [], []
    for field in fields(kind):
        value = _default(field, default)
        if is_dataclass(hints[field.name]):
            parts.append((hints[field.name], value))
            continue
        found.append(_option(field.name, hints[field.name], value, docs.get(field.name, "")))
    yield kind, found
    for part in parts:
        yield from groups(*part)


def _field_docs(kind: type[Any]) -> dict[str, str]:
    """Docstrings of fields; none of a class that is made while the command runs."""
    try:
        docs = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
    except PycodeError:
        return {}
    own = {name: lines for (owner, name), lines in docs.items() if owner == kind.__qualname__}
    return {name: " ".join(lines).strip() for name, lines in own.items()}


def _default(field: Any, default: Any) -> Any:
    if default is not None:
        return getattr(default, field.name)
    return field.default_factory() if callable(field.default_factory) else field.default


def _option(name: str, hint: Any, value: Any, text: str) -> Option:
    marks: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
    positional = tyro.conf.Positional in marks
    text = text or _marked(marks, "help") or ""
    if tyro.conf.UseAppendAction in marks:  # given once for each value
        hint = get_args(hint)[0]
    flag = f"--{name.replace('_', '-')}"
    if positional:
        usage = name.upper() + (" …" if get_origin(hint) is tuple else "")
        usage = f"[{usage}]" if _shown(name, value) else usage
    elif hint is bool:
        usage = f"{flag}, --no-{flag[2:]}"
    else:
        usage = f"{flag} {_marked(marks, 'metavar') or _placeholder(hint)}"
    return Option(name, usage, text, _shown(name, value), positional)


def _marked(marks: list[Any], name: str) -> str | None:
    """What `tyro.conf.arg` says of an option."""
    return next((getattr(mark, name) for mark in marks if hasattr(mark, name)), None)


def _placeholder(hint: Any) -> str:
    """What stands for a value of a type."""
    if get_origin(hint) in (Union, types.UnionType):
        return "|".join(_placeholder(h) for h in get_args(hint) if h is not type(None))
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"{_placeholder(get_args(hint)[0])} …"
    return PLACEHOLDERS.get(hint, "VALUE")


def _shown(name: str, value: Any) -> str:
    """A default as it would be typed; nothing where the text says what happens without."""
    if name == "jobs" and value == cores():
        return "number of cores"  # not that of the machine which builds the site
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, int | float | str | Path):
        return str(value)
    return ""


class Command(SphinxDirective):
    """Usage and options of `rollin` with these arguments."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A line of usage, then a list of options for each part."""
        command = self.arguments[0].split()
        kind, default = ask(command)
        (_, options), *parts = groups(kind, default)
        words = " ".join(o.usage for o in options if o.positional)
        usage = f"rollin {command[0]} {words} [options]".replace("  ", " ")
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
