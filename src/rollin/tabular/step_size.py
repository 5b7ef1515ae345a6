"""The step size of phase 1: the condition of Theorem A.2, and what a run takes by default.

    η ≤ min{log T_1 / (T_1 L), 8 / C_δ⁰, 1 / (2L)}

The first term is the smallest whenever T_1 ≥ 2: log T / T ≤ 1/e < 1/2; and 8/C_δ⁰ ≥ 4 S² A²/α, as a
mismatch ratio is at least 1, min ρ at most 1/S and min π at most 1/A, while 1/L ≤ 1/(4α).
"""

import math
from dataclasses import dataclass, field

from rollin.errors import RollinError
from rollin.tabular.magnitude import Magnitude

FIRST, SECOND, THIRD = "log T_1/(T_1 L)", "8/C_δ⁰", "1/(2L)"


@dataclass(frozen=True)
class StepSizeCondition:
    """The three terms for a given T_1; C_delta is not a number where ρ is 0 on some state."""

    T1: int
    L: float
    C_delta: Magnitude = field(default=Magnitude(math.nan))

    @property
    def terms(self) -> dict[str, Magnitude]:
        """Each term by how it is printed; of T_1 = 0 the first says nothing and is left out."""
        first = {FIRST: Magnitude.of(math.log(self.T1) / (self.T1 * self.L))} if self.T1 else {}
        second = Magnitude(math.log(8) - self.C_delta.log)
        return {**first, SECOND: second, THIRD: Magnitude.of(0.5 / self.L)}

    @property
    def binding(self) -> str:
        """Which term is the smallest."""
        defined = {name: x for name, x in self.terms.items() if not math.isnan(x.log)}
        return min(defined, key=defined.__getitem__)

    @property
    def limit(self) -> float:
        """The largest η that meets the condition; 0 for T_1 = 1, as log 1 = 0."""
        return math.exp(self.terms[self.binding].log)

    def __str__(self) -> str:
        theorem = f"Theorem A.2, T_1 = {self.T1:,}, L = {self.L:.4g}"
        return f"η ≤ {self.binding} = {self.limit:.3g} ({theorem})"


def default_step_size(T1: int, L: float) -> float:
    """The largest step size of phase 1 that the theorem allows."""
    limit = StepSizeCondition(T1, L).limit
    if limit == 0:
        raise RollinError(
            "No step size meets Theorem A.2 with --phase1-steps 1, as log T_1 is 0: take "
            "--phase1-steps of at least 2, or give a --learning-rate."
        )
    return limit
