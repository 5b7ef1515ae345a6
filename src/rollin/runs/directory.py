"""The run directory: config.json, metrics.csv, status.json, checkpoint/, result.json.

config.json says what the run is, result.json that it is finished; everything in between can be
lost at any moment without losing more than the time since the last checkpoint.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.files import is_occupied, make_directory, read_json, write_json
from rollin.runs.spec import RunSpec, spec_from_json
from rollin.runs.systems import take_lock
from rollin.runs.versions import versions

LOCK = ".lock"


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
        return (self.path / "config.json").exists()

    @property
    def finished(self) -> bool:
        """Whether it has its final figures."""
        return (self.path / "result.json").exists()

    @classmethod
    def claim(
        cls, path: Path, spec: RunSpec[Any], task: str | None, command: str, **beside: Any
    ) -> "RunDirectory":
        """Open a directory for a run: new, or holding the same one; anything else is refused.

        task: fingerprint of the task itself, which may change while its name stays; None if that
        is not to be looked at. beside: what config.json tells beside the spec.
        """
        run = cls(path)
        config = path / "config.json"
        if run.exists:
            kept = read_json(config)
            found = spec_from_json(kept)
            if found.hash != spec.hash:
                raise RollinError(
                    f"{path} holds another run ({_difference(found, spec)}): "
                    "use the same options to go on with it, or another --out."
                )
            if task is not None and kept.get("fingerprint", task) != task:
                raise RollinError(
                    f"{spec.task} is no longer the task that {path} was begun with: put it back "
                    "(what rollin.train was given in Python goes on by the same call), or use "
                    "another --out."
                )
            return run
        if is_occupied(path):
            raise RollinError(
                f"{path} exists and is not a run directory (no config.json): choose another --out."
            )
        make_directory(path)
        write_json(
            config,
            {
                **spec.to_json(),
                "spec_hash": spec.hash,
                "fingerprint": task,
                "versions": versions(),
                "command": command,
                **beside,
            },
        )
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """Open an existing run."""
        run = cls(path)
        if not run.exists:
            raise RollinError(f"{path} is not a run directory: it has no config.json.")
        return run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run while inside; a second process that wants it is refused."""
        with (self.path / LOCK).open("a+") as file:
            if not take_lock(file.fileno()):
                file.seek(0)
                raise RunBusyError(
                    f"{self.path} is being run by process {file.read().strip() or '?'}: "
                    "wait for it, or use another --out."
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def spec(self) -> RunSpec[Any]:
        """What the run is."""
        return spec_from_json(read_json(self.path / "config.json"))

    def recorded_hash(self) -> str | None:
        """The hash that the run was begun with, by whose version it may lack later options."""
        config = self.path / "config.json"
        return read_json(config).get("spec_hash") if config.exists() else None

    def result(self) -> dict[str, Any]:
        """The final figures."""
        return read_json(self.path / "result.json")

    def status(self) -> dict[str, Any]:
        """The last status, or an empty one."""
        path = self.path / "status.json"
        return read_json(path) if path.exists() else {}

    def write_status(self, state: str, **values: Any) -> None:
        """Say where the run stands, for whoever looks from outside."""
        write_json(
            self.path / "status.json",
            {
                "state": state,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "updated": round(time.time(), 1),
                **values,
            },
            durable=False,
        )

    def write_result(self, values: dict[str, Any]) -> None:
        """Write the final figures; the run is finished."""
        write_json(self.path / "result.json", values)


def _difference(found: RunSpec[Any], wanted: RunSpec[Any]) -> str:
    old, new = found.to_json(), wanted.to_json()
    if old["engine"] != new["engine"]:
        return f"engine {old['engine']} there, {new['engine']} asked for"
    if old["task"] != new["task"]:
        return f"task {old['task']} there, {new['task']} asked for"
    before, after = _flat(old["config"]), _flat(new["config"])
    changed = [
        f"{name} {before.get(name)} there, {value} asked for"
        for name, value in after.items()
        if before.get(name) != value
    ]
    return "; ".join(changed[:3])


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Options of a part beside those of the whole, as on the command line."""
    plain = {n: v for n, v in config.items() if not isinstance(v, dict)}
    for part in config.values():
        plain |= part if isinstance(part, dict) else {}
    return plain
