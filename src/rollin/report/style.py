"""One look for all figures: colours that stay apart in print and for colour-blind readers."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from rollin.runs.files import write_atomically

BASELINE = "#6b7280"
ROLLIN = "#7c3aed"
BETA_COLOURS = {
    0.0: BASELINE,
    0.1: "#0891b2",
    0.2: "#059669",
    0.3: "#65a30d",
    0.5: "#d97706",
    0.75: ROLLIN,
    0.9: "#db2777",
}
RC: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.6,
    "figure.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "rollin",  # the same figure is the same file
    "legend.frameon": False,
}


@contextmanager
def styled() -> Iterator[None]:
    """Use the style while inside, without touching anybody's global settings."""
    with mpl.rc_context(RC):
        yield


def beta_colour(beta: float) -> str:
    """Colour of a mixing ratio."""
    return BETA_COLOURS.get(round(beta, 4), ROLLIN if beta > 0 else BASELINE)


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element, to be put into a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


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
