"""Checkpoints: the state of every object in one `.safetensors` file and a JSON manifest.

The manifest is renamed into place last and names the data file with its SHA-256, so that a kill at
any moment leaves the previous checkpoint valid; it is deleted only after the next is complete.
"""

import copy
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rollin.errors import RollinError
from rollin.runs.files import (
    make_directory,
    read_json,
    remove_file,
    remove_temporaries,
    write_atomically,
    write_json,
)
from rollin.runs.versions import versions

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """Arrays by name, and everything else as JSON values."""

    step: int
    spec_hash: str
    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint beside the previous one, switch over, then delete the previous one."""
    make_directory(directory)
    data = save({name: np.ascontiguousarray(a) for name, a in checkpoint.arrays.items()})
    name = f"state-{checkpoint.step}.safetensors"
    write_atomically(directory / name, data)
    manifest = {
        "format": FORMAT,
        "step": checkpoint.step,
        "spec_hash": checkpoint.spec_hash,
        "versions": versions(),
        "file": name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "values": checkpoint.values,
    }
    write_json(directory / "manifest.json", manifest)
    for old in directory.glob("state-*.safetensors"):
        if old.name != name:
            remove_file(old)


def read_checkpoint(directory: Path, spec_hash: str) -> Checkpoint | None:
    """The latest complete checkpoint of this very spec, or None if there is none yet."""
    path = directory / "manifest.json"
    if not path.exists():
        return None
    manifest = read_json(path)
    if manifest.get("format") != FORMAT:
        raise RollinError(
            f"{path} has format {manifest.get('format')}, this version reads format {FORMAT}."
        )
    if missing := {"step", "spec_hash", "file", "sha256", "values"} - manifest.keys():
        raise RollinError(f"{path} lacks {', '.join(sorted(missing))}: the checkpoint is damaged.")
    if manifest["spec_hash"] != spec_hash:
        raise RollinError(
            f"The checkpoint in {directory} belongs to another configuration: "
            "use the options it was made with, or another --out."
        )
    try:
        data = (directory / manifest["file"]).read_bytes()
        if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
            raise RollinError(
                f"{directory / manifest['file']} does not match its checksum: the file was cut off "
                "or changed. Delete the checkpoint directory to start this run anew."
            )
        arrays = load(data)
    except (OSError, SafetensorError) as error:
        raise RollinError(f"The checkpoint in {directory} cannot be read: {error}.") from error
    return Checkpoint(int(manifest["step"]), spec_hash, arrays, manifest["values"])


def split_state(state: dict[str, Any]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays by path, such as main/theta, and the rest as nested values."""
    arrays: dict[str, NDArray[Any]] = {}
    values: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, dict):
            inner, values[name] = split_state(value)
            arrays |= {f"{name}/{rest}": array for rest, array in inner.items()}
        else:
            values[name] = value
    return arrays, values


def join_state(arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> dict[str, Any]:
    """What `split_state` was given."""
    state = copy.deepcopy(values)
    for path, array in arrays.items():
        *parents, name = path.split("/")
        place = state
        for parent in parents:
            place = place[parent]
        place[name] = array
    return state


def remove_checkpoint(directory: Path) -> None:
    """Delete a checkpoint whose run is finished."""
    for path in (directory / "manifest.json", *directory.glob("state-*.safetensors")):
        remove_file(path)
    remove_temporaries(directory)
    if directory.exists() and not any(directory.iterdir()):
        directory.rmdir()
