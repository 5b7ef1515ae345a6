"""Complexity gains, measured: the conditions under which a cost is read against the size of an MDP.

The paper bounds how iterations and samples grow with the number of states S (Corollary A.3,
Theorems 4.1 and 4.3); it measures no such growth. These are families of MDPs of growing size, and
methods that are run on each until the last context is solved. `lock` was chosen because its law can
be read off; its η and α were chosen on exact runs. Where claims repeat (corridor, grid, random) η
is an eighth of the lock's, because sampled gradients stall at the lock's: seen on seeds 0 – 2. What
is reported uses seeds from `FIRST_SEED` on, on which nothing was chosen.
"""

import math
from dataclasses import dataclass
from typing import Literal

from rollin.runs.records import Reading
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study

Gradient = Literal["exact", "natural", "sampled"]

NAME = "complexity"
FIRST_SEED = 100
SEEDS = 10
FEWEST_SIZES = 4  # that a shortened study keeps of every curve
CAPS: dict[tuple[Gradient, bool], int] = {
    ("exact", True): 2_000_000,
    ("exact", False): 1_000_000,
    ("natural", True): 100_000,
    ("natural", False): 100_000,
    ("sampled", True): 100_000,
    ("sampled", False): 100_000,
}
"""Most gradient steps of a run, by gradient and whether it learns from scratch."""


@dataclass(frozen=True)
class Method:
    """scratch: the last context alone; curriculum: β = 0; rollin: β > 0, μ from ρ or recursive."""

    name: Literal["scratch", "curriculum", "rollin"]
    beta: float = 0.0
    mu: Literal["rho", "recursive"] = "rho"


SCRATCH, CURRICULUM = Method("scratch"), Method("curriculum")
HALF, MOST = Method("rollin", 0.5), Method("rollin", 0.9)
HALF_RECURSIVE = Method("rollin", 0.5, "recursive")
MOST_RECURSIVE = Method("rollin", 0.9, "recursive")
FROM_RHO = (CURRICULUM, HALF, MOST)


@dataclass(frozen=True)
class Setting:
    """A family of MDPs with its constants; gamma None: 1 - 1/(K+1).

    rate: η of the exact and the sampled gradient, in units of 1-γ if `rate_scales`.
    curves: for each gradient, methods with the sizes that they are run at.
    """

    name: str
    task: str
    title: str
    curves: dict[Gradient, tuple[tuple[tuple[Method, ...], tuple[int, ...]], ...]]
    gamma: float | None = None
    alpha: float = 1e-4
    rate: float = 8.0
    rate_scales: bool = True
    batch: int = 20
    uniform_rho: bool = False


UP_TO_128 = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
DOUBLING = (4, 8, 16, 32, 64, 128)
FROM_8 = (8, 12, 16, 24, 32, 48, 64, 96)
SIDES = (3, 4, 6, 8, 12, 16)
RECURSIVE_TOO = (*FROM_RHO, MOST_RECURSIVE)
ENDS = (SCRATCH, CURRICULUM, MOST)
FIXED = (CURRICULUM, MOST, HALF_RECURSIVE, MOST_RECURSIVE)

SETTINGS = (
    Setting("lock", "combination-lock", "Combination lock, γ = 1 − 1/n", {
        "exact": (
            ((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)), (RECURSIVE_TOO, UP_TO_128),
        ),
        "natural": ((ENDS, DOUBLING),),
        "sampled": (
            ((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18)), (FROM_RHO, (4, 6, 8, 12, 16, 24, 32, 48)),
        ),
    }),
    Setting("lock-fixed", "combination-lock", "Combination lock, γ = 0.9", {
        "exact": (((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18, 20)), (FIXED, FROM_8)),
        "natural": (((SCRATCH, CURRICULUM, MOST_RECURSIVE), (8, 16, 32, 64)),),
        "sampled": ((FIXED, (8, 12, 16, 24, 32)),),
    }, gamma=0.9, alpha=1e-7, rate=1.0, rate_scales=False, batch=50),
    Setting("lock-uniform", "combination-lock", "Combination lock, ρ uniform", {
        "exact": ((ENDS, FROM_8),),
        "sampled": ((ENDS, (8, 12, 16, 24, 32)),),
    }, uniform_rho=True),
    Setting("corridor", "corridor", "Corridor with dummy actions", {
        "exact": (((SCRATCH,), (4, 6, 8, 12, 16, 20, 24, 28)), (RECURSIVE_TOO, UP_TO_128)),
        "natural": ((ENDS, DOUBLING),),
        "sampled": (((SCRATCH,), (4, 6, 8, 12, 16)), (FROM_RHO, (4, 6, 8, 12, 16))),
    }, rate=1.0),
    Setting("grid", "square-grid", "Open m × m grid", {
        "exact": (((SCRATCH, *RECURSIVE_TOO), SIDES),),
        "natural": ((ENDS, SIDES),),
        "sampled": (((SCRATCH, *FROM_RHO), (3, 4, 6, 8)),),
    }, rate=1.0),
    Setting("random", "random-mdp", "Random MDPs, 4 actions and a claim", {
        "exact": (((SCRATCH, *RECURSIVE_TOO), (8, 16, 32, 64, 128)),),
        "natural": ((ENDS, (8, 16, 32, 64, 128)),),
        "sampled": (((SCRATCH, *FROM_RHO), (8, 16, 32, 64)),),
    }, rate=1.0),
)  # fmt: skip


KEYS = ("setting", "gradient", "method", "beta", "mu", "n")
"""Labels of a condition."""


def study(scale: float = 1.0) -> Study:
    """All conditions, those whose runs may take longest first.

    scale < 1 keeps of every curve the sizes up to √scale of its largest, but at least the four
    smallest; the caps of their runs are shortened where they are run, as everywhere.
    """
    found = [
        _condition(setting, gradient, method, n)
        for setting in SETTINGS
        for gradient, blocks in setting.curves.items()
        for methods, sizes in blocks
        for method in methods
        for n in kept_sizes(sizes, scale)
    ]
    found.sort(key=lambda condition: -condition.options["n"] * condition.options["steps"])
    return Study(
        NAME,
        tuple(found),
        (Reading("steps_to_solve"), Reading("samples_to_solve")),
        SEEDS,
        rows=KEYS[:-1],
        columns=KEYS[-1:],
        title="Complexity gains: cost until solved against the size of an MDP",
    )


def kept_sizes(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """The sizes of a curve that a study of this scale has."""
    limit = max(sizes) * math.sqrt(scale)
    return tuple(n for i, n in enumerate(sizes) if i < FEWEST_SIZES or n <= limit)


def _condition(setting: Setting, gradient: Gradient, method: Method, n: int) -> Condition:
    scratch = method.name == "scratch"
    drawn = setting.task == "random-mdp" or gradient == "sampled"
    natural = gradient == "natural"
    told = (setting.name, gradient, method.name, f"{method.beta:g}", method.mu, str(n))
    return Condition(
        dict(zip(KEYS, told, strict=True)),
        setting.task,
        {
            "n": n,
            "gradient": gradient,
            "scratch": scratch,
            "beta": method.beta,
            "mu": method.mu,
            "alpha": setting.alpha,
            "gamma": setting.gamma,
            "uniform_rho": setting.uniform_rho,
            "learning_rate": 1.0 if natural else setting.rate,
            "relative": natural or setting.rate_scales,
            "batch": setting.batch,
            "steps": CAPS[gradient, scratch],
        },
        first_seed=FIRST_SEED if drawn else 0,
        drawn=drawn,
    )
