"""Untrusted text, escaped for terminals and CSV.

Control characters could move a terminal's cursor, change its title or end a line early. Characters
without a width, or that turn the direction of text, make two names look the same. A spreadsheet
evaluates a cell that begins like a formula.
"""

import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_FORMLESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks by category that no font draws: fillers, joiners, variation selectors."""

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""The beginning of a formula in a spreadsheet, also in full-width letters or with apostrophes."""

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*", re.ASCII)
"""Numbers as rollin writes them: no formula, even if they begin with a sign."""

_END = "\r\n"  # cells that hold either letter are then in quotes; files have \n
LONGEST = 2000  # letters of a sentence, which may quote a file

_PLAIN = {
    "κ": "kappa", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "eps",
    "ζ": "zeta", "η": "eta", "θ": "theta", "μ": "mu", "ρ": "rho", "π": "pi", "ω": "omega",
    "σ": "sigma", "Σ": "sum", "∈": "in", "∞": "inf", "√": "sqrt", "≤": "<=", "≥": ">=", "≈": "~",
    "±": "+-", "×": "x", "·": "*", "−": "-", "–": "-", "…": "...", "→": "->", "◆": "*",
}  # fmt: skip
"""Letters of rollin's output in ASCII."""


def plainly(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for letters missing in an encoding, as a handler of `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lacking), error.end


def visible(text: str) -> str:
    """Return text with invisible characters replaced by their codes, except ends of lines."""
    if text.isprintable() and not _FORMLESS.search(text):
        return text
    return "".join(letter if _is_visible(letter) else _code(letter) for letter in text)


def _is_visible(letter: str) -> bool:
    if letter.isprintable():
        return not _FORMLESS.match(letter)
    return letter == "\n" or unicodedata.category(letter) == "Zs"


def _code(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, most: int | None = None) -> str:
    """Return `visible` text on one line, cut off if it is longer than `most`."""
    line = visible(" ".join(text.split("\n")))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; an apostrophe precedes text that a spreadsheet would read as a formula.

    Numbers stay as they are, also negative ones.
    """
    import csv  # here: `rollin --help` needs no tables

    lines = []
    for row in rows:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator=_END)
        writer.writerow([_quoted(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(out.getvalue().removesuffix(_END) + "\n")
    return "".join(lines)


def csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the rows of CSV without the apostrophes of `csv_text`; raise `csv.Error` if damaged."""
    import csv

    for row in csv.reader(lines, strict=True):
        yield [_unquoted(cell) for cell in row]


def _quoted(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBERS.fullmatch(cell) else cell


def _unquoted(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def short_repr(owner: object, **parts: Any) -> str:
    """Return `Name(part=value, …)` on one line, with numbers of four digits and cut-off values."""
    values = ", ".join(f"{name}={_short(part)}" for name, part in parts.items())
    return f"{type(owner).__name__}({values})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return one_line(f"[{', '.join(map(_short, value))}]", 40)
    return one_line(getattr(value, "__name__", None) or repr(value), 60)
