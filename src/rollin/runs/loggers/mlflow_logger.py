"""MLflow: a store of files in the run directory, unless MLFLOW_TRACKING_URI names another.

`mlflow ui --backend-store-uri DIR/mlflow` shows it. The file store needs no database; newer
versions of MLflow want to be told that it is meant.
"""

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from rollin.curriculum.progress import Advance
from rollin.runs.files import own_directory
from rollin.runs.loggers import About

OTHER = re.compile(r"[^\w\-. /:]")  # letters that names do not take
LONGEST = 500  # letters of a value


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
        """Begin, or go on with a run of MLflow's; returns its id."""
        self._client = self._make(tracking_uri=_store(about))
        if id_ is not None:
            self._id = id_
            self._client.update_run(id_, status="RUNNING")
            return id_
        experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "rollin"
        known = self._client.get_experiment_by_name(experiment)
        place = self._client.create_experiment(experiment) if known is None else known.experiment_id
        tags = {_name(name): str(value)[:LONGEST] for name, value in about.labels.items()}
        made = self._client.create_run(place, run_name=about.name, tags=tags)
        self._id = made.info.run_id
        params = [
            self._entities.Param(_name(name), str(value)[:LONGEST])
            for name, value in about.options.items()
        ]
        self._client.log_batch(self._id, params=params)
        return self._id

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Numbers of a step."""
        now = int(1000 * time.time())
        metrics = [
            self._entities.Metric(_name(name), value, now, step) for name, value in numbers.items()
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def advance(self, advance: Advance) -> None:
        """A switch of context: its number as a metric, its reason as a tag."""
        self.write(advance.step, {"advance/k": advance.k})
        told = f"step {advance.step}: {advance.reason}"
        self._client.set_tag(self._id, f"advance {advance.k}", told[:LONGEST])

    def close(self, *, finished: bool) -> None:
        """End it, or mark it as interrupted."""
        self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


def _store(about: About) -> str:
    """Where runs are kept."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given:
        return given
    place = about.directory.path / "mlflow"
    own_directory(place)
    return place.resolve().as_uri()


def _name(name: str) -> str:
    return OTHER.sub("_", name)


LOGGER = MlflowLogger
