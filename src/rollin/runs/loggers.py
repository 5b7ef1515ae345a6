"""TensorBoard events of a run, beside the metrics.csv that is always written."""

from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter


class TensorBoardLogger:
    """Writes every number of a metrics row as a scalar; a resume replaces later points."""

    def __init__(self, directory: Path, step: int) -> None:
        self._writer = SummaryWriter(str(directory / "tensorboard"), purge_step=step + 1)

    def write(self, row: dict[str, Any]) -> None:
        """One row of metrics; its `step` is the x axis."""
        for name, value in row.items():
            if name != "step":
                self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
