"""Text that comes from elsewhere, such as a stranger's file, made fit to be shown.

Control characters could move a terminal's cursor, change its title or end a line early.
"""

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10}
_CONTROLS |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_CONTROLS |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
"""Also those that turn the direction of what follows, and bytes of a path that are no letters."""

_PLAIN = {
    "κ": "kappa", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "eps",
    "ζ": "zeta", "η": "eta", "θ": "theta", "μ": "mu", "ρ": "rho", "π": "pi", "ω": "omega",
    "σ": "sigma", "Σ": "sum", "∈": "in", "∞": "inf", "√": "sqrt", "≤": "<=", "≥": ">=", "≈": "~",
    "±": "+-", "×": "x", "·": "*", "−": "-", "–": "-", "…": "...", "→": "->", "◆": "*",
}  # fmt: skip
"""Letters of ours in ASCII."""


def plainly(error: UnicodeError) -> tuple[str, int]:
    """What to write where an output's encoding lacks letters; see `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lacking), error.end


def visible(text: str) -> str:
    """Control characters as what they are called, but for the end of a line."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str, most: int | None = None) -> str:
    """The same without ends of lines, and cut off if it is longer than `most`."""
    line = visible(" ".join(text.split("\n")))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"
