"""What a command takes, in words: the help text, and the entries of the command-line reference.

Names, types and defaults are those of the dataclass that a command is parsed into; the docstrings
under its fields are the texts.
"""

import ast
import inspect
import shutil
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from rollin.checks import flag
from rollin.sweeps.machine import cores

PLACEHOLDERS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
WIDEST = 100  # columns of a help text
TEXT = 26  # the column in which its texts begin


@dataclass(frozen=True)
class Option:
    """An argument of a command: how it is typed, what it does, what it is if not given."""

    name: str
    usage: str
    text: str
    default: str
    positional: bool


def groups(kind: type[Any], default: Any) -> Iterator[tuple[type[Any], list[Option]]]:
    """A dataclass and its options; then the same for each part that is a dataclass of its own."""
    docs = field_docs(kind)
    hints = get_type_hints(kind, include_extras=True)
    found, parts = [], []
    for field in fields(kind):
        value = _default(field, default)
        if is_dataclass(hints[field.name]):
            parts.append((hints[field.name], value))
            continue
        found.append(_option(field.name, hints[field.name], value, docs.get(field.name, "")))
    yield kind, [*found, *_short_forms(kind)]
    for part in parts:
        yield from groups(*part)


def _short_forms(kind: type[Any]) -> Iterator[Option]:
    """Words that stand for several options of a run."""
    for name, means in getattr(kind, "short_forms", {}).items():
        words = " ".join(f"{flag(option)} {value}" for option, value in means.items())
        text = f"Short for {words}; options that are given take precedence."
        yield Option(name, flag(name), text, "", positional=False)


def field_docs(kind: type[Any]) -> dict[str, str]:
    """Docstrings of fields; none of a class that is made while the command runs."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found: dict[str, str] = {}
    for here, after in pairwise(body):
        told = after.value if isinstance(after, ast.Expr) else None
        if isinstance(here, ast.AnnAssign) and isinstance(told, ast.Constant):
            found[ast.unparse(here.target)] = " ".join(str(told.value).split())
    return found


def whole_number_flags(kind: type[Any]) -> set[str]:
    """The options that take a whole number."""
    found: set[str] = set()
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            found |= whole_number_flags(hint)  # pyright: ignore[reportArgumentType]
        elif hint is int or int in get_args(hint):
            found.add(flag(name))
    return found


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
    metavar = _marked(marks, "metavar")
    if positional:
        usage = (metavar or name.upper()) + (" …" if get_origin(hint) is tuple else "")
        usage = f"[{usage}]" if default_text(name, value) else usage
    elif hint is bool:
        usage = f"{flag(name)}, --no-{flag(name)[2:]}"
    else:
        usage = f"{flag(name)} {metavar or _placeholder(hint)}"
    return Option(name, usage, text, default_text(name, value), positional)


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


def default_text(name: str, value: Any) -> str:
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


def usage_line(command: str, options: list[Option]) -> str:
    """How a command is typed, in a line."""
    words = [option.usage for option in options if option.positional]
    return " ".join(["rollin", command, *words, "[options]"])


def help_text(kind: type[Any], default: Any, command: str) -> str:
    """All that a command takes, for a terminal."""
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    (_, own), *parts = groups(kind, default)
    lines = [f"usage: {usage_line(command, own)}", ""]
    for paragraph in inspect.cleandoc(kind.__doc__ or "").split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), width), ""]
    for option in (option for option in own if option.positional):
        lines += _entry(option, width)
    lines += ["", "Options:", *_lines("-h, --help", "This text.", width)]
    for option in (option for option in own if not option.positional):
        lines += _entry(option, width)
    for part, inner in parts:
        title = inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].rstrip(".")
        lines += ["", *textwrap.wrap(f"{' '.join(title.split())}:", width)]
        for option in inner:
            lines += _entry(option, width)
    return "\n".join(lines)


def _entry(option: Option, width: int) -> list[str]:
    default = f" Default: {option.default}." if option.default else ""
    return _lines(option.usage, option.text + default, width)


def _lines(usage: str, text: str, width: int) -> list[str]:
    """An option beside its text, or above it if there is no room."""
    told = textwrap.wrap(text, max(width - TEXT, 20)) or [""]
    first = f"  {usage}"
    if len(first) + 2 <= TEXT:
        return [first.ljust(TEXT) + told[0], *(" " * TEXT + line for line in told[1:])]
    return [first, *(" " * TEXT + line for line in told)]
