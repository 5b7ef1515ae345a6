"""One look for all figures: colours that stay apart in print and for colour-blind readers."""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from rollin.report.charts import GROUP
from rollin.report.looks import BASELINE, ROLLIN, SCRATCH, SPARE
from rollin.runs.files import write_atomically

INK, GRID, PAPER = "#374151", "#e5e7eb", "#ffffff"
THEME = {
    INK: "ink",
    GRID: "grid",
    PAPER: "paper",
    SCRATCH: "scratch",
    BASELINE: "baseline",
    ROLLIN: "rollin",
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


@contextmanager
def styled() -> Iterator[None]:
    """Use the style while inside, without touching anybody's global settings."""
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
