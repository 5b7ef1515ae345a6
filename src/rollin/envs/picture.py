"""A picture of a planar maze, without a display."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

SIZE = 320  # pixels, on both sides
FLOOR, STONE, GOAL, POINT, EDGE = "#f4f4f5", "#52525b", "#a7f3d0", "#7c3aed", "#059669"


def maze_picture(
    place: NDArray[np.floating],
    goal: NDArray[np.floating],
    low: float,
    high: float,
    wall: tuple[float, float, float, float],
    radius: float,
) -> NDArray[np.uint8]:
    """The square from `low` to `high` with one wall, a goal disc and the point; y goes up."""
    margin = 0.5
    scale = SIZE / (high - low + 2 * margin)

    def pixel(x: float, y: float) -> tuple[float, float]:
        return (x - low + margin) * scale, (high + margin - y) * scale

    def box(x: float, y: float, half: float) -> list[tuple[float, float]]:
        return [pixel(x - half, y + half), pixel(x + half, y - half)]

    image = Image.new("RGB", (SIZE, SIZE), STONE)
    draw = ImageDraw.Draw(image)
    draw.rectangle([pixel(low, high), pixel(high, low)], fill=FLOOR)
    draw.rectangle([pixel(wall[0], wall[3]), pixel(wall[1], wall[2])], fill=STONE)
    draw.ellipse(box(goal[0], goal[1], radius), fill=GOAL, outline=EDGE, width=2)
    draw.ellipse(box(place[0], place[1], 0.25), fill=POINT)
    return np.asarray(image)
