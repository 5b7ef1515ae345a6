"""What a callback keeps beside a model: one safetensors file, no pickle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rollin.errors import RollinError, reason
from rollin.regular import check_regular
from rollin.runs.files import write_atomically

FORMAT = 2
KEY = "rollin"
Arrays = dict[str, NDArray[Any]]


def beside(path: str | Path) -> Path:
    """The file that stands beside a model: model.zip has model.rollin.safetensors."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".zip") + ".rollin.safetensors")


def write(path: Path, tensors: Mapping[str, NDArray[Any]], told: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able values in one file, the old one or the new."""
    kept = {  # NumPy gives a single number an axis when it makes it contiguous
        name: np.ascontiguousarray(value).reshape(np.shape(value))
        for name, value in tensors.items()
    }
    text = json.dumps({"format": FORMAT, **told}, allow_nan=False)
    write_atomically(path, save(kept, {KEY: text}))


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Tensors and values of a file that `write` made."""
    try:
        check_regular(path)
        with safe_open(path, "numpy") as file:
            text = (file.metadata() or {}).get(KEY, "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
    except FileNotFoundError as error:
        raise RollinError(
            f"{path} does not exist: callback.save(model_path) writes it beside the model."
        ) from error
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error
    except SafetensorError as error:
        raise RollinError(
            f"{path} is damaged, or was not written by a callback: {error}."
        ) from error
    try:
        told = json.loads(text)
    except ValueError as error:
        raise RollinError(f"{path} was not written by RollInCallback.save.") from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise RollinError(
            f"{path} has a format that this version does not know: take the version of rollin that "
            "wrote it."
        )
    return tensors, told


def under(tensors: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The tensors whose names begin so, without that."""
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
