"""Loggers that a user asks for (`--log wandb`), beside the CSV files and TensorBoard.

They never end a run: one that fails prints a line, and the run continues without it. A run that
is resumed continues in the logger's same run. Rows that they were handed before a kill are not
handed to them again: a repeated run gives the same ones.
"""

import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from rollin.curriculum.progress import Advance
from rollin.errors import RollinError, install_hint, one_line, sentence, show_traceback
from rollin.runs.directory import RunDirectory
from rollin.runs.files import Count, own_directory, read_file, write_json
from rollin.runs.spec import RunSpec, flat

FILE = "loggers.json"


class Logged(msgspec.Struct, forbid_unknown_fields=True):
    """What loggers.json records of a logger: its run there, and the last step it was handed."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    step: Count = 0


class LoggersFile(msgspec.Struct, forbid_unknown_fields=True):
    """loggers.json."""

    loggers: dict[str, Logged]


@dataclass(frozen=True)
class About:
    """What a logger receives about a run: its directory, name, options and labels."""

    directory: RunDirectory
    name: str
    group: str
    options: Mapping[str, Any]
    labels: Mapping[str, str]


class Logger(Protocol):
    """One run with a service; `open` begins or resumes it. All may raise anything."""

    def open(self, about: About, id_: str | None) -> str:
        """Begin or resume a run of the service; return its name there."""
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


def check_installed(names: Sequence[str]) -> None:
    """Refuse loggers whose package is not here, before anything is run."""
    for name in names:
        if find_spec(name) is None:
            raise RollinError(
                f"--log {name} needs a package that is not installed: {install_hint(name)}."
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
        logger: Logger = KINDS[name]()
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
        content = msgspec.to_builtins(LoggersFile(self._logged))
        write_json(self._directory.path / FILE, content, durable=False)

    def _leave(self, name: str, error: Exception) -> None:
        """Continue without a logger, which is closed if it is open, and print a line."""
        if (logger := self._open.pop(name, None)) is not None:
            with suppress(Exception):  # the first failure is the one to report
                logger.close(finished=False)
        show_traceback(error)
        why = one_line(sentence(error)).rstrip(".")
        sys.stderr.write(f"rollin: --log {name} failed, and the run continues without it: {why}.\n")


def _about(directory: RunDirectory, spec: RunSpec[Any]) -> About:
    described = directory.config
    options = flat(spec.config) | {"task": spec.task, "engine": spec.config.engine}
    labels = {"task": spec.task, "engine": spec.config.engine, **described.labels}
    condition = ", ".join(f"{name}={value}" for name, value in described.labels.items())
    group = condition or spec.task
    return About(directory, f"{group}, seed {spec.config.seed}", group, options, labels)


# ------------------------------------------------------------------ Weights & Biases
#
# Offline in the run directory, unless WANDB_MODE says otherwise. `wandb sync
# DIR/wandb/offline-run-*` sends what was written offline. Each life of a run leaves one such
# directory, all of the same run.

LONGEST_TAG = 64  # letters that W&B takes


class WandbLogger:
    """One run of W&B."""

    def __init__(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # which would be sent
        import wandb  # pyright: ignore[reportMissingImports]

        self._wandb: Any = wandb
        self._run: Any = None

    def open(self, about: About, id_: str | None) -> str:
        """Begin or resume a run of W&B; return its id."""
        own_directory(about.directory.path / "wandb")
        settings = self._wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, save_code=False
        )
        found = id_ or new_id()
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT") or "rollin",
            id=found,
            resume="allow",
            dir=str(about.directory.path),
            mode=os.environ.get("WANDB_MODE") or "offline",
            name=about.name,
            group=about.group,
            config={name: _listed(value) for name, value in about.options.items()},
            tags=[f"{name}={value}"[:LONGEST_TAG] for name, value in about.labels.items()],
            settings=settings,
        )
        return found

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Numbers of a step."""
        self._run.log(dict(numbers), step=step)

    def advance(self, advance: Advance) -> None:
        """A switch of context."""
        entry = {"advance/k": advance.k, "advance/reason": advance.reason}
        self._run.log(entry, step=advance.step)

    def close(self, *, finished: bool) -> None:
        """End it; W&B takes one that was interrupted for crashed, until it resumes."""
        self._run.finish(exit_code=0 if finished else 1)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# ------------------------------------------------------------------ MLflow
#
# A store of files in the run directory, unless MLFLOW_TRACKING_URI names another. `mlflow ui
# --backend-store-uri DIR/mlflow` shows it. The file store needs no database; newer versions of
# MLflow require an explicit choice of it.

NOT_IN_NAMES = re.compile(r"[^\w\-. /:]")  # letters that names do not take
LONGEST_VALUE = 500  # letters of a value


class MlflowLogger:
    """One run of MLflow."""

    def __init__(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # which would be sent
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow import entities  # pyright: ignore[reportMissingImports]
        from mlflow.tracking import MlflowClient  # pyright: ignore[reportMissingImports]

        self._entities: Any = entities
        self._make: Any = MlflowClient
        self._client: Any = None
        self._id = ""

    def open(self, about: About, id_: str | None) -> str:
        """Begin or resume a run of MLflow; return its id."""
        self._client = self._make(tracking_uri=_mlflow_store(about))
        if id_ is not None:
            self._id = id_
            self._client.update_run(id_, status="RUNNING")
            return id_
        experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "rollin"
        known = self._client.get_experiment_by_name(experiment)
        place = self._client.create_experiment(experiment) if known is None else known.experiment_id
        tags = {
            _mlflow_name(name): str(value)[:LONGEST_VALUE] for name, value in about.labels.items()
        }
        made = self._client.create_run(place, run_name=about.name, tags=tags)
        self._id = made.info.run_id
        params = [
            self._entities.Param(_mlflow_name(name), str(value)[:LONGEST_VALUE])
            for name, value in about.options.items()
        ]
        self._client.log_batch(self._id, params=params)
        return self._id

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Numbers of a step."""
        now = int(1000 * time.time())
        metrics = [
            self._entities.Metric(_mlflow_name(name), value, now, step)
            for name, value in numbers.items()
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def advance(self, advance: Advance) -> None:
        """A switch of context: its number as a metric, its reason as a tag."""
        self.write(advance.step, {"advance/k": advance.k})
        text = f"step {advance.step}: {advance.reason}"
        self._client.set_tag(self._id, f"advance {advance.k}", text[:LONGEST_VALUE])

    def close(self, *, finished: bool) -> None:
        """End it, or mark it as interrupted."""
        self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


def _mlflow_store(about: About) -> str:
    """Where runs are kept."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given:
        return given
    place = about.directory.path / "mlflow"
    own_directory(place)
    return place.resolve().as_uri()


def _mlflow_name(name: str) -> str:
    return NOT_IN_NAMES.sub("_", name)


KINDS: dict[str, Callable[[], Logger]] = {"wandb": WandbLogger, "mlflow": MlflowLogger}
"""Loggers by name; each imports its library when it is made."""
