"""The conditions of the complexity study, and the laws fitted to its costs: n^p or b^n.

The paper bounds the growth of iterations and samples with the number of states S (Corollary A.3,
Theorems 4.1 and 4.3), but measures none. Here every method runs until it solves the final context.
The law of `lock` is known; its η and α were chosen on exact runs. Where claims repeat (corridor,
grid, random) η is an eighth of the lock's, because sampled gradients stall at the lock's on the
tuning seeds 0 – 2. The held-out seeds from `FIRST_SEED` on are reported.

The cost of a run that reached its cap is censored, and counts as ∞. The median over seeds is known
if more than half of them were solved; a fit leaves out the other sizes, and names them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.analysis.statistics import student_t
from rollin.errors import RollinError
from rollin.runs.records import MetricAt, Record
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study
from rollin.untrusted import csv_text

Gradient = Literal["exact", "natural", "sampled"]

NAME = "complexity"
FIRST_SEED = 100
SEEDS = 10
FEWEST_SIZES = 4  # of a curve in a shortened study
CAPS: dict[tuple[Gradient, bool], int] = {
    ("exact", True): 2_000_000,
    ("exact", False): 1_000_000,
    ("natural", True): 100_000,
    ("natural", False): 100_000,
    ("sampled", True): 100_000,
    ("sampled", False): 100_000,
}
"""Maximum number of gradient steps of a run, by gradient and whether it learns from scratch."""


@dataclass(frozen=True)
class Method:
    """scratch: the final context only; curriculum: β = 0; rollin: β > 0, μ from ρ or recursive."""

    name: Literal["scratch", "curriculum", "rollin"]
    beta: float = 0.0
    mu: Literal["rho", "recursive"] = "rho"


SCRATCH = Method("scratch")
CURRICULUM = Method("curriculum")
HALF = Method("rollin", 0.5)
MOST = Method("rollin", 0.9)
HALF_RECURSIVE = Method("rollin", 0.5, "recursive")
MOST_RECURSIVE = Method("rollin", 0.9, "recursive")
FROM_RHO = (CURRICULUM, HALF, MOST)


@dataclass(frozen=True)
class Setting:
    """A family of MDPs with its constants; gamma None: 1 - 1/(K+1).

    rate: η of the exact and the sampled gradient, in units of 1-γ if `rate_scales`.
    curves: for each gradient, methods with the sizes of their runs.
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
    """Return the study, with the conditions of the longest runs first.

    scale < 1 limits every curve to sizes up to √scale of its largest, but at least to the four
    smallest; the sweep shortens the caps of the runs.
    """
    conditions = [
        _condition(setting, gradient, method, n)
        for setting in SETTINGS
        for gradient, blocks in setting.curves.items()
        for methods, sizes in blocks
        for method in methods
        for n in sizes_at(sizes, scale)
    ]
    conditions.sort(key=lambda condition: -condition.options["n"] * condition.options["steps"])
    return Study(
        NAME,
        tuple(conditions),
        (MetricAt("steps_to_solve"), MetricAt("samples_to_solve")),
        SEEDS,
        rows=KEYS[:-1],
        columns=KEYS[-1:],
        title="Complexity gains: cost until solved against the size of an MDP",
    )


def sizes_at(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """Return the sizes of a curve in a study of this scale."""
    limit = max(sizes) * math.sqrt(scale)
    return tuple(n for i, n in enumerate(sizes) if i < FEWEST_SIZES or n <= limit)


def _condition(setting: Setting, gradient: Gradient, method: Method, n: int) -> Condition:
    scratch = method.name == "scratch"
    drawn = setting.task == "random-mdp" or gradient == "sampled"
    natural = gradient == "natural"
    labels = (setting.name, gradient, method.name, f"{method.beta:g}", method.mu, str(n))
    return Condition(
        dict(zip(KEYS, labels, strict=True)),
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


# ------------------------------------------------------------------ laws of growth


FIT_FROM = 10  # states: smaller MDPs are drawn, but not fitted
QUANTITIES = ("gradient_steps", "env_steps")

Law = Literal["power", "exponential"]
LEVEL = 0.95
RESAMPLES = 2000
LEAST_SIZES = 3  # a line through two points has no residual
LEAST_MIXED = 5  # for two slopes and two degrees of freedom


@dataclass(frozen=True)
class SizeCosts:
    """Costs of the seeds at one size; ∞ where the run was cut off."""

    size: int
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median cost, ∞ if half of the seeds or more were cut off."""
        return float(np.median(self.values))

    @property
    def solved(self) -> int:
        """Return the number of seeds that solved the final context."""
        return sum(map(math.isfinite, self.values))


@dataclass(frozen=True)
class Slope:
    """A law's parameter, p of n^p or b of b^n, its interval, and the error of the fit.

    residual: root mean square of ln(median) - ln(law), so 0.03 is about 3 %.
    factor: the constant before the law.
    """

    value: float
    low: float
    high: float
    residual: float
    factor: float


@dataclass(frozen=True)
class Growth:
    """Both laws fitted to the medians of the same sizes.

    mixed: b of n^p · b^n, which has one parameter more; None with fewer than five sizes.
    interval: "seeds": percentiles of the bootstrap over the seeds of each size. "sizes": nothing is
    random; Student's interval of the regression slope, which shows only how well the sizes lie on a
    line.
    """

    power: Slope
    exponential: Slope
    mixed: Slope | None
    sizes: tuple[int, ...]
    left_out: tuple[int, ...]
    seeds: int
    interval: Literal["seeds", "sizes"]

    @property
    def better(self) -> Law:
        """Return the law with the smaller residual; both have two parameters."""
        return "power" if self.power.residual <= self.exponential.residual else "exponential"

    def at(self, law: Law, size: float) -> float:
        """Return the cost of a size by a law."""
        slope = self.power if law == "power" else self.exponential
        return slope.factor * (size**slope.value if law == "power" else slope.value**size)


def costs_by_size(runs: Mapping[int, Sequence[tuple[float, bool]]]) -> list[SizeCosts]:
    """Return the costs of every size, from pairs of a run's cost and whether it was solved."""
    return [
        SizeCosts(size, tuple(spent if solved else math.inf for spent, solved in runs[size]))
        for size in sorted(runs)
    ]


def fit_growth(
    costs: Sequence[SizeCosts], *, at_least: int = 0, resamples: int = RESAMPLES, seed: int = 0
) -> Growth | None:
    """Fit both laws to the medians at sizes of `at_least` and more; None with fewer than three.

    A bootstrap draw in which a size loses its median counts as a slope of ∞ if that size's weight
    in the regression is positive, as of large sizes, of -∞ if it is negative, and as both if sizes
    of both signs lose it. The interval is open where enough draws do.
    """
    for cost in costs:
        if not cost.values or min(cost.values) <= 0:
            raise RollinError(
                f"A growth law needs costs greater than 0 at every size, got {cost.values} at "
                f"n = {cost.size}."
            )
    wanted = [cost for cost in costs if cost.size >= at_least]
    used = [cost for cost in wanted if math.isfinite(cost.median)]
    if len(used) < LEAST_SIZES:
        return None
    sizes = np.array([cost.size for cost in used], np.float64)
    medians = np.array([cost.median for cost in used])
    seeds = max(len(cost.values) for cost in used)
    drawn = _draws(used, resamples, seed) if seeds > 1 else None
    logs = np.log(sizes)
    y = np.log(medians)
    mixed = None
    if len(used) >= LEAST_MIXED:
        mixed = _exponential(_slope(np.column_stack([sizes, logs]), y, drawn))
    return Growth(
        _slope(logs[:, None], y, drawn),
        _exponential(_slope(sizes[:, None], y, drawn)),
        mixed,
        tuple(cost.size for cost in used),
        tuple(cost.size for cost in wanted if cost not in used),
        seeds,
        "seeds" if drawn is not None else "sizes",
    )


def _draws(used: Sequence[SizeCosts], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return logarithms (resamples, sizes) of medians over resampled seeds of each size."""
    rng = np.random.default_rng(seed)
    columns = []
    for cost in used:
        values = np.array(cost.values)
        drawn = rng.integers(len(values), size=(resamples, len(values)))
        columns.append(np.median(values[drawn], 1))
    return np.log(np.column_stack(columns))


def _exponential(line: Slope) -> Slope:
    """Return b of b^n from the slope against n."""
    ends = {name: math.exp(getattr(line, name)) for name in ("value", "low", "high")}
    return replace(line, **ends)


def _slope(
    x: NDArray[np.float64], y: NDArray[np.float64], drawn: NDArray[np.float64] | None
) -> Slope:
    """Return the slope of the first column in least squares of y against x and a constant."""
    design = np.column_stack([x, np.ones(len(y))])
    inverse = np.linalg.pinv(design)
    fitted = inverse @ y
    slope = float(fitted[0])
    factor = math.exp(fitted[-1])
    errors = y - design @ fitted
    residual = float(np.sqrt(np.mean(errors**2)))
    if drawn is None:
        freedom = len(y) - design.shape[1]
        spread = math.sqrt(float(errors @ errors) / freedom * float(inverse[0] @ inverse[0]))
        margin = student_t(freedom, LEVEL) * spread
        return Slope(slope, slope - margin, slope + margin, residual, factor)
    lost = ~np.isfinite(drawn)
    slopes = np.where(lost, 0.0, drawn) @ inverse[0]
    # a lost median is large: it lifts the slope where its weight is positive, else lowers it
    lifted = lost[:, inverse[0] > 0].any(axis=1)
    lowered = lost[:, inverse[0] < 0].any(axis=1)
    lowest = np.where(lowered, -math.inf, np.where(lifted, math.inf, slopes))
    highest = np.where(lifted, math.inf, np.where(lowered, -math.inf, slopes))
    low = float(np.quantile(lowest, (1 - LEVEL) / 2, method="nearest"))
    high = float(np.quantile(highest, (1 + LEVEL) / 2, method="nearest"))
    return Slope(slope, low, high, residual, factor)


class CurveName(NamedTuple):
    """The labels that the runs of a curve share, without size and seed."""

    setting: str
    gradient: str
    method: str
    beta: str
    mu: str


@dataclass(frozen=True)
class CostCurve:
    """One cost of one method against the number of states.

    spent: by size, the smallest cost at which a run was cut off.
    """

    name: CurveName
    quantity: str
    costs: tuple[SizeCosts, ...]
    spent: dict[int, float]
    growth: Growth | None

    @property
    def random(self) -> bool:
        """Return whether the seeds differ."""
        return any(len(cost.values) > 1 for cost in self.costs)


def curves_of(records: Iterable[Record]) -> list[CostCurve]:
    """Return all curves in the order of `SETTINGS`; scratch before β = 0 before roll-in.

    Samples are a cost of sampled gradients only.
    """
    grouped: dict[CurveName, list[Record]] = defaultdict(list)
    for record in records:
        grouped[curve_name(record)].append(record)
    return [
        _curve(name, quantity, grouped[name])
        for name in sorted(grouped, key=_order)
        for quantity in (QUANTITIES if name.gradient == "sampled" else QUANTITIES[:1])
    ]


def curve_name(record: Record) -> CurveName:
    """Return the curve that a run belongs to."""
    return CurveName(*(record.labels[name] for name in CurveName._fields))


def size_of(record: Record) -> int:
    """Return the number of states of a run's MDP."""
    states = record.value(MetricAt("states"))
    assert states is not None
    return int(states)


def _order(name: CurveName) -> tuple[int, str, int, bool, str]:
    setting = [setting.name for setting in SETTINGS].index(name.setting)
    method = ("scratch", "curriculum", "rollin").index(name.method)
    return setting, name.gradient, method, name.mu == "recursive", name.beta


def _curve(name: CurveName, quantity: str, records: Sequence[Record]) -> CostCurve:
    by_size: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    spent: dict[int, float] = {}
    for record in records:
        size = size_of(record)
        solved = record.completed is not None
        cost = float(record.step if quantity == "gradient_steps" else record.costs.env_steps or 0)
        by_size[size].append((cost, solved))
        if not solved:
            spent[size] = min(cost, spent.get(size, math.inf))
    costs = tuple(costs_by_size(by_size))
    return CostCurve(name, quantity, costs, spent, fit_growth(costs, at_least=FIT_FROM))


FIT_COLUMNS = (
    *CurveName._fields, "quantity", "sizes", "left_out", "seeds", "interval",
    "power", "power_low", "power_high", "power_residual",
    "base", "base_low", "base_high", "base_residual", "better",
    "mixed_base", "mixed_base_low", "mixed_base_high", "mixed_base_residual",
)  # fmt: skip


def fits_csv(curves: Iterable[CostCurve]) -> str:
    """Return the fits as CSV."""
    rows = ([row[name] for name in FIT_COLUMNS] for row in fit_rows(curves))
    return csv_text([FIT_COLUMNS, *rows])


def fit_rows(curves: Iterable[CostCurve]) -> list[dict[str, Any]]:
    """Return a row for every fitted curve; `base` is b of b^n, `mixed_base` b of n^p · b^n."""
    return [
        {
            **curve.name._asdict(),
            "quantity": curve.quantity,
            "sizes": " ".join(map(str, growth.sizes)),
            "left_out": " ".join(map(str, growth.left_out)),
            "seeds": growth.seeds,
            "interval": growth.interval,
            **_columns("power", growth.power),
            **_columns("base", growth.exponential),
            "better": growth.better,
            **_columns("mixed_base", growth.mixed),
        }
        for curve in curves
        if (growth := curve.growth) is not None
    ]


def _columns(name: str, slope: Slope | None) -> dict[str, str]:
    columns = (name, f"{name}_low", f"{name}_high", f"{name}_residual")
    if slope is None:
        return dict.fromkeys(columns, "")
    numbers = [f"{x:.5g}" for x in (slope.value, slope.low, slope.high)]
    return dict(zip(columns, [*numbers, f"{slope.residual:.4f}"], strict=True))
