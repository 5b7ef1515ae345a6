"""The run directory: config.json, metrics.csv, status.json, checkpoint/, result.json.

config.json says what the run is, result.json that it is finished; everything in between can be
lost at any moment without losing more than the time since the last checkpoint.
"""

import math
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from rollin.checks import flag
from rollin.errors import LONGEST, RollinError, one_line, reason
from rollin.runs.files import (
    TEMPORARY,
    ConfigFile,
    Outcome,
    ResultFile,
    RowsCounted,
    StatusFile,
    code_in,
    converted,
    file_sha256,
    is_occupied,
    make_directory,
    read_file,
    read_json,
    remove_temporaries,
    seal,
    signature,
    write_json,
)
from rollin.runs.metrics import counted_part, plain, read_columns
from rollin.runs.spec import Membership, RunSpec, config_from, digest, flat
from rollin.runs.systems import (
    LARGEST_PID,
    PATIENCE,
    is_alive,
    not_in_children,
    process_began,
    processor,
    release_lock,
    take_lock,
    versions,
)
from rollin.untrusted import (
    LARGEST_POLICY,
    LARGEST_STATUS,
    LARGEST_TABLE,
    check_regular,
    open_regular,
)

if TYPE_CHECKING:
    from rollin.runs.checkpoint import Checkpoint

CONFIG, RESULT, LOCK = "config.json", "result.json", ".lock"
POLICY = "policy.safetensors"
KEPT = {
    "metrics.csv": LARGEST_TABLE,
    "episodes.csv": LARGEST_TABLE,
    "goals.csv": LARGEST_TABLE,
    "visits.csv": LARGEST_TABLE,
    POLICY: LARGEST_POLICY,
}
"""Files of a finished run whose checksums are in its result, as far as they are there, and their
largest sizes."""


class RunBusyError(RollinError):
    """Another process has the run."""


@dataclass(frozen=True)
class RunDirectory:
    """One run on disk."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Where its checkpoint lives."""
        return self.path / "checkpoint"

    @property
    def exists(self) -> bool:
        """Whether there is a run at this path."""
        return os.path.lexists(self.path / CONFIG)

    @property
    def finished(self) -> bool:
        """Whether it has its final quantities."""
        return os.path.lexists(self.path / RESULT)

    @classmethod
    def claim(
        cls,
        path: Path,
        spec: RunSpec[Any],
        task: str | None,
        command: str,
        of: Membership | None = None,
        **beside: Any,
    ) -> "RunDirectory":
        """Open a directory for a run: new, or holding the same one; anything else is refused.

        task: fingerprint of the task itself, which may change while its name stays; None if that is
        not to be looked at. of: the condition that it is run for. beside: what config.json records
        beside the spec.
        """
        run = cls(path)
        _check_finite(spec)
        if run.exists:
            run._check_same(spec, task)
            return run
        run.make()
        beside.setdefault("results", {})
        described = spec.to_json()
        if code_in(spec.task, described["config"]) and (signed := signature(described)):
            beside["signature"] = signed
        write_json(
            path / CONFIG,
            {
                **described,
                "spec_hash": spec.hash,
                "fingerprint": task,
                "versions": versions(),
                "command": command,
                "processor": processor(),
                **({} if of is None else of.to_json()),
                **beside,
            },
        )
        return run

    def make(self) -> None:
        """Make the directory of a new run; one that holds anything else is refused."""
        if is_occupied(self.path, LOCK) and not self.exists:  # it may just have been written
            raise RollinError(
                f"{self.path} exists and is not a run directory (no config.json): choose another "
                "--out."
            )
        make_directory(self.path)

    def _check_same(self, spec: RunSpec[Any], task: str | None) -> None:
        """Raise if this is another run, or one whose task has changed."""
        recorded = self.config
        difference = _difference(recorded, spec)
        if difference:
            raise RollinError(
                f"{self.path} holds another run ({difference}): "
                "use the same options to resume it, or another --out."
            )
        if None not in (task, recorded.fingerprint) and recorded.fingerprint != task:
            raise RollinError(
                f"{spec.task} is no longer the task that {self.path} was started with: restore "
                "it (a run started by rollin.train in Python is resumed by the same call), or use "
                "another --out."
            )

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """Open an existing run."""
        run = cls(path)
        if not run.exists:
            if not path.is_dir():
                raise RollinError(f"No such directory: {path}.")
            raise RollinError(f"{path} is not a run directory: it has no config.json.")
        return run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run while inside; a second process that wants it is refused."""
        path = self.path / LOCK
        try:
            handle = open_regular(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise RollinError(f"{path} could not be opened: {reason(error)}.") from error
        with open(handle, "r+b") as file:
            taken = take_lock(file.fileno())
            if not taken:
                raise RunBusyError(f"{self.path} is being run by {_told_holder(_holder(file))}")
            file.seek(0)  # where Windows locks is far behind what the file says
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            try:
                with not_in_children(file.fileno()):
                    yield
            finally:
                release_lock(file.fileno())

    def remove_leftovers(self) -> None:
        """Delete what a kill in the middle of a write left, unless a process is running this.

        Without the right to delete it, it stays.
        """
        if any(self.path.glob(f"{TEMPORARY}*")):
            with suppress(RollinError, OSError), self.lock():
                remove_temporaries(self.path)

    @cached_property
    def config(self) -> ConfigFile:
        """What the run is and belongs to."""
        found = check_hash(read_file(self.path / CONFIG, ConfigFile), self.path / CONFIG)
        if found.results is None:
            raise RollinError(
                f"{self.path} is a run of rollin {found.versions.get('rollin', '0.1.0')}, whose "
                "run directories this version does not read: use that version to resume or to "
                "report it."
            )
        return found

    def recorded_hash(self) -> str | None:
        """The hash that the run was begun with, by whose version it may lack later options."""
        return self.config.spec_hash if self.exists else None

    def result(self) -> dict[str, Any]:
        """The final quantities, as they stand there, if they are as they were written."""
        path = self.path / RESULT
        raw = read_json(path)
        sums = converted(raw, ResultFile, path).sha256
        if sums.get(RESULT) != sealed(raw):
            raise RollinError(
                f"{path} does not match its checksum: a value was changed. Restore it, or run "
                "again in another directory."
            )
        return raw

    def outcome(self) -> Outcome:
        """How far the run has come, and what that took: of its result, or its last checkpoint."""
        if not self.finished:
            return converted(self.saved().values.get("outcome"), Outcome, self.checkpoint)
        raw = self.result()
        own = {name: raw[name] for name in raw if name in Outcome.__struct_fields__}
        last = {name: plain(column[-1]) for name, column in self.metrics(()).items()}
        if unknown := raw.keys() - own.keys() - last.keys():
            raise RollinError(f"{self.path / RESULT} has {', '.join(unknown)}, which no run writes")
        for name, value in last.items():
            if name not in raw or raw[name] != value:
                raise RollinError(
                    f"{self.path / RESULT} has {name} = {raw.get(name)}, and the last row of "
                    f"metrics.csv {value}: one of them was changed. Restore the originals."
                )
        return converted(own, Outcome, self.path / RESULT)

    def metrics(self, needed: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Return metrics.csv as far as the run's result or checkpoint counts its rows."""
        saved = None if self.finished else self.saved()
        if saved is not None and not self.rows_counted("metrics.csv", saved).rows:
            return {name: np.empty(0) for name in ("step", *needed)}
        return self.columns("metrics.csv", {name: name for name in needed}, saved)

    def check_files(self) -> None:
        """Refuse a finished run whose files are not those that its result was written with."""
        sums = self.result().get("sha256", {})
        for name, most in KEPT.items():
            path = self.path / name
            if name not in sums:
                check_regular(path)
            elif file_sha256(path, most) != sums[name]:
                raise RollinError(
                    f"{path} does not match its checksum in {RESULT}: it was changed or cut off. "
                    "Restore the original."
                )

    def columns(
        self, name: str, needed: Mapping[str, str], saved: "Checkpoint | None"
    ) -> dict[str, NDArray[np.float64]]:
        """Columns of one of the run's CSVs, as its result, or a checkpoint of it, has known them.

        saved: the checkpoint of a run that is not finished, which may have more rows by now.
        """
        path = self.path / name
        if saved is None:
            return read_columns(path, needed, self.result().get("sha256", {}).get(name))
        counted_part(path, self.rows_counted(name, saved))
        return read_columns(path, needed)

    def rows_counted(self, name: str, saved: "Checkpoint") -> RowsCounted:
        """Rows of one of the run's CSVs that a checkpoint counts."""
        writers = saved.values.get("writers")
        counted = writers.get(Path(name).stem) if isinstance(writers, dict) else None
        return converted(counted, RowsCounted, self.checkpoint / "manifest.json")

    def saved(self) -> "Checkpoint":
        """The last checkpoint of a run that is not finished, without its arrays."""
        found = self._checkpoint()
        if found is None:
            raise RollinError("it has no checkpoint yet")
        return found

    def _checkpoint(self) -> "Checkpoint | None":
        from rollin.runs.checkpoint import read_checkpoint  # not for a finished run

        return read_checkpoint(self.checkpoint, self.recorded_hash() or "", arrays=False)

    def has_reached(self, step: int) -> bool:
        """Whether the run is finished, or would resume at this step or later."""
        if self.finished:
            return True
        found = self._checkpoint()
        return found is not None and found.step >= step

    def status(self) -> dict[str, Any]:
        """The last status, or an empty one."""
        path = self.path / "status.json"
        if not os.path.lexists(path):
            return {}
        return msgspec.to_builtins(read_file(path, StatusFile, LARGEST_STATUS))

    def host(self) -> str:
        """Where it was last run; empty if unknown: nothing else depends on that."""
        try:
            return self.status().get("host", "")
        except RollinError:
            return ""

    def write_status(self, state: str, **values: Any) -> None:
        """Write status.json; failures are ignored."""
        content = {
            "state": state,
            "pid": os.getpid(),
            "began": process_began(os.getpid()),
            "host": socket.gethostname(),
            "updated": round(time.time(), 1),
            **values,
        }
        if "error" in content:
            content["error"] = one_line(str(content["error"]), LONGEST)
        with suppress(RollinError):
            write_json(self.path / "status.json", content, durable=False)

    def write_result(self, values: dict[str, Any]) -> None:
        """Write the final quantities, with checksums of them and of the other files; it is done."""
        names = [name for name in KEPT if os.path.lexists(self.path / name)]
        sums = {name: file_sha256(self.path / name, sys.maxsize) for name in names}
        path, whole = self.path / RESULT, {**values, "sha256": sums}
        whole["sha256"] = {**sums, RESULT: sealed(whole)}
        write_json(path, whole)


def check_hash(found: ConfigFile, path: Path) -> ConfigFile:
    """Refuse a description of a run, read from a file, whose options are not those of its hash."""
    spec = {"engine": found.engine, "task": found.task, "config": found.config}
    if found.spec_hash not in (None, digest(spec)):
        raise RollinError(
            f"{path} does not match its spec_hash: engine, task or an option was edited. "
            "Restore it, or use another directory for other options."
        )
    return found


def _holder(file: BinaryIO) -> str:
    """Who has a lock; a process that has just taken it may not have written its number yet."""
    holder = ""
    for pause in (0.0, *PATIENCE[:5]):
        time.sleep(pause)
        file.seek(0)
        holder = file.read(20).decode(errors="replace").strip()
        if _is_pid(holder) and is_alive(int(holder)):
            break
    return holder


def _is_pid(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) <= LARGEST_PID


def _told_holder(holder: str) -> str:
    """Who has a lock, and what to do about it."""
    known = _is_pid(holder)
    if known and not is_alive(int(holder)):
        return (
            f"a process that process {holder} started, which is gone itself: end what it left "
            "behind, or use another --out."
        )
    who = holder if known else "?"
    return f"process {who}: wait for it, or use another --out."


def _check_finite(spec: RunSpec[Any]) -> None:
    """Refuse options such as nan, which the command line takes for numbers."""
    for name, value in flat(spec.config).items():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise RollinError(f"{flag(name)} must be a finite number, got {number}.")


def sealed(result: dict[str, Any]) -> str:
    """The checksum of a result.

    The seconds are left out: in them alone may a run that was interrupted differ from one that was
    not.
    """
    rest = {name: value for name, value in result.items() if name != "seconds"}
    rest["sha256"] = {name: sum_ for name, sum_ in rest.get("sha256", {}).items() if name != RESULT}
    return seal(rest)


def _difference(found: ConfigFile, wanted: RunSpec[Any]) -> str:
    """Return the text of how a run differs from a spec; empty if it does not."""
    if found.engine != wanted.config.engine:
        return f"engine {found.engine} there, {wanted.config.engine} requested"
    if found.task != wanted.task:
        return f"task {found.task} there, {wanted.task} requested"
    before = flat(config_from(type(wanted.config), found.config))
    after = flat(wanted.config)
    changed = [
        f"{name} {before[name]} there, {value} requested"
        for name, value in after.items()
        if before[name] != value
    ]
    return "; ".join(changed[:3])
