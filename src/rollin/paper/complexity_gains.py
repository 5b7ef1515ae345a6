"""Complexity gains, measured: the conditions under which a cost is read against the size of an MDP.

The paper bounds how iterations and samples grow with the number of states S (Corollary A.3,
Theorems 4.1 and 4.3); it measures no such growth. These are families of MDPs of growing size, and
methods that are run on each until the last context is solved. `lock` was chosen because its law can
be read off; its η and α were chosen on exact runs. Where claims repeat (corridor, grid, random) η
is an eighth of the lock's, because sampled gradients stall at the lock's: seen on seeds 0 – 2. What
is reported uses seeds from `FIRST_SEED` on, on which nothing was chosen.
"""

import hashlib
import json
import math
import time
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from rollin import __version__
from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.until_solved import Goal, Walk, mismatch_of, walk_exactly, walk_sampled

Gradient = Literal["exact", "natural", "sampled"]
Family = Literal["lock", "corridor", "grid", "random"]

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
    """A family with its constants; gamma None: 1 - 1/(K+1).

    rate: η of the exact and the sampled gradient, in units of 1-γ if `rate_scales`.
    curves: for each gradient, methods with the sizes that they are run at.
    """

    name: str
    family: Family
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
    Setting("lock", "lock", "Combination lock, γ = 1 − 1/n", {
        "exact": (
            ((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)), (RECURSIVE_TOO, UP_TO_128),
        ),
        "natural": ((ENDS, DOUBLING),),
        "sampled": (
            ((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18)), (FROM_RHO, (4, 6, 8, 12, 16, 24, 32, 48)),
        ),
    }),
    Setting("lock-fixed", "lock", "Combination lock, γ = 0.9", {
        "exact": (((SCRATCH,), (4, 6, 8, 10, 12, 14, 16, 18, 20)), (FIXED, FROM_8)),
        "natural": (((SCRATCH, CURRICULUM, MOST_RECURSIVE), (8, 16, 32, 64)),),
        "sampled": ((FIXED, (8, 12, 16, 24, 32)),),
    }, gamma=0.9, alpha=1e-7, rate=1.0, rate_scales=False, batch=50),
    Setting("lock-uniform", "lock", "Combination lock, ρ uniform", {
        "exact": ((ENDS, FROM_8),),
        "sampled": ((ENDS, (8, 12, 16, 24, 32)),),
    }, uniform_rho=True),
    Setting("corridor", "corridor", "Corridor with dummy actions", {
        "exact": (((SCRATCH,), (4, 6, 8, 12, 16, 20, 24, 28)), (RECURSIVE_TOO, UP_TO_128)),
        "natural": ((ENDS, DOUBLING),),
        "sampled": (((SCRATCH,), (4, 6, 8, 12, 16)), (FROM_RHO, (4, 6, 8, 12, 16))),
    }, rate=1.0),
    Setting("grid", "grid", "Open m × m grid", {
        "exact": (((SCRATCH, *RECURSIVE_TOO), SIDES),),
        "natural": ((ENDS, SIDES),),
        "sampled": (((SCRATCH, *FROM_RHO), (3, 4, 6, 8)),),
    }, rate=1.0),
    Setting("random", "random", "Random MDPs, 4 actions and a claim", {
        "exact": (((SCRATCH, *RECURSIVE_TOO), (8, 16, 32, 64, 128)),),
        "natural": ((ENDS, (8, 16, 32, 64, 128)),),
        "sampled": (((SCRATCH, *FROM_RHO), (8, 16, 32, 64)),),
    }, rate=1.0),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run: everything that decides what comes out. `seed` is -1 where nothing is random."""

    setting: str
    family: Family
    n: int
    method: str
    beta: float
    mu: str
    gradient: Gradient
    seed: int
    gamma: float
    alpha: float
    eta: float
    batch: int
    cap: int

    def mdp(self) -> ContextualMDP:
        """Its MDP."""
        if self.family == "lock":
            uniform = find_setting(self.setting).uniform_rho
            return combination_lock(self.n, gamma=self.gamma, uniform_rho=uniform)
        if self.family == "corridor":
            return corridor(self.n, gamma=self.gamma)
        if self.family == "grid":
            return square_grid(self.n, gamma=self.gamma)
        return random_mdp(self.n, self.seed)  # whose γ follows from how far the goal is


COLUMNS = (
    *(field.name for field in fields(Case)),
    "states", "contexts", "horizon", "solved", "reached", "gradient_steps", "env_steps",
    "rollin_steps", "ln_mismatch_rho", "ln_mismatch_mu", "predictor", "version", "seconds",
)  # fmt: skip
"""Of runs.csv: what the case is, and what came out."""
KEY = tuple(field.name for field in fields(Case))


def find_setting(name: str) -> Setting:
    """The setting of a name."""
    return next(setting for setting in SETTINGS if setting.name == name)


def cases(seeds: int = SEEDS, scale: float = 1.0) -> list[Case]:
    """All runs of the study, those that may take longest first.

    scale < 1 shortens the caps by this factor, and keeps of every curve the sizes up to √scale of
    its largest, but at least the four smallest.
    """
    found = [
        case
        for setting in SETTINGS
        for gradient, blocks in setting.curves.items()
        for methods, sizes in blocks
        for method in methods
        for n in kept_sizes(sizes, scale)
        for case in _cases_of(setting, gradient, method, n, seeds, scale)
    ]
    return sorted(found, key=lambda case: -case.n * case.cap)


def kept_sizes(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """The sizes of a curve that a study of this scale has."""
    limit = max(sizes) * math.sqrt(scale)
    return tuple(n for i, n in enumerate(sizes) if i < FEWEST_SIZES or n <= limit)


def _cases_of(
    setting: Setting, gradient: Gradient, method: Method, n: int, seeds: int, scale: float
) -> list[Case]:
    random = setting.family == "random" or gradient == "sampled"
    drawn = range(FIRST_SEED, FIRST_SEED + seeds) if random else (-1,)
    cap = max(1, round(scale * CAPS[gradient, method.name == "scratch"]))
    made: list[Case] = []
    for seed in drawn:
        gamma = _gamma(setting, n, seed)
        rate = setting.rate * ((1 - gamma) if setting.rate_scales else 1.0)
        made.append(
            Case(
                setting.name, setting.family, n, method.name, method.beta, method.mu, gradient,
                seed, gamma, setting.alpha, 1 - gamma if gradient == "natural" else rate,
                setting.batch if gradient == "sampled" else 0, cap,
            )
        )  # fmt: skip
    return made


def _gamma(setting: Setting, n: int, seed: int) -> float:
    if setting.gamma is not None:
        return setting.gamma
    if setting.family == "random":
        return random_mdp(n, seed).gamma
    return 1 - 1 / (2 * n - 1 if setting.family == "grid" else n)


def digest(scale: float) -> str:
    """What a study of this scale runs but for the number of seeds: SHA-256 of its first seeds."""
    text = json.dumps([asdict(case) for case in cases(1, scale)])
    return hashlib.sha256(text.encode()).hexdigest()


def measure(case: Case) -> dict[str, Any]:
    """Do a run; a row of runs.csv."""
    began = time.perf_counter()
    mdp = case.mdp()
    goal = Goal.of(mdp)
    how: dict[str, Any] = {
        "goal": goal,
        "beta": case.beta,
        "recursive": case.mu == "recursive",
        "scratch": case.method == "scratch",
    }
    if case.gradient == "sampled":
        walk = walk_sampled(
            mdp, case.alpha, case.eta, case.cap, batch=case.batch, seed=case.seed, **how
        )
    else:
        natural = case.gradient == "natural"
        walk = walk_exactly(
            mdp, case.alpha, case.eta, case.cap, natural=natural, predict=not natural, **how
        )
    return {
        **asdict(case),
        "states": mdp.n_states,
        "contexts": mdp.K + 1,
        "horizon": goal.horizon,
        "solved": int(walk.solved),
        "reached": walk.reached,
        "gradient_steps": walk.gradient_steps,
        "env_steps": walk.env_steps,
        "rollin_steps": walk.rollin_steps,
        **_ratios(case, mdp, walk),
        "version": __version__,
        "seconds": round(time.perf_counter() - began, 3),
    }


def _ratios(case: Case, mdp: ContextualMDP, walk: Walk) -> dict[str, Any]:
    """The mismatch ratio from ρ and from the μ_K that this run came to, and R; of exact runs."""
    if case.gradient != "exact":
        return {"ln_mismatch_rho": "", "ln_mismatch_mu": "", "predictor": ""}
    last = "" if walk.start is None else f"{mismatch_of(mdp, case.alpha, walk.start):.6g}"
    return {
        "ln_mismatch_rho": f"{mismatch_of(mdp, case.alpha, mdp.rho):.6g}",
        "ln_mismatch_mu": last,
        "predictor": f"{walk.predictor:.6g}",
    }
