"""What a run until solved leaves: its result.json, and what is read of its checkpoint."""

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.formats import Count, ProgressSaved, Seconds

LogRatio = float | Literal["inf"] | None
"""ln of a ratio; JSON has no ∞."""


class UntilSolvedResult(msgspec.Struct, forbid_unknown_fields=True):
    """result.json.

    completed: the gradient step that solved the last context, None if the run was cut off;
    ln_mismatch_rho, ln_mismatch_mu: ln ‖d/ρ‖_∞ and ln ‖d/μ_K‖_∞ on the last context, if it was
    begun; predictor: R. All three are told of exact gradients only.
    """

    k: Count
    K: Count
    completed: Count | None
    entered: list[Count]
    states: Count
    gamma: Annotated[float, Meta(ge=0, lt=1)]
    learning_rate: Annotated[float, Meta(gt=0)]
    gradient_steps: Count
    env_steps: Count
    rollin_steps: Count
    ln_mismatch_rho: LogRatio
    ln_mismatch_mu: LogRatio
    predictor: Annotated[float, Meta(ge=0)] | None
    seconds: Seconds
    spec_hash: str
    versions: dict[str, str]
    sha256: dict[str, str] = {}

    def check(self) -> None:
        """Refuse what cannot be, though each value alone could."""
        if self.K < 1 or self.k > self.K or len(self.entered) > self.k:
            raise RollinError(f"k = {self.k} of {self.K} is impossible")
        if self.completed not in (None, self.gradient_steps):
            raise RollinError("a solved run must end at the step that solved it")

    @property
    def quantities(self) -> dict[str, float]:
        """What a record tells of the run; not a number where it is not told."""
        solved = self.completed is not None
        return {
            "solved": float(solved),
            "steps_to_solve": float(self.gradient_steps) if solved else math.nan,
            "samples_to_solve": float(self.env_steps) if solved and self.env_steps else math.nan,
            "states": float(self.states),
            "gamma": self.gamma,
            "learning_rate": self.learning_rate,
            "ln_mismatch_rho": _number(self.ln_mismatch_rho),
            "ln_mismatch_mu": _number(self.ln_mismatch_mu),
            "predictor": _number(self.predictor),
        }


def _number(value: LogRatio) -> float:
    return math.nan if value is None else float(value)


class UntilSolvedSaved(msgspec.Struct):
    """What a record needs of a checkpoint's values."""

    progress: ProgressSaved
    env_steps: Count
    rollin_steps: Count
    seconds: Seconds


def read_result(run: RunDirectory) -> UntilSolvedResult:
    """result.json, checked."""
    result = run.read_result(UntilSolvedResult)
    result.check()
    return result
