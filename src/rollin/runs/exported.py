"""A policy taken out of its run: the actor alone, and a file that says what it was trained on.

policy.safetensors has no critics, no optimiser and no replay; policy.json, which is written last,
holds the run's options and versions, the curriculum that it walked, and what the policy earned when
it was exported. It is evaluated like a run and cannot be resumed.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.runs.directory import POLICY, RunDirectory, check_hash
from rollin.runs.files import (
    ConfigFile,
    PolicyFile,
    converted,
    file_sha256,
    is_occupied,
    make_directory,
    read_json,
    seal,
    write_atomically,
    write_json,
)
from rollin.untrusted import LARGEST_POLICY

ABOUT, CARD = "policy.json", "README.md"
FORMAT = 1


@dataclass(frozen=True)
class ExportedPolicy:
    """A directory with an exported policy, and what is in it."""

    path: Path
    about: PolicyFile
    policy: Policy

    @property
    def config(self) -> ConfigFile:
        """What the run was, whose policy this is."""
        return self.about.run

    @classmethod
    def open(cls, path: Path) -> "ExportedPolicy":
        """Read an exported policy, if its files are as they were written."""
        file = path / ABOUT
        raw = read_json(file)
        if raw.get("format") != FORMAT:
            raise RollinError(
                f"{file} has format {raw.get('format')}, this version reads format {FORMAT}: "
                "use the version that wrote it."
            )
        about: PolicyFile = converted(raw, PolicyFile, file)
        unsealed = {name: value for name, value in raw.items() if name != "checksum"}
        if about.checksum != seal(unsealed):
            raise RollinError(
                f"{file} does not match its checksum: a value was changed. Restore the original."
            )
        if file_sha256(path / POLICY, LARGEST_POLICY) != about.sha256:
            raise RollinError(
                f"{path / POLICY} does not match its checksum in {ABOUT}: it was changed or cut "
                "off. Restore the original."
            )
        check_hash(about.run, file)
        return cls(path, about, Policy.load(path))


Trained = RunDirectory | ExportedPolicy
"""What holds a policy that can be evaluated."""


def is_exported(path: Path) -> bool:
    """Whether a directory holds a policy without its run."""
    return os.path.lexists(path / ABOUT) and not RunDirectory(path).exists


def open_trained(path: Path) -> Trained:
    """A run, whose files are checked if it is finished, or an exported policy."""
    if is_exported(path):
        return ExportedPolicy.open(path)
    run = RunDirectory.open(path)
    if run.finished:
        run.check_files()
    return run


def check_free(out: Path) -> None:
    """Refuse a directory that holds anything but what an export that was killed has left."""
    if is_occupied(out, POLICY, CARD) or os.path.lexists(out / ABOUT):
        raise RollinError(f"{out} exists and is not empty: choose another --out.")


def write_policy(
    out: Path, policy: Policy, about: dict[str, Any], card: Callable[[PolicyFile], str]
) -> None:
    """Write the actor, its card, and at last what is known of it, which makes them an export.

    about: the fields of `PolicyFile` but the format and the checksums.
    """
    make_directory(out)
    policy.save(out / POLICY)
    content: dict[str, Any] = {
        "format": FORMAT,
        **msgspec.to_builtins(about),
        "sha256": file_sha256(out / POLICY, LARGEST_POLICY),
    }
    whole = {**content, "checksum": seal(content)}
    write_atomically(out / CARD, card(converted(whole, PolicyFile, out / ABOUT)).encode())
    write_json(out / ABOUT, whole)
