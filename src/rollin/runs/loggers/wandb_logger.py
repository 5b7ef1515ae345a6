"""Weights & Biases: offline in the run directory, unless WANDB_MODE says otherwise.

`wandb sync DIR/wandb/offline-run-*` sends what was written offline. Each life of a run leaves one
such directory, all of the same run.
"""

import os
from collections.abc import Mapping
from typing import Any

from rollin.curriculum.progress import Advance
from rollin.runs.files import own_directory
from rollin.runs.loggers import About, new_id

LONGEST_TAG = 64  # letters that W&B takes


class WandbLogger:
    """One run of W&B."""

    def __init__(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # which would be sent
        import wandb  # pyright: ignore[reportMissingImports]

        self._wandb: Any = wandb
        self._run: Any = None

    def open(self, about: About, id_: str | None) -> str:
        """Begin, or go on with a run of W&B's; returns its id."""
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
            config={name: _plain(value) for name, value in about.options.items()},
            tags=[f"{name}={value}"[:LONGEST_TAG] for name, value in about.labels.items()],
            settings=settings,
        )
        return found

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Numbers of a step."""
        self._run.log(dict(numbers), step=step)

    def advance(self, advance: Advance) -> None:
        """A switch of context."""
        told = {"advance/k": advance.k, "advance/reason": advance.reason}
        self._run.log(told, step=advance.step)

    def close(self, *, finished: bool) -> None:
        """End it; W&B takes one that was interrupted for crashed, until it goes on."""
        self._run.finish(exit_code=0 if finished else 1)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


LOGGER = WandbLogger
