"""Types of all JSON and TOML files, and the one way to read them.

A file is decoded strictly: an unknown or missing key, or a value of another type, is one sentence
with the file's name and the key. Keys that a later version added have defaults, so that older files
can still be read.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from rollin.errors import RollinError
from rollin.regular import LARGEST
from rollin.runs.files import read_json

FileType = TypeVar("FileType", bound=Struct)
Plain = TypeVar("Plain")

MOST = 2**53  # beyond, a float64 does not count one by one
Count = Annotated[int, Meta(ge=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(max_length=4096)]  # a task may be a path
Labels = Annotated[dict[Name, Name], Meta(max_length=256)]
Names = Annotated[list[Name], Meta(max_length=256)]
Shown = Annotated[dict[Name, Name], Meta(max_length=64)]  # a column each


class ConfigFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """config.json: what a run is, and what belongs to it. The spec's hash is of the first three.

    family, labels, scale: the condition of a study that it was run for, at which share of its
    length; key: the condition's, without seed and length; signature: of whoever began a run whose
    task is code.
    """

    engine: Name
    task: Name
    config: dict[str, Any]
    spec_hash: Name | None = None
    fingerprint: Name | None = None
    versions: Labels = {}
    command: str = ""
    processor: Name = ""
    curriculum: dict[str, list[Any]] | None = None
    family: Name = ""
    labels: Labels = {}
    scale: Annotated[float, Meta(gt=0)] = 1.0
    key: Name = ""
    signature: str | None = None


class ManifestFile(Struct, forbid_unknown_fields=True):
    """manifest.json of a checkpoint.

    file, sha256: the arrays' file; arrays: dtype and shape of each; values: all that is no array;
    checksum: of all of this. Those of format 1 have neither arrays nor checksum.
    """

    format: int
    step: Count
    spec_hash: str
    file: str
    sha256: str
    values: dict[str, Any]
    versions: dict[str, str] = {}
    arrays: dict[str, tuple[str, list[int]]] = {}
    checksum: str | None = None


class StatusFile(Struct, omit_defaults=True):
    """status.json: where a run stands, for whoever looks; engines add numbers of their own.

    shown: what to show of it, as text by title; figures: the same in files of older versions.
    began: when the process did, as the system counts: its number may since be another's.
    """

    state: Name = "waiting"
    pid: Count = 0
    began: Count | None = None
    host: Name = ""
    updated: float = 0.0
    error: str | None = None
    step: Count | None = None
    steps: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    shown: Shown | None = None
    figures: Shown | None = None
    steps_per_second: Seconds = 0.0
    eta_seconds: Seconds | None = None
    compiling: bool = False


class ResultFile(Struct):
    """What results of all engines may have, which add their own; sha256: of the run's files."""

    kappa: Share | None = None
    k: Count | None = None
    K: Count | None = None
    env_steps: Count | None = None
    seconds: Seconds = 0.0
    warning: str | None = None
    sha256: dict[str, str] = {}


class PolicyFile(Struct, forbid_unknown_fields=True):
    """policy.json of an exported policy: the run it is of, how far that was, and what it earned.

    run: config.json of the run; curriculum: as in a result; evaluation: a row for each context that
    was played, `episodes` times, with the first episode's `seed`; sha256: of policy.safetensors;
    checksum: of all else here.
    """

    format: int
    run: ConfigFile
    step: Count
    k: Count
    curriculum: dict[str, list[Any]]
    evaluation: list[dict[str, Any]]
    episodes: Count
    seed: Count
    sha256: str
    checksum: str


class RowsCounted(Struct, forbid_unknown_fields=True):
    """What a checkpoint tells of a CSV: its rows, and the checksum of the file up to there."""

    rows: Count
    sha256: str | None = None


class ProgressSaved(Struct, forbid_unknown_fields=True):
    """Where a checkpoint stands on the curriculum; a switch is its step, its context and why."""

    K: Count
    k: Count
    advances: list[tuple[Count, Count, str]]
    completed: tuple[Count, Count, str] | None = None


def read_file(path: Path, kind: type[FileType], most: int = LARGEST) -> FileType:
    """A JSON file of at most so many bytes as its type."""
    return converted(read_json(path, most), kind, path)


def converted(value: Any, kind: Any, path: Path) -> Any:
    """Plain values of a file as a type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise RollinError(
            f"{path} cannot be read: {_words(error)}. It was edited, or is from another version: "
            "restore the original."
        ) from error


def as_dataclass(kind: type[Plain], values: Any, older: Mapping[str, Any] | None = None) -> Plain:
    """Plain values as a dataclass of exactly these fields, with ValueError for anything else.

    older: values of fields that earlier versions did not have.
    """
    given = {**(older or {}), **values}
    names = {field.name for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    if given.keys() != names:
        raise ValueError(f"{', '.join(sorted(given.keys() ^ names))} missing or unknown")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_words(error)) from error


def _words(error: msgspec.ValidationError) -> str:
    """What is wrong, as a part of a sentence: `expected `int`, got `str`, at k`."""
    text = re.sub(r" - at `(?:key in )?\$?\.?(.*)`$", r", at \1", str(error).rstrip("."))
    return text[:1].lower() + text[1:]
