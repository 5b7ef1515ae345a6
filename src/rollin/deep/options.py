"""Options of the practical algorithm; the field docstrings are the help texts of the command line.

Defaults are the detailed pseudocode and the paper's appendix; for the rest see
docs/design-decisions.md.
"""

from dataclasses import dataclass, field
from typing import Literal

from rollin.checks import LARGEST, MOST_STEPS, at_least, check_beta, check_literals
from rollin.errors import RollinError

Method = Literal["rollin", "baseline", "scratch", "fresh"]


@dataclass(frozen=True)
class RollinOptions:
    """What the algorithm does in each episode and at each step."""

    method: Method = "rollin"
    """rollin; baseline: the curriculum without roll-in (β = 0); scratch: the final context only;
    fresh: an ablation, in which the re-initialised exploration agent takes over after one step."""
    beta: float = 0.1
    """Fraction β ∈ [0, 1) of episodes that roll in with the previous context's policy."""
    updates: Literal["detailed", "short"] = "detailed"
    """detailed: π_main learns in episodes without roll-in, π_exp at its own steps; short: both at
    every step, as in the short pseudocode."""
    relabel: bool = False
    """Relabel goals: a third of each batch keeps its goal, a third gets a future one, a third the
    next state."""
    go_explore: float = 0.0
    """Go-Explore: standard deviation of the noise added to actions once an episode has reached the
    previous goal; 0 is off (the paper tries 0.1, 0.25, 0.5)."""
    sampling: Literal["uniform", "geometric"] = "uniform"
    """How a batch is drawn: uniformly, or recent transitions more often (short form:
    --geometric)."""
    p: float = 1e-5
    """Parameter of geometric sampling: P(age) ∝ (1-p)^age."""
    warmup: int = 10_000
    """Uniformly random steps before the first update."""
    counted: Literal["all", "main"] = "all"
    """Which episodes count for the advance rule: all, or only those in which π_main acts
    alone."""
    exp_fill: int = 1
    """Transitions that D_exp must hold before π_exp learns. With 1 it learns from the first one
    on, as jaxrl draws a batch with replacement from whatever there is."""
    explorer: Literal["fresh", "main"] = field(default="fresh", metadata={"since": "0.2.0"})
    """Who acts after a roll-in: fresh, π_exp, reinitialised at every switch; main, an ablation
    with one learner: π_main itself continues under ω_k, and learns at these steps."""
    prefix: Literal["replay", "hidden"] = field(default="replay", metadata={"since": "0.2.0"})
    """Transitions of the roll-in itself: replay, they are recorded in D; hidden, an ablation: no
    agent ever learns from them, nor at these steps. They count as steps either way."""
    guide: Literal["current", "frozen"] = field(default="current", metadata={"since": "0.2.0"})
    """Who rolls in under ω_{k-1}: current, π_main as it is now; frozen, an ablation: π_main as it
    was at the last switch."""
    better: float = field(default=0.0, metadata={"since": "0.2.0"})
    """Fraction of every batch that is drawn from the episodes under ω_k with an above-average
    return (our extension)."""

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_literals(self)
        if not 0 <= self.go_explore <= LARGEST:
            raise RollinError(
                f"go_explore must be 0 or more, and at most {LARGEST:g}, got {self.go_explore}."
            )
        at_least(1, "exp_fill", self.exp_fill, MOST_STEPS)
        if not 0 <= self.better < 1:
            raise RollinError(f"better must lie in [0, 1), got {self.better}.")
        if self.method == "fresh" and self.explorer == "main":
            raise RollinError(
                "method fresh is the fresh explorer without a roll-in, and explorer main leaves no "
                "fresh explorer: use one of them."
            )
        if not 0 < self.p < 1:
            raise RollinError(f"p must lie in (0, 1), got {self.p}.")

    @property
    def rolls_in(self) -> float:
        """β of the method: the probability that an episode rolls in."""
        return self.beta if self.method in ("rollin", "fresh") else 0.0

    def stop_probability(self, gamma: float) -> float:
        """Probability that the roll-in stops after a step."""
        return 1.0 if self.method == "fresh" else 1 - gamma
