"""Options of a command: fields of a dataclass as arguments, their docstrings as the help.

`read` turns the words of a command line into values by name; `parse` makes the dataclass of them.
`option_groups` also feeds the reference in the documentation.
"""

import ast
import inspect
import math
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rollin.checks import MOST_STEPS, check_literal, did_you_mean, flag
from rollin.errors import RollinError

Options = TypeVar("Options")

PLACEHOLDERS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
WIDEST = 100  # columns of a help text
TEXT = 26  # the column in which its texts begin
WHOLE = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d{1,2})?")  # 20000, 20_000, 2e4, 1.5e6


@dataclass(frozen=True)
class Arg:
    """How a field is typed, where its name and its type do not say it.

    repeat: the option is given once for each value; aliases: older names, hidden in the help.
    """

    metavar: str = ""
    positional: bool = False
    repeat: bool = False
    aliases: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Option:
    """An argument of a command; owner: the dataclass that has it as a field."""

    name: str
    hint: Any
    default: Any
    owner: type[Any]
    arg: Arg = Arg()

    @property
    def flags(self) -> set[str]:
        """Every name that is accepted, hidden ones included."""
        return {flag(self.name), *map(_dashed, (self.name, *self.arg.aliases))}

    @property
    def many(self) -> bool:
        """Whether it takes several values."""
        return get_origin(self.hint) is tuple

    @property
    def most(self) -> float:
        """How many words may follow it."""
        return math.inf if self.many and not self.arg.repeat else 1

    @property
    def kind(self) -> Any:
        """The type of one value."""
        hint = get_args(self.hint)[0] if self.many else self.hint
        return next((kind for kind in _members(hint) if kind is not NoneType), hint)

    @property
    def usage(self) -> str:
        """How it is typed."""
        metavar = self.arg.metavar or _placeholder(self.kind)
        if self.arg.positional:
            usage = f"{metavar} …" if self.many else metavar
            return f"[{usage}]" if self.default is not MISSING else usage
        if self.hint is bool:
            return f"{flag(self.name)}, --no-{flag(self.name)[2:]}"
        if self.hint is NoneType:
            return flag(self.name)
        return f"{flag(self.name)} {metavar}{' …' if self.most > 1 else ''}"

    @property
    def text(self) -> str:
        """What it does."""
        return self.arg.text or field_docs(self.owner).get(self.name, "")

    @property
    def default_text(self) -> str:
        """Its default as it would be typed; empty where the text says what happens without it."""
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        if isinstance(self.default, tuple):
            return " ".join(map(str, self.default))
        if isinstance(self.default, int | float | str | Path):
            return str(self.default).removesuffix(".0")
        return ""


Group = tuple[str, list[Option]]
"""A title and the options below it."""


def option_groups(kind: type[Any], default: Any = None) -> list[Group]:
    """Return the options of a dataclass, then those of each part that is a dataclass itself.

    default: an instance whose values are the defaults, in place of the dataclass's own.
    """
    hints = get_type_hints(kind, include_extras=True)
    own: list[Option] = []
    parts: list[Group] = []
    for field in fields(kind):
        hint = hints[field.name]
        if default is not None:
            value = getattr(default, field.name)
        else:
            value = field.default if field.default_factory is MISSING else field.default_factory()
        if is_dataclass(hint):
            parts += option_groups(hint, value)  # pyright: ignore[reportArgumentType]
            continue
        plain, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        arg = next((mark for mark in marks if isinstance(mark, Arg)), Arg())
        own.append(Option(field.name, plain, value, kind, arg))
    for name, means in getattr(kind, "short_forms", {}).items():
        words = " ".join(f"{flag(option)} {value}" for option, value in means.items())
        text = f"Short for {words}; options that are given take precedence."
        own.append(Option(name, NoneType, None, kind, Arg(text=text)))
    title = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].rstrip(".")
    return [(" ".join(title.split()), own), *parts]


@cache
def field_docs(kind: type[Any]) -> Mapping[str, str]:
    """Return the docstrings of fields; empty for a class that has no source file.

    `{names}` stands for the keys of the table that the field's metadata "names" as module:table.
    """
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    for here, after in pairwise(getattr(tree, "body", ())):
        match here, after:
            case ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                found[ast.unparse(here.target)] = " ".join(text.split())
    for field in fields(kind):
        if table := field.metadata.get("names"):
            module, _, name = table.partition(":")
            names = ", ".join(getattr(import_module(module), name))
            found[field.name] = found[field.name].replace("{names}", names)
    return found


# ------------------------------------------------------------------ reading a command line


def parse(kind: type[Options], arguments: Sequence[str], command: str) -> Options:
    """Return a dataclass of options from a command line; raise a sentence on misuse."""
    return make(kind, read(option_groups(kind), arguments, command, kind.__doc__ or ""))


def make(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return the dataclass of options, its parts included, with defaults for what is not given."""
    own: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            own[name] = make(hint, values)  # pyright: ignore[reportArgumentType]
        elif name in values:
            own[name] = values[name]
    return kind(**own)


def read(
    groups: Sequence[Group],
    arguments: Sequence[str],
    command: str,
    about: str,
    unknown: dict[str, list[str] | bool] | None = None,
) -> dict[str, Any]:
    """Return the given values by name; print the help and exit if it is asked for.

    command: the words after `rollin`, as a shell takes them; about: begins the help; unknown:
    takes options that are in no group, which are refused without it.
    """
    if {"-h", "--help"} & set(arguments):
        print(help_text(command, about, groups))
        raise SystemExit(0)
    options = [option for _, group in groups for option in group]
    named = {name: option for option in options for name in option.flags}
    values: dict[str, Any] = {}
    plain: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not _is_flag(word):
            plain.append(word)
            continue
        typed, equals, value = word.partition("=")
        name = _dashed(typed)
        on = name in named or not name.startswith("--no-")
        option = named.get(name if on else f"--{name[5:]}")
        if option is None or not (on or option.hint is bool):
            if unknown is None:
                near = did_you_mean(name[2:], [known[2:] for known in named])
                near = near.replace("mean ", "mean --")
                raise RollinError(f"Unknown option {typed}.{near} {_see_help(command)}")
            given = [value] if equals else _take(words, math.inf)
            unknown[name.removeprefix("--" if on else "--no-").replace("-", "_")] = given or on
        elif option.hint in (bool, NoneType):
            if equals:
                raise RollinError(f"{typed} takes no value, got {value}. {_see_help(command)}")
            values[option.name] = on
        else:
            given = [value] if equals else _take(words, option.most)
            before = values.get(option.name, ()) if option.arg.repeat else ()
            values[option.name] = _value(typed, option, given, before)
    return values | _positional(options, plain, command)


def _positional(options: Sequence[Option], words: list[str], command: str) -> dict[str, Any]:
    """Return the values that are typed without the name of an option."""
    values: dict[str, Any] = {}
    for option in options:
        if option.arg.positional:
            given = words if option.many else words[:1]
            words = words[len(given) :]
            if given:
                values[option.name] = _value(option.usage, option, given)
            elif option.default is MISSING:
                what = option.text[:1].lower() + option.text[1:]
                raise RollinError(
                    f"rollin {command} needs {option.usage}: {what} {_see_help(command)}"
                )
    if words:
        raise RollinError(f"Unexpected argument {words[0]!r}. {_see_help(command)}")
    return values


def _is_flag(word: str) -> bool:
    """Return whether a word is an option, and neither a value such as -1 nor a lone dash."""
    return re.match(r"--?[A-Za-z]", word) is not None


def _take(words: list[str], most: float) -> list[str]:
    """Remove and return the values that follow an option."""
    values: list[str] = []
    while words and len(values) < most and not words[0].startswith("--"):
        values.append(words.pop(0))
    return values


def _value(typed: str, option: Option, given: list[str], before: tuple[Any, ...] = ()) -> Any:
    """Return the value of an option from its words; before: what it was given already."""
    if not given and option.most == 1:
        raise RollinError(f"{typed} needs a value: {option.usage}.")
    values = tuple(_converted(typed, text, option) for text in given)
    return (*before, *values) if option.many else values[0]


def _converted(typed: str, text: str, option: Option) -> Any:
    """Return one value of an option from its word."""
    kind = option.kind
    if get_origin(kind) is Literal:
        check_literal(typed, text, kind)
        return text
    try:
        if kind is int:
            return whole_number(text)
        return number(text) if kind is float else kind(text)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        if option.many:
            wanted = "numbers with spaces between them, such as 32 32"
        else:
            wanted = "a whole number" if kind is int else "a number or a fraction such as 1/24"
        raise RollinError(f"{typed} must be {wanted}, got {text!r}.") from error


def whole_number(text: str) -> int:
    """Return the value of 20000, 20_000, 2e4 or 1.5e6."""
    if WHOLE.fullmatch(text):
        value = Fraction(text.replace("_", ""))
        if value.denominator == 1 and abs(value) < MOST_STEPS:
            return int(value)
    return int(text)


def number(text: str) -> float:
    """Return the value of a number, or of a fraction such as 1/24; nan and inf are none."""
    value = float(Fraction(text.replace(" ", "")) if "/" in text else text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return (hint,) if get_origin(hint) in (Literal, tuple, None) else get_args(hint)


def _dashed(name: str) -> str:
    return f"--{name.lstrip('-')}".replace("_", "-")


def _see_help(command: str) -> str:
    return f"rollin {command} --help lists all options."


# ------------------------------------------------------------------ the help text


def help_text(command: str, about: str, groups: Sequence[Group]) -> str:
    """Return all that a command takes, for a terminal."""
    width = help_width()
    (_, own), *parts = groups
    lines = [f"usage: {usage_line(command, own)}", "", *paragraphs(about, width)]
    for option in own:
        if option.arg.positional:
            lines += entry(option, width)
    lines += ["", "Options:", *beside("-h, --help", "Show this help and exit.", width)]
    for option in own:
        if not option.arg.positional:
            lines += entry(option, width)
    for title, options in parts:
        lines += ["", *textwrap.wrap(f"{title}:", width)]
        for option in options:
            lines += entry(option, width)
    return "\n".join(lines)


def usage_line(command: str, options: Sequence[Option]) -> str:
    """Return how a command is typed."""
    words = [option.usage for option in options if option.arg.positional]
    return " ".join(["rollin", command.split()[0], *words, "[options]"])


def help_width() -> int:
    """Return the columns of a help text."""
    return min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)


def paragraphs(text: str, width: int) -> list[str]:
    """Return the lines of a text, an empty one after each of its paragraphs."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), width, break_on_hyphens=False), ""]
    return lines


def entry(option: Option, width: int) -> list[str]:
    """Return the lines about an option."""
    default = f" Default: {option.default_text}." if option.default_text else ""
    return beside(option.usage, option.text + default, width)


def beside(usage: str, text: str, width: int) -> list[str]:
    """Return a text beside a usage, or below it if there is no room."""
    wrapped = textwrap.wrap(text, max(width - TEXT, 20), break_on_hyphens=False) or [""]
    first = f"  {usage}"
    if len(first) + 2 <= TEXT:
        return [first.ljust(TEXT) + wrapped[0], *(" " * TEXT + line for line in wrapped[1:])]
    return [first, *(" " * TEXT + line for line in wrapped)]


def _placeholder(kind: Any) -> str:
    """Return what stands for a value of a type."""
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return PLACEHOLDERS.get(kind, "VALUE")
