"""Hyperparameters of SAC: the paper's table (appendix, "Hyperparameters used for the SAC
algorithm") and what it leaves to the implementation it builds on, checked.

The field docstrings are the help texts of the command line.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rollin.checks import (
    MOST_ACTIVATIONS,
    MOST_SAMPLES,
    MOST_STEPS,
    MOST_THREADS,
    MOST_UPDATES,
    WIDEST,
    at_least,
    positive,
    shown,
    within,
)
from rollin.errors import RollinError

DEEPEST = 64  # hidden layers

LearnerName = Literal["cpu", "jax"]


@dataclass(frozen=True)
class SACConfig:
    """Options of the SAC learner."""

    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers of actor and critics."""
    batch: int = 256
    """Transitions per update."""
    gamma: float = 0.99
    """Discount γ."""
    tau: float = 0.005
    """Soft update rate of the target critics."""
    learning_rate: float = 3e-4
    """Adam's learning rate for actor, critics and temperature."""
    initial_temperature: float = 1.0
    """Initial entropy temperature; it is then learned."""
    target_entropy: float | None = None
    """Target entropy. Default: -dim(A)/2."""
    head_gain: float = 1.0
    """Gain of the orthogonal initial weights of the policy's mean head: 1 as in jaxrl since
    December 2021, √2 = 1.4142135623730951 before. The log standard deviation head has gain 1."""
    log_std_min: float = -10.0
    """Lower bound of the policy's log standard deviation."""
    log_std_max: float = 2.0
    """Upper bound of the policy's log standard deviation."""
    precision: Literal["float32", "bfloat16", "auto"] = field(
        default="float32", metadata={"since": "0.3.0"}
    )
    """Numbers that the networks' products multiply (CPU learner). bfloat16: faster on a CPU
    with AVX512-BF16, and the same results on any other; sums, weights and losses stay float32.
    auto: bfloat16 where the CPU has the unit, else float32."""
    threads: int = 1
    """Maximum number of threads per update (CPU learner; small networks use fewer). Any number
    gives the same result, bit for bit."""
    update_every: int = field(default=1, metadata={"since": "0.3.0"})
    """Learn only at steps whose number in the run is a multiple of this. Every environment step
    counts, also random ones and those of roll-ins."""
    updates_per_step: int = field(default=1, metadata={"since": "0.3.0"})
    """Updates that an agent makes at each step at which it learns."""

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, Sequence) or isinstance(self.hidden, str):
            raise RollinError(
                f"hidden must be a sequence of layer sizes such as (256, 256), got "
                f"{shown(self.hidden)}."
            )
        if not self.hidden:
            raise RollinError("hidden must name at least one layer, such as 256 256; got none.")
        for size in self.hidden:
            at_least(1, "hidden", size, WIDEST)
        if len(self.hidden) > DEEPEST:
            raise RollinError(f"hidden must name at most {DEEPEST} layers, got {len(self.hidden)}.")
        at_least(1, "batch", self.batch, MOST_SAMPLES)
        if self.batch * sum(self.hidden) > MOST_ACTIVATIONS:
            raise RollinError(
                f"batch times the sum of hidden must be at most {MOST_ACTIVATIONS:,}, got "
                f"{self.batch:,} times {sum(self.hidden):,}: choose a smaller batch."
            )
        if self.precision not in ("float32", "bfloat16", "auto"):
            raise RollinError(
                f"precision must be float32, bfloat16 or auto, got {shown(self.precision)}."
            )
        if self.precision == "auto":
            object.__setattr__(self, "precision", _fastest())
        at_least(1, "threads", self.threads, MOST_THREADS)
        at_least(1, "update_every", self.update_every, MOST_STEPS)
        at_least(1, "updates_per_step", self.updates_per_step, MOST_UPDATES)
        if self.threads > 1 and os.name != "posix":
            raise RollinError(f"threads must be 1 on this system, got {self.threads}.")
        for name in ("learning_rate", "initial_temperature", "head_gain"):
            positive(name, getattr(self, name))
        if not 0 <= self.gamma <= 1:
            raise RollinError(f"gamma must lie in [0, 1], got {self.gamma}.")
        if not 0 < self.tau <= 1:
            raise RollinError(f"tau must lie in (0, 1], got {self.tau}.")
        if self.target_entropy is not None:
            within("target_entropy", self.target_entropy)
        if not -80 <= self.log_std_min < self.log_std_max <= 80:
            raise RollinError(
                "log_std_min must be smaller than log_std_max, both within [-80, 80]; "
                f"got {self.log_std_min} and {self.log_std_max}."
            )

    def entropy_target(self, action_size: int) -> float:
        """Return the target entropy for this many action dimensions.

        >>> import rollin
        >>> rollin.SACConfig(hidden=(32, 32), batch=64).entropy_target(action_size=6)
        -3.0
        """
        return -action_size / 2 if self.target_entropy is None else self.target_entropy

    def first_update(self, warmup: int) -> int:
        """Return the first step after the random ones at which an agent may learn.

        >>> import rollin
        >>> rollin.SACConfig(update_every=50).first_update(warmup=120)
        150
        """
        return (warmup // self.update_every + 1) * self.update_every


def _fastest() -> Literal["float32", "bfloat16"]:
    """Return the precision in which this CPU multiplies fastest."""
    from rollin.compiling import host_features
    from rollin.sac.cpu.simd import has_bfloat16

    return "bfloat16" if has_bfloat16(host_features()) else "float32"
