"""Writes src/rollin/train_options.py, the options of `rollin.train` as editors complete them.

python -m docs.options      # after a change to the options of a run
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import rollin
from rollin.api import DIRECTORY_OPTIONS
from rollin.errors import FLAG
from rollin.runs.engines.agent_options import AgentConfig
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.files import write_atomically

PLACE = Path(rollin.__file__).parent / "train_options.py"
ARGUMENTS = ("beta", "steps", "seed")  # which train has by name
AS_LISTS = {"path": "Sequence[Sequence[float]]", "contexts": "Sequence[Sequence[float]]"}
"""Options that are JSON on the command line, and lists in Python."""
SHORT = {
    "geometric": "Draw recent transitions more often: sampling='geometric'.",
    "adaptive": "Adaptive thresholds and steps (our extension), which need neither R nor Δ.",
}
"""Short forms that stand for several options."""

HEAD = '''"""Options of `rollin.train` and `rollin.prepare` as type checkers and editors know them.

Written by `python -m docs.options` from the dataclasses of options; do not edit.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict
'''


def members(kind: type[Any]) -> Iterator[tuple[str, Any, str]]:
    """Name, type and help of all options, those of parts included."""
    hints, texts = get_type_hints(kind), docstrings(kind)
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            yield from members(hints[field.name])
        else:
            yield field.name, hints[field.name], texts[field.name]


def docstrings(kind: type[Any]) -> dict[str, str]:
    """The docstrings of a dataclass's fields."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for part, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            says = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            found[part.target.id] = str(after.value.value) if says else ""  # type: ignore[union-attr]
    return found


def type_text(hint: Any) -> str:
    """A type as it is written; sequences of any kind are taken for tuples."""
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(json.dumps(word) for word in get_args(hint))}]"
    if get_origin(hint) is tuple:
        return f"Sequence[{type_text(get_args(hint)[0])}]"
    if get_args(hint):
        return " | ".join(type_text(part) for part in get_args(hint))
    return "None" if hint is NoneType else hint.__name__


def options() -> dict[str, tuple[str, str]]:
    """Type and help of every option, of runs with our agents and with others."""
    agents = {name: hint for name, hint, _ in members(AgentConfig)}
    found = {}
    for name, hint, text in members(RollinConfig):
        other = agents.get(name)
        if get_origin(hint) is Literal and other is not None:
            hint = Literal[*dict.fromkeys((*get_args(hint), *get_args(other)))]
        typed = type_text(hint)
        if name in AS_LISTS:
            typed = f"{AS_LISTS[name]} | {typed}"
        found[name] = typed, FLAG.sub(lambda flag: flag[1].replace("-", "_"), text)
    return found | {name: ("bool", text) for name, text in SHORT.items()}


def written() -> str:
    """The module."""
    known = options()
    own, kept = set(ARGUMENTS), set(DIRECTORY_OPTIONS)
    parts = {
        "CommonOptions(TypedDict, total=False)": (
            "Options of every run.", [name for name in known if name not in own | kept]
        ),
        "TrainOptions(CommonOptions, total=False)": (
            "Options of `rollin.train`; those added here need `out`.",
            [name for name in known if name in kept],
        ),
        "PrepareOptions(CommonOptions, total=False)": (
            "Options of `rollin.prepare`.", [name for name in known if name in own]
        ),
    }  # fmt: skip
    text = HEAD
    for head, (about, names) in parts.items():
        text += f'\n\nclass {head}:\n    """{about}"""\n\n'
        for name in names:
            typed, says = known[name]
            words = textwrap.fill(
                " ".join(says.split()), 100, initial_indent='    """', subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            last = words.rsplit("\n", 1)[-1]
            words += '"""' if len(last) <= 97 else '\n    """'
            text += f"    {name}: {typed}\n{words}\n"
    return text


if __name__ == "__main__":
    write_atomically(PLACE, written().encode())
