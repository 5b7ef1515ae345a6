"""One look for all figures: colours that stay apart in print and for colour-blind readers.

A condition has the same colour and line on every chart.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from rollin.runs.files import write_atomically

SCRATCH = "#111827"
BASELINE = "#6b7280"
ROLLIN = "#7c3aed"
FRESH = "#d97706"
ADAPTIVE = "#0891b2"
BETA_COLOURS = {
    0.0: BASELINE,
    0.1: "#e960b0",
    0.2: "#cf41cf",
    0.3: "#b13ae1",
    0.5: "#9333e7",
    0.75: ROLLIN,
    0.9: "#330f7a",
}
"""ROLLIN's, from pink at a small β through violet to indigo at a large one."""
SPARE = ("#a16207", "#be123c", "#4d7c0f", "#1d4ed8", "#a21caf", "#0f766e")
"""For conditions that have no colour of their own."""
STYLES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 3)),
    (0, (3, 1, 1, 3)),
)

INK = "#374151"
GRID = "#e5e7eb"
PAPER = "#ffffff"
THEME = {
    INK: "ink",
    GRID: "grid",
    PAPER: "paper",
    SCRATCH: "scratch",
    BASELINE: "baseline",
    ROLLIN: "rollin",
    BETA_COLOURS[0.9]: "rollin-most",
    **{colour: f"spare-{number}" for number, colour in enumerate(SPARE, 1)},
}
"""Colours that a page may replace, as its CSS variables `--plot-…`: a dark one needs others."""
RC: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "svg.fonttype": "none",  # text that can be read, searched and restyled
    "svg.hashsalt": "rollin",  # the same figure is the same file
    "legend.frameon": False,
}
GROUP = "line:"  # how the id of an SVG group that belongs to a line begins

Look = dict[str, Any]


def beta_colour(beta: float) -> str:
    """Colour of a mixing ratio."""
    return BETA_COLOURS.get(round(beta, 4), ROLLIN if beta > 0 else BASELINE)


def own_colour(labels: Mapping[str, str]) -> str | None:
    """The colour that a method or a β has everywhere; None if the labels name neither."""
    method = labels.get("method")
    if method == "scratch":
        return SCRATCH
    if method == "baseline":
        return BASELINE
    if method == "fresh":
        return FRESH
    try:
        beta = float(labels["beta"])
    except (KeyError, ValueError):
        return ROLLIN if method == "rollin" else None
    if method in ("rollin", None):
        return BETA_COLOURS.get(round(beta, 4))
    return None


def looks_of(names: Sequence[Mapping[str, str]]) -> list[Look]:
    """A look for each condition, by its labels: colour by method, so that no two look alike."""
    spare = iter(SPARE * len(names))
    taken: dict[str, int] = {}
    found: list[Look] = []
    known: dict[str, str] = {}
    for labels in names:
        method = _method(labels)
        colour = own_colour(labels) or known.get(method) or next(spare)
        known.setdefault(method, colour)
        if taken.get(colour, 0) >= len(STYLES):  # no line of that colour is left
            colour = min((*SPARE, *BETA_COLOURS.values()), key=lambda c: taken.get(c, 0))
        style = STYLES[taken.get(colour, 0) % len(STYLES)]
        taken[colour] = taken.get(colour, 0) + 1
        found.append({"color": colour, "linestyle": style, "linewidth": 1.6})
    return found


def _method(labels: Mapping[str, str]) -> str:
    """What conditions of one colour share."""
    names = ("method", "beta") if "method" in labels or "beta" in labels else tuple(labels)
    return ",".join(f"{name}={labels.get(name)}" for name in names)


@contextmanager
def styled() -> Iterator[None]:
    """Use the style while inside, without touching global settings."""
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name may be in any script
        yield


def themed(colour: str) -> str:
    """A colour as CSS has it: one that a page may replace, or itself."""
    name = THEME.get(colour)
    return f"var(--plot-{name}, {colour})" if name else colour


def to_svg(figure: Figure, prefix: str = "", *, tight: bool = True) -> str:
    """The figure as an SVG element, to be put into a page.

    prefix: of its ids, which must not be those of another figure; tight: cut off the margins.
    """
    out = io.StringIO()
    box = "tight" if tight else None
    figure.savefig(out, format="svg", bbox_inches=box, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(f'id="{GROUP}([^"]*)"', r'data-line="\1"', text)  # several parts of one line
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    text = re.sub(r'( id="|url\(#|href="#)', lambda m: m[0] + prefix, text)
    for colour in THEME:
        text = re.sub(f': {colour}(?=[;"])', f": {themed(colour)}", text)
    return text


def to_png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    return out.getvalue()


PICTURES: dict[str, Callable[[Figure], bytes]] = {
    ".png": to_png,
    ".svg": lambda figure: to_svg(figure).encode(),
}


def save_picture(path: Path, figure: Figure) -> None:
    """Write a figure in the format that the file's name asks for."""
    write_atomically(path, PICTURES[path.suffix](figure))
