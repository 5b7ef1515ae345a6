"""What a tabular run leaves: its result.json, and what is read of its checkpoint."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.formats import Count, ProgressSaved, Seconds, Share

Chance = Annotated[float, Meta(ge=0, le=1 + 1e-9)]
"""A probability, which sums of them may pass by a little."""


class TabularSwitch(msgspec.Struct, forbid_unknown_fields=True):
    """A switch of context, and the chances of success there before anything was learned."""

    step: Count
    k: Count
    reason: str
    success_rho: Chance
    success_mu: Chance

    @property
    def numbers(self) -> dict[str, float]:
        """Chances of success from ρ and from μ_k."""
        return {"success_rho": self.success_rho, "success_mu": self.success_mu}


class TabularAdvance(msgspec.Struct, forbid_unknown_fields=True):
    """When the last context was mastered, and why."""

    step: Count
    k: Count
    reason: str


class TabularResult(msgspec.Struct, forbid_unknown_fields=True):
    """result.json of a tabular run; what has a default is not in those of older versions."""

    kappa: Share
    k: Count
    K: Count
    final_return: float
    final_return_infinite: float
    success: Chance
    gradient_steps: Count
    env_steps: Count
    rollin_steps: Count
    rollin_steps_expected: Count
    seconds: Seconds
    switches: list[TabularSwitch]
    spec_hash: str
    versions: dict[str, str]
    final_return_undiscounted: float | None = None
    collects: float | None = None
    collects_discounted: float | None = None
    learning_rate: float | None = None
    log_min_pi: list[float | None] | None = None
    warning: str | None = None
    completed: TabularAdvance | None = None
    sha256: dict[str, str] = {}

    def check(self) -> None:
        """Refuse what cannot be, though each value alone could."""
        if self.K < 1 or self.k > self.K or not math.isclose(self.kappa, self.k / self.K):
            raise RollinError(f"κ = {self.kappa} is impossible with k = {self.k} of {self.K}")

    @property
    def totals(self) -> dict[str, float]:
        """What the last policy gathers, as far as it is told."""
        told = {
            "return_undiscounted": self.final_return_undiscounted,
            "collects": self.collects,
            "collects_discounted": self.collects_discounted,
        }
        return {name: value for name, value in told.items() if value is not None}


class CountersSaved(msgspec.Struct):
    """What a record needs of a checkpoint's counters."""

    env_steps: Count
    rollin_steps: Count


class TabularSaved(msgspec.Struct):
    """What a record needs of a checkpoint's values."""

    progress: ProgressSaved
    counters: CountersSaved
    seconds: Seconds


def read_result(run: RunDirectory) -> TabularResult:
    """result.json, checked."""
    result = run.read_result(TabularResult)
    result.check()
    return result
