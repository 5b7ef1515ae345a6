"""Figures that are made but not drawn, for tests of pages and commands and not of pictures.

Layout and drawing take most of the time of a report. What a figure holds is still computed and
put into it; what draws them is tested in tests/report.
"""

import base64
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from matplotlib.figure import Figure

from rollin.cli import plot
from rollin.report import sections

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)


@contextmanager
def undrawn() -> Iterator[None]:
    """While inside, every figure is saved as an empty picture."""

    def save(figure: Figure, out: Any, *, format: str, **options: Any) -> None:
        out.write(SVG if format == "svg" else PNG)

    with mock.patch.object(Figure, "savefig", save):
        yield


_drawn: dict[tuple[str, bytes], Any] = {}


@contextmanager
def drawn_once() -> Iterator[None]:
    """While inside, curves are drawn once: the same of the same data are the same picture."""
    save = Figure.savefig
    data: dict[Figure, bytes] = {}

    def kept(make: Callable[..., Figure]) -> Callable[..., Figure]:
        def figure_of(*given: Any, **named: Any) -> Figure:
            figure = make(*given, **named)
            data[figure] = pickle.dumps((make.__name__, given, named))
            return figure

        return figure_of

    def save_once(figure: Figure, out: Any, *, format: str, **options: Any) -> None:
        if figure not in data:
            save(figure, out, format=format, **options)
            return
        key = format, data[figure]
        if key not in _drawn:
            picture = io.StringIO() if format == "svg" else io.BytesIO()
            save(figure, picture, format=format, **options)
            _drawn[key] = picture.getvalue()
        out.write(_drawn[key])

    with (
        mock.patch.object(plot, "curves_figure", kept(plot.curves_figure)),
        mock.patch.object(sections, "panel_figure", kept(sections.panel_figure)),
        mock.patch.object(Figure, "savefig", save_once),
    ):
        yield
