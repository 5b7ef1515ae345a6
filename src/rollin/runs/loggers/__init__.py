"""Loggers that a user asks for (`--log wandb`), beside the CSV files and TensorBoard.

They never end a run: one that fails says so in a line, and the run goes on without it. A run that
is resumed goes on in the same run of theirs. Rows that they were handed before a kill are not
handed to them again: a repeated run gives the same ones.
"""

import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from rollin.curriculum.progress import Advance
from rollin.errors import RollinError, sentence, show_traceback
from rollin.runs.directory import RunDirectory
from rollin.runs.files import write_json
from rollin.runs.formats import Count, read_file
from rollin.runs.options import flat
from rollin.runs.spec import RunSpec
from rollin.texts import one_line

FILE = "loggers.json"
PACKAGES = {"wandb": "wandb", "mlflow": "mlflow"}
"""What a logger imports, by its name, which is also that of the extra that installs it."""


class Logged(msgspec.Struct, forbid_unknown_fields=True):
    """What loggers.json tells of a logger: its run there, and the last step it was handed."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    step: Count = 0


class LoggersFile(msgspec.Struct, forbid_unknown_fields=True):
    """loggers.json."""

    loggers: dict[str, Logged]


@dataclass(frozen=True)
class About:
    """What a logger is told of a run: where it is, what it is called, its options and labels."""

    directory: RunDirectory
    name: str
    group: str
    options: Mapping[str, Any]
    labels: Mapping[str, str]


class Logger(Protocol):
    """One run with a service; `open` begins it, or goes on with it. All may raise anything."""

    def open(self, about: About, id_: str | None) -> str:
        """Begin, or go on with a run of the service's; returns its name there."""
        ...

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Numbers of a step; steps rise."""
        ...

    def advance(self, advance: Advance) -> None:
        """A switch of context."""
        ...

    def close(self, *, finished: bool) -> None:
        """End it, for good or until it is resumed."""
        ...


def check_loggers(names: Sequence[str]) -> None:
    """Refuse names of loggers that there are not, or that stand there twice."""
    for name in names:
        if name not in PACKAGES or list(names).count(name) > 1:
            known = ", ".join(PACKAGES)
            raise RollinError(f"--log must be some of {known}, each once, got {' '.join(names)}.")


def check_installed(names: Sequence[str]) -> None:
    """Refuse loggers whose package is not here, before anything is run."""
    for name in names:
        if find_spec(PACKAGES[name]) is None:
            raise RollinError(
                f"--log {name} needs a package that is not installed: pip install 'rollin[{name}]'."
            )


def new_id() -> str:
    """A name for a run that no other has."""
    return uuid.uuid4().hex[:16]


class Loggers:
    """All loggers of a run; each is left out from its first failure on."""

    def __init__(self, names: Sequence[str], directory: RunDirectory, spec: RunSpec[Any]) -> None:
        self._directory = directory
        self._open: dict[str, Logger] = {}
        self._logged: dict[str, Logged] = {}
        for name in names:
            try:
                self._begin(name, _about(directory, spec))
            except Exception as error:
                self._leave(name, error)

    def _begin(self, name: str, about: About) -> None:
        path = self._directory.path / FILE
        if not self._logged and path.exists():
            self._logged = read_file(path, LoggersFile).loggers
        logger: Logger = import_module(f"rollin.runs.loggers.{name}_logger").LOGGER()
        known = self._logged.get(name)
        found = logger.open(about, known.id if known else None)
        self._logged[name] = Logged(found, known.step if known and known.id == found else 0)
        self._open[name] = logger
        self._note()

    def write(self, row: Mapping[str, Any], advances: Sequence[Advance] = ()) -> None:
        """A row of metrics, and the switches of context up to there."""
        if not self._open:
            return
        step = int(row["step"])
        numbers = {n: float(v) for n, v in row.items() if n != "step" and isfinite(v)}
        fresh = {name: self._logged[name].step for name in self._open}
        fresh = {name: before for name, before in fresh.items() if before < step}
        for name in fresh:
            self._logged[name].step = step
        try:  # first: what a kill costs is a row, and none is there twice
            self._note()
        except RollinError as error:
            for name in [*self._open]:
                self._leave(name, error)
        for name, before in fresh.items():
            if name in self._open:
                self._hand(name, step, numbers, [a for a in advances if before < a.step <= step])

    def _hand(
        self, name: str, step: int, numbers: Mapping[str, float], advances: Sequence[Advance]
    ) -> None:
        try:
            for advance in advances:
                self._open[name].advance(advance)
            self._open[name].write(step, numbers)
        except Exception as error:
            self._leave(name, error)

    def close(self, *, finished: bool) -> None:
        """End all of them."""
        for name in [*self._open]:
            try:
                self._open.pop(name).close(finished=finished)
            except Exception as error:
                self._leave(name, error)

    def _note(self) -> None:
        told = msgspec.to_builtins(LoggersFile(self._logged))
        write_json(self._directory.path / FILE, told, durable=False)

    def _leave(self, name: str, error: Exception) -> None:
        """Go on without a logger, which is closed if it is open, and say so."""
        if (logger := self._open.pop(name, None)) is not None:
            with suppress(Exception):  # the first failure is the one to tell
                logger.close(finished=False)
        show_traceback(error)
        why = one_line(sentence(error)).rstrip(".")
        sys.stderr.write(f"rollin: --log {name} failed, and the run goes on without it: {why}.\n")


def _about(directory: RunDirectory, spec: RunSpec[Any]) -> About:
    described = directory.config
    options = flat(spec.config) | {"task": spec.task, "engine": spec.config.engine}
    labels = {"task": spec.task, "engine": spec.config.engine, **described.labels}
    condition = ", ".join(f"{name}={value}" for name, value in described.labels.items())
    group = condition or spec.task
    return About(directory, f"{group}, seed {spec.config.seed}", group, options, labels)
