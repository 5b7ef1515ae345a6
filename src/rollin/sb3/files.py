"""What a callback keeps beside a model: one safetensors file, no pickle."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rollin.errors import RollinError, format_exception
from rollin.runs.files import Count, write_atomically
from rollin.untrusted import LARGEST_BUFFER, ExcessError, finite, parse_json, read_bounded

FORMAT = 2
KEY = "rollin"
Arrays = dict[str, NDArray[Any]]
Words = Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=6, max_length=6)]
Rest = Annotated[float, Meta(ge=-1e-6, le=1)]  # of an update, after rounding
Steps = Annotated[float, Meta(ge=0)]

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What values of another form lead to; RuntimeError: torch's."""


class Header(Struct):
    """The part of a safetensors header that holds text."""

    metadata: dict[str, str] = msgspec.field(name="__metadata__", default_factory=dict)


class WrapperSaved(Struct, forbid_unknown_fields=True):
    """The state of one `RollIn`."""

    stream: Words
    counts: tuple[Count, Count, Count, Count]


class CoordinatorSaved(Struct, forbid_unknown_fields=True):
    """The state of a `CurriculumCoordinator`."""

    teacher: dict[str, Any]
    envs: list[WrapperSaved]
    counts: tuple[Count, Count, Count, Count, Count]
    guide: Count


class ExplorerSaved(Struct, forbid_unknown_fields=True):
    """The state of an explorer beside its tensors; calls: its steps, if it is a DQN."""

    pos: Count
    full: bool
    updates: Count
    due: tuple[Rest, Rest]
    steps: tuple[Steps, Steps]
    calls: Count = 0  # 0.2.0 did not write it


class Saved(Struct, forbid_unknown_fields=True):
    """What a callback writes beside its tensors."""

    format: int
    school: CoordinatorSaved  # by its name in version 0.2.0
    level: Literal[1, 2]
    algorithm: str
    stable_baselines3: str
    stream: Words
    explorer: ExplorerSaved | None = None
    env_steps: Count | None = None  # 0.2.0 did not write it

    def __post_init__(self) -> None:
        if (self.explorer is None) != (self.level == 1):
            raise ValueError("level 2 has an explorer, and level 1 has none")


def beside(path: str | Path) -> Path:
    """The file that stands beside a model: model.zip has model.rollin.safetensors."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".zip") + ".rollin.safetensors")


def write(path: Path, tensors: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able values in one file, the old one or the new."""
    arrays = {  # NumPy gives a single number an axis when it makes it contiguous
        name: np.ascontiguousarray(value).reshape(np.shape(value))
        for name, value in tensors.items()
    }
    text = json.dumps({"format": FORMAT, **values}, allow_nan=False)
    write_atomically(path, save(arrays, {KEY: text}))


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Tensors and values of a file that `write` made."""
    if not os.path.lexists(path):
        raise RollinError(
            f"{path} does not exist: callback.save(model_path) writes it beside the model."
        )
    data = read_bounded(path, LARGEST_BUFFER)
    try:
        tensors = load(data)
        header = data[8 : 8 + int.from_bytes(data[:8], "little")]
        text = msgspec.json.decode(header, type=Header).metadata.get(KEY, "")
    except (SafetensorError, KeyError, ValueError) as error:  # also of dtypes NumPy lacks
        raise RollinError(
            f"{path} is damaged, or was not written by a callback: {format_exception(error)}."
        ) from error
    try:
        values = parse_json(text, finite)
    except ExcessError as error:
        raise RollinError(f"{path} cannot be read: {error}. Restore the original.") from error
    except ValueError as error:
        raise RollinError(f"{path} was not written by RollInCallback.save.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise RollinError(
            f"{path} has a format that this version does not know: take the version of rollin that "
            "wrote it."
        )
    return tensors, values


@contextmanager
def taken_from(path: Path) -> Iterator[None]:
    """Inside, what does not fit into teacher or model raises one sentence."""
    try:
        yield
    except _DAMAGE as error:
        raise RollinError(
            f"{path} does not hold what this callback keeps ({format_exception(error)}): it is "
            "damaged, or teacher and model are not as they were. Restore the file that "
            "callback.save wrote."
        ) from error


def under(tensors: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The tensors whose names begin so, without that."""
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
