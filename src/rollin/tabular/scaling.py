"""How the paper's complexities grow with S: the printed exponents, and those that follow.

Corollary A.3 takes ε, δ ~ 1/S and a uniform ρ, and keeps powers of S alone. Where the printed power
does not follow from the constants of Theorem A.2, the one that does stands beside it; the result
stays polynomial in phase 2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from rollin.tabular.magnitude import Magnitude


@dataclass(frozen=True)
class Power:
    """A power S^s K^k."""

    s: Fraction = Fraction(0)
    k: Fraction = Fraction(0)

    def __str__(self) -> str:
        return " ".join(
            f"{name}{_raised(power)}" for name, power in (("K", self.k), ("S", self.s)) if power
        )

    def at(self, S: int, K: int) -> Magnitude:
        """Its value, with constants left out."""
        return Magnitude(float(self.s) * math.log(S) + float(self.k) * math.log(K))


@dataclass(frozen=True)
class Scaling:
    """One complexity of the paper: as printed and as it follows, with values at this S and K.

    where: A.3, the corollary; 4.1 and 4.3, the theorems, the latter for one context and for all.
    """

    where: str
    quantity: str
    printed: str
    printed_value: Magnitude
    follows: str
    follows_value: Magnitude
    why: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the printed one does not follow."""
        return self.printed != self.follows


RATIO = "the ratio d/μ is at least 1: of Lemma A.1's bound 1/β stays, however close the contexts"
TARGET = "the induction needs ε ≤ ε_0/2 ~ S⁻², not 1/S"
UNION = "that all K contexts succeed takes δ ~ 1/K; a path of fixed length has K ~ S²"
OFFSET = "t_0 = √(3σ²/(2δε_0)) with δ ~ 1/S and ε_0 ~ S⁻²; Section 3.2 has T_2 ~ S^{3/2}, too"

PHASE_ONE = (
    "and B_1: the exponent holds 1/C_δ⁰, and C_δ⁰ the smallest π_θ in a ball of radius ~ S^{3/2}; "
    "Remark C.3 grants that C_δ⁰ may depend on S"
)

_S, _K = Fraction(1), Fraction(1)
_ROWS = (
    # where, quantity, printed, as it follows, why
    ("A.3", "1/ε_0", Power(2 * _S), Power(2 * _S), ()),
    ("A.3", "t_0", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("A.3", "1/C_ζ", Power(3 * _S), Power(3 * _S), ()),
    ("A.3", "T_2", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("A.3", "B_2", Power(5 * _S), Power(5 * _S), ()),
    ("4.1", "T_2", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("4.1", "B_2", Power(3 * _S), Power(4 * _S), (RATIO,)),
    ("4.3 one", "T_2", Power(_S), Power(5 * _S / 2), (OFFSET, TARGET)),
    ("4.3 one", "B_2", Power(3 * _S), Power(5 * _S), (RATIO, TARGET)),
    ("4.3 all", "K T_2", Power(_S, _K), Power(_S, 5 * _K / 2), (OFFSET, TARGET, UNION)),
    ("4.3 all", "B_2", Power(3 * _S), Power(4 * _S, _K), (RATIO, TARGET, UNION)),
)


def scaling(S: int, K: int) -> list[Scaling]:
    """Every row for an MDP of S states and a curriculum of K steps."""
    # 𝒢 has radius (1 + 1/δ) Δ̄ ~ S · √S, within which π_θ falls to e^{-Ω(S^{3/2})}
    phase_one = Scaling(
        "A.3",
        "T_1",
        "S^{2S³}",
        Magnitude(2 * S**3 * math.log(S)),
        "exp(e^{S^{3/2}})",
        Magnitude.from_loglog(S**1.5),
        (PHASE_ONE,),
    )
    rows = [
        Scaling(where, what, str(printed), printed.at(S, K), str(true), true.at(S, K), why)
        for where, what, printed, true, why in _ROWS
    ]
    return [*rows[:3], phase_one, *rows[3:]]


def _raised(power: Fraction) -> str:
    if power == 1:
        return ""
    if power.denominator == 1:
        return str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"^{{{power}}}"
