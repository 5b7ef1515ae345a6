"""Pictures to a video file: GIF with what is there, MP4 with the extra `video`."""

import io
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rollin.errors import RollinError
from rollin.runs.files import write_atomically


def check_video(path: Path) -> None:
    """Refuse a file that could not be written in the end, before anything is run."""
    if path.suffix not in (".gif", ".mp4"):
        raise RollinError(f"--video must end in .gif or .mp4, got {path}.")
    if not path.parent.is_dir():
        raise RollinError(f"--video: the directory {path.parent} does not exist.")
    if path.suffix == ".mp4" and find_spec("imageio_ffmpeg") is None:
        raise RollinError(
            "A video as .mp4 needs the extra video: pip install 'rollin[video]', or name a .gif."
        )


def write_video(path: Path, frames: list[NDArray[np.uint8]], frames_per_second: int) -> None:
    """Write all pictures, one after the other."""
    if path.suffix == ".gif":
        write_atomically(path, _gif(frames, frames_per_second))
        return
    imageio: Any = import_module("imageio.v2")  # only here: an extra

    temporary = path.with_name(f".{path.name}")  # the encoder wants a name that ends in .mp4
    options: dict[str, Any] = {"fps": frames_per_second, "macro_block_size": 2}
    try:
        imageio.mimwrite(temporary, frames, **options)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _gif(frames: list[NDArray[np.uint8]], frames_per_second: int) -> bytes:
    pictures = [Image.fromarray(frame).quantize(64) for frame in frames]
    data = io.BytesIO()
    milliseconds = max(20, round(1000 / frames_per_second))  # browsers show less as 100
    pictures[0].save(
        data, "GIF", save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0
    )
    return data.getvalue()
