"""Checkpoints: the state of every object in one `.safetensors` file and a JSON manifest.

The manifest is renamed into place last and names the data file with its SHA-256, so that a kill at
any moment leaves the previous checkpoint valid; it is deleted only after the next is complete. A
checksum covers the manifest itself: a checkpoint that was changed anywhere is refused.
"""

import copy
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rollin.errors import RollinError
from rollin.runs.files import (
    MOST,
    ManifestFile,
    check_own,
    converted,
    file_sha256,
    own_directory,
    read_json,
    remove_file,
    remove_temporaries,
    seal,
    sha256,
    write_atomically,
    write_json,
)
from rollin.runs.systems import versions
from rollin.untrusted import LARGEST_STATE, read_bounded

FORMAT = 2
MANIFEST = "manifest.json"
ANEW = "Delete the checkpoint directory to start this run over."

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Checkpoint:
    """Arrays by name, and everything else as JSON values."""

    step: int
    spec_hash: str
    arrays: Arrays
    values: dict[str, Any]


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint beside the previous one, switch over, then delete the previous one."""
    own_directory(directory)
    data = save({name: np.ascontiguousarray(a) for name, a in checkpoint.arrays.items()})
    name = f"state-{checkpoint.step}.safetensors"
    write_atomically(directory / name, data)
    manifest = {
        "format": FORMAT,
        "step": checkpoint.step,
        "spec_hash": checkpoint.spec_hash,
        "versions": versions(),
        "file": name,
        "sha256": sha256(data),
        "arrays": _forms(checkpoint.arrays),
        "values": checkpoint.values,
    }
    write_json(directory / MANIFEST, {**manifest, "checksum": seal(manifest)})
    for old in directory.glob("state-*.safetensors"):
        if old.name != name:
            remove_file(old)


def written_with(directory: Path) -> dict[str, str]:
    """The versions that wrote the latest checkpoint; empty if there is none, or it was changed."""
    check_own(directory)
    path = directory / MANIFEST
    if not os.path.lexists(path):
        return {}
    raw = read_json(path)
    manifest: ManifestFile = converted(raw, ManifestFile, path)
    return manifest.versions if _unchanged(manifest, raw) else {}


def read_checkpoint(directory: Path, spec_hash: str, *, arrays: bool = True) -> Checkpoint | None:
    """The latest complete checkpoint of this very spec, or None if there is none yet.

    arrays: whether to read their file; without it the checkpoint has none.
    """
    check_own(directory)
    path = directory / MANIFEST
    if not os.path.lexists(path):
        return None
    raw = read_json(path)
    if raw.get("format") != FORMAT:
        raise RollinError(
            f"{path} has format {raw.get('format')}, this version reads format {FORMAT}: "
            "continue with the version that wrote it."
        )
    manifest: ManifestFile = converted(raw, ManifestFile, path)
    if manifest.spec_hash != spec_hash:
        raise RollinError(
            f"The checkpoint in {directory} belongs to another configuration: "
            "use the options it was made with, or another --out."
        )
    if not _unchanged(manifest, raw):
        raise RollinError(
            f"{path} does not match its checksum: a value was changed. Restore it, or delete the "
            "checkpoint directory to start this run over."
        )
    if not _countable(manifest.values):
        raise RollinError(f"{path} holds a whole number that no run can count to. {ANEW}")
    found = _read_arrays(directory, manifest) if arrays else {}
    return Checkpoint(manifest.step, spec_hash, found, manifest.values)


def _unchanged(manifest: ManifestFile, raw: dict[str, Any]) -> bool:
    """Return whether a manifest is as it was written, as far as its format shows."""
    if manifest.file != f"state-{manifest.step}.safetensors":
        return False
    rest = {name: value for name, value in raw.items() if name != "checksum"}
    return manifest.checksum == seal(rest)


def _countable(value: Any) -> bool:
    """Whether all whole numbers are such that a run may have counted to them."""
    if isinstance(value, dict):
        return all(map(_countable, value.values()))
    if isinstance(value, list):
        return all(map(_countable, value))
    return not isinstance(value, int) or abs(value) <= MOST


def _read_arrays(directory: Path, manifest: ManifestFile) -> Arrays:
    path = directory / manifest.file
    if not os.path.lexists(path):
        raise RollinError(f"The checkpoint in {directory} cannot be read: {path.name} is missing.")
    if file_sha256(path, LARGEST_STATE) != manifest.sha256:  # before its bytes are in memory
        raise RollinError(
            f"{path} does not match its checksum: the file was cut off or changed. {ANEW}"
        )
    try:
        arrays = load(read_bounded(path, LARGEST_STATE))
    except (SafetensorError, KeyError, ValueError) as error:
        raise RollinError(f"{path} cannot be read: {error}. {ANEW}") from error
    if manifest.arrays != _forms(arrays):
        raise RollinError(f"{path} holds other arrays than its manifest lists. {ANEW}")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RollinError(f"{path}: {name} holds NaN or infinity, so it is damaged. {ANEW}")
    return arrays


def _form(array: NDArray[Any]) -> tuple[str, list[int]]:
    """Its dtype and shape, as in the manifest."""
    return str(array.dtype), list(array.shape)


def _forms(arrays: Arrays) -> dict[str, tuple[str, list[int]]]:
    return {name: _form(array) for name, array in arrays.items()}


def check_like(name: str, array: Any, like: NDArray[Any]) -> NDArray[Any]:
    """An array of a checkpoint, if it has the dtype and shape of the one that it is to replace."""
    if not isinstance(array, np.ndarray) or _form(array) != _form(like):
        came = _form(array) if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be {like.dtype} of shape {like.shape}, got {came}")
    return array


def check_streams(streams: dict[str, Any]) -> None:
    """Refuse states of random streams that are not six uint64 each."""
    for name, packed in streams.items():
        check_like(f"the stream {name}", packed, np.zeros(6, np.uint64))


def split_state(state: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by path, such as main/theta, and the rest as nested values."""
    arrays: Arrays = {}
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


def join_state(arrays: Arrays, values: dict[str, Any]) -> dict[str, Any]:
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
    check_own(directory)
    for path in (directory / MANIFEST, *directory.glob("state-*.safetensors")):
        remove_file(path)
    remove_temporaries(directory)
    if directory.exists() and not any(directory.iterdir()):
        directory.rmdir()
