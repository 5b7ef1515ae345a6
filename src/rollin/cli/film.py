"""Pictures to a video file: GIF with what is there, MP4 with the extra `video`."""

import io
import math
import zlib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rollin.errors import RollinError
from rollin.runs.files import remove_file, write_atomically
from rollin.runs.systems import patiently

Picture = NDArray[np.uint8]

MOST = {".gif": 30, ".mp4": 60}
"""Pictures a second: more are hardly seen, take long to render, and browsers slow a GIF down."""


class Film:
    """Pictures one after the other, kept compressed: thousands of them fit into memory."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[int, ...], bytes]] = []

    def add(self, picture: Picture) -> None:
        """Take a picture (height, width, 3)."""
        self._kept.append((picture.shape, zlib.compress(picture.tobytes(), 1)))

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Picture]:
        for shape, data in self._kept:
            yield np.frombuffer(zlib.decompress(data), np.uint8).reshape(shape)


def check_encoder(path: Path | None) -> None:
    """Refuse a file that nothing here can encode, before anything is run."""
    if path is not None and path.suffix == ".mp4" and find_spec("imageio_ffmpeg") is None:
        raise RollinError(
            "A video as .mp4 needs the extra video: pip install 'rollin[video]', or name a .gif."
        )


def thinning(path: Path, frames_per_second: int) -> int:
    """Of how many steps one is worth a picture: a robot takes up to 125 in a second."""
    return max(1, math.ceil(frames_per_second / MOST[path.suffix]))


def write_video(path: Path, film: Film, frames_per_second: float) -> None:
    """Write all pictures."""
    if path.suffix == ".gif":
        write_atomically(path, gif_of(film, frames_per_second))
        return
    imageio: Any = import_module("imageio.v2")  # only here: an extra
    temporary = path.with_name(f".{path.name}")  # the encoder wants a name that ends in .mp4
    try:
        with imageio.get_writer(temporary, fps=frames_per_second, macro_block_size=2) as writer:
            for picture in film:
                writer.append_data(picture)
        patiently(lambda: temporary.replace(path))
    finally:
        remove_file(temporary)


def gif_of(film: Film, frames_per_second: float, comment: str = "") -> bytes:
    """All pictures as a GIF that repeats; comment: kept in the file, and not shown."""
    milliseconds = round(1000 / frames_per_second)
    pictures = (Image.fromarray(picture).quantize(64) for picture in film)
    data = io.BytesIO()
    first = next(pictures)
    told = {"duration": milliseconds, "loop": 0, "comment": comment}
    first.save(data, "GIF", save_all=True, append_images=pictures, **told)
    return data.getvalue()
