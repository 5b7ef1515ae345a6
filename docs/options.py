"""Write src/rollin/train_options.py, the options of `rollin.train` as editors complete them.

python -m docs.options      # after a change to the options of a run
"""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import rollin
from rollin.api import DIRECTORY_OPTIONS
from rollin.cli.options import field_docs
from rollin.errors import FLAG
from rollin.runs.engines.agent import AgentConfig
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
    """Yield name, type and help of all options, also of nested dataclasses."""
    hints, texts = get_type_hints(kind), field_docs(kind)
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            yield from members(hints[field.name])
        else:
            yield field.name, hints[field.name], texts[field.name]


def type_text(hint: Any) -> str:
    """Return a type as source code; tuples become sequences of any kind."""
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(json.dumps(word) for word in get_args(hint))}]"
    if get_origin(hint) is tuple:
        return f"Sequence[{type_text(get_args(hint)[0])}]"
    if get_args(hint):
        return " | ".join(type_text(part) for part in get_args(hint))
    return "None" if hint is NoneType else hint.__name__


def options() -> dict[str, tuple[str, str]]:
    """Return type and help of every option, of runs with our agents and with others."""
    agents = {name: hint for name, hint, _ in members(AgentConfig)}
    known = {}
    for name, hint, text in members(RollinConfig):
        other = agents.get(name)
        if get_origin(hint) is Literal and other is not None:
            hint = Literal[*dict.fromkeys((*get_args(hint), *get_args(other)))]
        typed = type_text(hint)
        if name in AS_LISTS:
            typed = f"{AS_LISTS[name]} | {typed}"
        known[name] = typed, FLAG.sub(lambda flag: flag[1].replace("-", "_"), text)
    return known | {name: ("bool", text) for name, text in SHORT.items()}


def written() -> str:
    """Return the text of the module."""
    known = options()
    own = set(ARGUMENTS)
    needs_out = set(DIRECTORY_OPTIONS)
    parts = {
        "CommonOptions(TypedDict, total=False)": (
            "Options of every run.", [name for name in known if name not in own | needs_out]
        ),
        "TrainOptions(CommonOptions, total=False)": (
            "Options of `rollin.train`; those added here need `out`.",
            [name for name in known if name in needs_out],
        ),
        "PrepareOptions(CommonOptions, total=False)": (
            "Options of `rollin.prepare`.", [name for name in known if name in own]
        ),
    }  # fmt: skip
    text = HEAD
    for head, (about, names) in parts.items():
        text += f'\n\nclass {head}:\n    """{about}"""\n\n'
        for name in names:
            typed, about = known[name]
            words = textwrap.fill(
                " ".join(about.split()), 100, initial_indent='    """', subsequent_indent="    ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            last = words.rsplit("\n", 1)[-1]
            words += '"""' if len(last) <= 97 else '\n    """'
            text += f"    {name}: {typed}\n{words}\n"
    return text


if __name__ == "__main__":
    write_atomically(PLACE, written().encode())
