"""Positive numbers too large or too small for a float, kept as logarithms.

The constants of the complexity theorem reach e^±8000 and beyond e^(e^1000), so that a number is
known by ln x, and where even that overflows by ln ln x.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Magnitude:
    """A number x ≥ 0 as ln x; `loglog` is ln ln x where ln x itself overflows.

    ln x is -inf for 0 and nan for a number that is not defined.
    """

    log: float
    loglog: float | None = None

    @classmethod
    def of(cls, x: float) -> "Magnitude":
        """From an ordinary number ≥ 0."""
        if x < 0:
            raise ValueError(f"a magnitude is ≥ 0, got {x}")
        return cls(math.log(x) if x > 0 else -math.inf)

    @classmethod
    def from_loglog(cls, loglog: float) -> "Magnitude":
        """From ln ln x."""
        if loglog < 700:
            return cls(math.exp(loglog))
        return cls(math.inf, loglog)

    def __lt__(self, other: "Magnitude") -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[float, float]:
        return self.log, self.loglog if self.loglog is not None else -math.inf

    def __str__(self) -> str:
        if math.isnan(self.log):
            return "–"
        if self.loglog is not None:
            return f"10^(10^{(self.loglog - math.log(math.log(10))) / math.log(10):.6g})"
        if self.log == -math.inf:
            return "0"
        if self.log == math.inf:
            return "∞"
        if abs(self.log) < math.log(1e6):
            return f"{math.exp(self.log):.4g}"
        exponent = self.log / math.log(10)
        if abs(exponent) < 15:
            whole = math.floor(exponent)
            return f"{10 ** (exponent - whole):.3f}e{whole:+d}"
        return f"10^{exponent:.6g}"
