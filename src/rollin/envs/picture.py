"""Pictures of planar tasks, without a display."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

SIZE = 320  # pixels on both sides, unless another size is asked for
MARGIN = 0.5  # metres around what is shown
FLOOR, STONE, GOAL, POINT, EDGE = "#f4f4f5", "#52525b", "#a7f3d0", "#7c3aed", "#059669"


class Picture:
    """A square picture of the box from (left, bottom) to (right, top), in metres; y goes up.

    size: pixels on both sides.
    """

    def __init__(
        self, left: float, right: float, bottom: float, top: float, size: int = SIZE
    ) -> None:
        self._left, self._top = left - MARGIN, top + MARGIN
        self._scale = size / (max(right - left, top - bottom) + 2 * MARGIN)
        self._image = Image.new("RGB", (size, size), STONE)
        self._draw = ImageDraw.Draw(self._image)

    def _pixel(self, x: float, y: float) -> tuple[float, float]:
        return (x - self._left) * self._scale, (self._top - y) * self._scale

    def block(self, x0: float, x1: float, y0: float, y1: float, colour: str) -> None:
        """A filled rectangle."""
        self._draw.rectangle([self._pixel(x0, y1), self._pixel(x1, y0)], fill=colour)

    def disc(
        self, place: Iterable[float], radius: float, colour: str, edge: str | None = None
    ) -> None:
        """A filled circle."""
        x, y = place
        box = [self._pixel(x - radius, y + radius), self._pixel(x + radius, y - radius)]
        self._draw.ellipse(box, fill=colour, outline=edge, width=2 if edge else 0)

    def array(self) -> NDArray[np.uint8]:
        """The picture's pixels, (size, size, 3)."""
        return np.asarray(self._image)
